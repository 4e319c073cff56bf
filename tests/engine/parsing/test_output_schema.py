"""Final answers that must be JSON of a given shape."""

import pytest

from tests.engine.make import ACT, drive, make_spec

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
}


@pytest.mark.parametrize(
    "answer", ['{"n": 1}', '```json\n{"n": 1}\n```', '  {"n": 1}\n'], ids=repr
)
def test_an_answer_that_matches_the_schema_becomes_its_value(answer):
    driven = drive(make_spec("tool-calling", output_schema=SCHEMA), [answer])

    assert driven.result.output == {"n": 1}


def test_an_answer_that_is_a_value_already_is_checked_as_it_is():
    spec = make_spec("json-chat", output_schema=SCHEMA)

    driven = drive(spec, ['{"action": "Final Answer", "action_input": {"n": 2}}'])

    assert driven.result.output == {"n": 2}


@pytest.mark.parametrize(
    ("answer", "message"), [("It is 1.", "not JSON"), ('{"n": "x"}', "n: 'x' is not")]
)
def test_another_answer_is_fed_back_and_costs_a_round(answer, message):
    driven = drive(
        make_spec("tool-calling", output_schema=SCHEMA), [answer, '{"n": 1}']
    )

    tool, _, observation = driven.steps[0]
    assert tool == "_Exception"
    assert message in observation
    assert observation in driven.requests[1]
    assert driven.result.output == {"n": 1}


def test_three_wrong_answers_fail_the_run():
    driven = drive(make_spec("tool-calling", output_schema=SCHEMA), ["no"] * 3)

    assert driven.result.error.code == "parse_errors"


def test_a_schema_of_texts_takes_plain_text():
    spec = make_spec("tool-calling", output_schema={"type": "string"})

    assert drive(spec, ["hello"]).result.output == "hello"


def test_the_model_is_given_the_schema():
    for kind in ("react", "tool-calling"):
        driven = drive(make_spec(kind, output_schema=SCHEMA), ["x"] * 3)

        assert '"required":["n"]' in driven.requests[0]


def test_only_plain_replies_can_be_shaped_by_the_server():
    for kind, sent in (("react", None), ("tool-calling", SCHEMA)):
        driven = drive(make_spec(kind, output_schema=SCHEMA), ["x"] * 3)

        assert driven.effects[0].request.output_schema == sent


@pytest.mark.parametrize(
    ("last", "output"),
    [
        ('Final Answer: {"n": 3}', {"n": 3}),
        ("Final Answer: three", "Agent stopped due to iteration limit or time limit."),
    ],
)
def test_a_final_answer_at_a_limit_must_match_the_schema_too(last, output):
    spec = make_spec(
        max_iterations=1, early_stopping_method="generate", output_schema=SCHEMA
    )

    assert drive(spec, [ACT, last]).result.output == output
