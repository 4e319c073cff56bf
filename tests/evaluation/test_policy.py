"""Rules and limits of a spec, applied to what was stored."""

import pytest

from runs.engine.types import (
    AgentSpec,
    Budget,
    ExecutorOptions,
    LoopGuard,
    Prices,
    Usage,
)
from runs.evaluation.versions.policy import PolicyRound, PolicyStep, apply_policy
from tools.spec import ToolSpec


def make_round(*tools: str, start: int = 0, **more) -> PolicyRound:
    steps = tuple(
        PolicyStep(start + i, tool, None, {"n": start + i}, "4", True, elapsed=2.0)
        for i, tool in enumerate(tools)
    )
    usage = Usage(input_tokens=100, output_tokens=20)
    return PolicyRound(**{"usage": usage, "elapsed": 1.0, "steps": steps, **more})


def make_policy(*tools: ToolSpec, prices: Prices | None = None, **options) -> AgentSpec:
    return AgentSpec(
        kind="tool-calling",
        tools=tools,
        executor=ExecutorOptions(**options),
        prices=prices,
    )


ROUNDS = [make_round("pay"), make_round("look", "pay", start=1), make_round()]
PAY, LOOK = ToolSpec(name="pay"), ToolSpec(name="look")


def test_says_nothing_if_nothing_is_limited():
    assert apply_policy(make_policy(PAY, LOOK), ROUNDS) == (set(), set(), "", None)


def test_names_the_calls_that_would_await_approval():
    asking = PAY.model_copy(update={"asks": True})

    assert apply_policy(make_policy(asking, LOOK), ROUNDS).asked == {0, 2}


def test_refuses_the_calls_of_a_tool_that_was_removed():
    assert apply_policy(make_policy(LOOK), ROUNDS).refused == {0, 2}


def test_finds_a_renamed_tool_by_its_number():
    renamed = PAY.model_copy(update={"name": "refund", "tool_id": 7, "asks": True})
    step = PolicyStep(0, "pay", 7, {}, "4", True)

    verdict = apply_policy(make_policy(renamed), [make_round()._replace(steps=(step,))])

    assert (verdict.asked, verdict.refused) == ({0}, set())


def test_refuses_calls_beyond_the_limit_per_run():
    once = PAY.model_copy(update={"calls_per_run": 1})

    assert apply_policy(make_policy(once, LOOK), ROUNDS).refused == {2}


def test_steps_answered_without_a_call_are_not_decided():
    step = PolicyStep(0, "nothing_of_that_name", None, {}, "There is none.", False)

    verdict = apply_policy(make_policy(LOOK), [make_round()._replace(steps=(step,))])

    assert verdict.refused == set()


@pytest.mark.parametrize(
    ("options", "reason", "steps"),
    [
        pytest.param({"max_iterations": 1}, "iterations", 1, id="rounds"),
        pytest.param({"max_execution_time": 3.0}, "time", 1, id="time"),
        pytest.param({"budget": Budget(tokens=240)}, "tokens", 3, id="tokens"),
        pytest.param({"budget": Budget(cost=0.0002)}, "cost", 3, id="cost"),
    ],
)
def test_names_the_limit_at_which_the_run_would_have_stopped(options, reason, steps):
    policy = make_policy(PAY, LOOK, prices=Prices(input=1, output=0), **options)

    verdict = apply_policy(policy, ROUNDS)

    assert (verdict.stop_reason, verdict.stopped_at) == (reason, steps)


def test_calls_after_the_stop_are_not_decided():
    asking = PAY.model_copy(update={"asks": True})

    verdict = apply_policy(make_policy(asking, LOOK, max_iterations=1), ROUNDS)

    assert verdict.asked == {0}


def test_the_usage_of_called_agents_counts():
    step = PolicyStep(0, "pay", None, {}, "4", True, tokens=500)
    rounds = [make_round()._replace(steps=(step,)), make_round()]

    verdict = apply_policy(make_policy(PAY, budget=Budget(tokens=500)), rounds)

    assert verdict.stop_reason == "tokens"


def test_the_loop_guard_counts_equal_rounds():
    step = PolicyStep(0, "pay", None, {}, "4", True)
    rounds = [make_round()._replace(steps=(step,)) for _ in range(4)]

    verdict = apply_policy(make_policy(PAY, loop_guard=LoopGuard(stop=2)), rounds)

    assert (verdict.stop_reason, verdict.stopped_at) == ("loop", 3)
