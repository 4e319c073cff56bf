"""Prompts rebuilt by a replay: each must be exactly what was sent."""

import pytest

from runs.services.runs.rebuild_prompt import rebuild_prompt
from runs.services.runs.resume import resume_run
from tests.bench.loads.big_run import make_big_run
from tests.fakes.model_server import model_server
from tests.make import make_user
from tests.worker.run_parts import agent_on, call, calls, executed, go_on

pytestmark = pytest.mark.django_db(transaction=True)

SUMS = [calls(call("add", a=n, b=1), call("add", id="x", a=n, b=2)) for n in range(4)]
LINES = [
    f'Thought: On.\nAction: add\nAction Input: {{"a": {n}, "b": 1}}' for n in "123"
]
OUT_OF_ROUNDS = {"max_iterations": 2, "early_stopping_method": "generate"}


@pytest.mark.parametrize(
    ("script", "fields"),
    [
        pytest.param([*SUMS, "Done."], {}, id="functions"),
        pytest.param(
            [*SUMS, "Done."], {"executor": {"trim_intermediate_steps": 2}}, id="trimmed"
        ),
        pytest.param(SUMS[:1] * 4 + ["Done."], {}, id="warned of a loop"),
        pytest.param(
            [call("add", a="x", b=1), call("none"), "Done."], {}, id="wrong calls"
        ),
        pytest.param(
            [*LINES, "Nonsense.", "Final Answer: 4"], {"kind": "react"}, id="lines"
        ),
        pytest.param([*SUMS[:2], "3"], {"executor": OUT_OF_ROUNDS}, id="last word"),
    ],
)
def test_rebuilds_each_request_as_it_was_sent(script, fields):
    with model_server(script=script) as server:
        fields = {"executor": {"loop_guard": {"hint": 2, "stop": 9}}, **fields}
        run = executed(agent_on(server, "add", **fields))

    rows = list(run.calls.all())
    assert len(rows) == len(script)
    for row in rows:
        assert rebuild_prompt(row).matches_digest


def test_counts_the_messages_the_previous_call_had_sent():
    with model_server(script=[*SUMS, "Done."]) as server:
        run = executed(agent_on(server, "add"))

    known = [rebuild_prompt(row).known_messages for row in run.calls.all()]
    assert known == [0, 2, 5, 8, 11]


def test_ignores_a_reply_that_a_resume_discarded():
    with model_server(script=[*SUMS[:2], "3", SUMS[2], "Done."]) as server:
        run = executed(agent_on(server, "add", executor=OUT_OF_ROUNDS))
        resume_run(run, by=run.owner, limits={"max_iterations": 9})
        go_on(run)

    assert run.output == "Done."
    assert all(rebuild_prompt(row).matches_digest for row in run.calls.all())


def test_applies_the_limits_a_resume_changed():
    limits = {"max_iterations": 2, "loop_guard": {"hint": 2, "stop": 9}}
    with model_server(script=[*SUMS[:1] * 3, "Done."]) as server:
        run = executed(agent_on(server, "add", executor=limits))
        resume_run(run, by=run.owner, limits={"max_iterations": 9})
        go_on(run)

    last = run.calls.last()  # the resume restarted the count of equal rounds
    assert rebuild_prompt(last).matches_digest


def test_returns_nothing_if_steps_are_missing():
    with model_server(script=[*SUMS[:2], "Done."]) as server:
        run = executed(agent_on(server, "add"))
    run.steps.filter(index=1).delete()

    assert rebuild_prompt(run.calls.last()) is None


def test_reads_a_long_run_in_a_few_queries(django_assert_max_num_queries):
    run = make_big_run(make_user(), steps=120)
    call = run.calls.select_related("run__spec").get(number=60)

    with django_assert_max_num_queries(3):
        assert rebuild_prompt(call).matches_digest
