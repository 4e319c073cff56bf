"""Prompts told again from rows: each must be what a replay of the engine builds."""

import pytest

from runs.models import ModelCall
from runs.services.rebuild_prompt import rebuild_prompt
from runs.services.record import record_before
from runs.services.replay import replay
from runs.services.resume_run import resume_run
from runs.services.retell import retell
from tests.fakes.model_server import model_server
from tests.services.run_parts import agent_on, call, calls, executed, go_on

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
def test_every_request_is_told_as_a_replay_builds_it(script, fields):
    with model_server(script=script) as server:
        fields = {"executor": {"loop_guard": {"hint": 2, "stop": 9}}, **fields}
        run = executed(agent_on(server, "add", **fields))

    rows = list(run.calls.all())
    assert len(rows) == len(script)
    for row in rows:
        assert retell(row).request == replayed(row)
        assert rebuild_prompt(row).agrees


def test_says_how_many_messages_the_round_before_had_sent():
    with model_server(script=[*SUMS, "Done."]) as server:
        run = executed(agent_on(server, "add"))

    known = [rebuild_prompt(row).known for row in run.calls.all()]
    assert known == [0, 2, 5, 8, 11]


def test_a_reply_set_aside_by_a_resume_is_not_told():
    with model_server(script=[*SUMS[:2], "3", SUMS[2], "Done."]) as server:
        run = executed(agent_on(server, "add", executor=OUT_OF_ROUNDS))
        resume_run(run, by=run.owner, limits={"max_iterations": 9})
        go_on(run)

    assert run.output == "Done."
    for row in run.calls.filter(purpose="plan"):
        assert retell(row).request == replayed(row)


def test_what_the_rows_alone_do_not_tell_is_decided_anew():
    limits = {"max_iterations": 2, "loop_guard": {"hint": 2, "stop": 9}}
    with model_server(script=[*SUMS[:1] * 3, "Done."]) as server:
        run = executed(agent_on(server, "add", executor=limits))
        resume_run(run, by=run.owner, limits={"max_iterations": 9})
        go_on(run)

    last = run.calls.last()  # the resume began to count equal rounds anew
    assert retell(last).request != replayed(last)
    assert rebuild_prompt(last).agrees
    assert rebuild_prompt(last).request == replayed(last)


def test_tells_nothing_where_rows_are_gone():
    with model_server(script=[*SUMS[:2], "Done."]) as server:
        run = executed(agent_on(server, "add"))
    run.steps.filter(index=1).delete()

    assert retell(run.calls.last()) is None


def test_a_summary_is_left_to_the_replay():
    assert retell(ModelCall(purpose="summary")) is None


def replayed(call: ModelCall):
    return replay(call.run, record_before(call)).request
