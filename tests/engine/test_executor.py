"""The loop: what it asks for, in which order, and how it ends."""

import re

import pytest

from runs.engine.effects import (
    CallModel,
    CallTools,
    ModelCallFailed,
    ModelCallTimedOut,
    ModelReplied,
    ToolResult,
    ToolsFinished,
)
from runs.engine.executor import run_agent_loop
from runs.engine.rounds import FINAL_ANSWER_SECONDS, WrongOutcome
from runs.engine.types import Budget, LoopGuard, Prices, Reply, ResumePoint, Usage
from tests.engine.make import ACT, END, drive, make_reply, make_spec, make_tool
from tools.tool_name import build_function_name

INTEGERS = {"type": "object", "properties": {"n": {"type": "integer"}}}


def test_every_reply_with_steps_asks_for_tools_even_when_all_are_answered():
    driven = drive(make_spec(), ["hm", "Action: fly\nAction Input: x", END])

    assert [type(effect) for effect in driven.effects] == [
        *(CallModel, CallTools, CallModel, CallTools),
        CallModel,
    ]
    answered = [effect.steps[0] for effect in driven.effects[1::2]]
    assert [step.is_answered for step in answered] == [True, True]
    assert [step.index for step in answered] == [0, 1]


def test_an_effect_names_its_round_and_index():
    driven = drive(
        make_spec("tool-calling"), [make_reply("", ("echo", {}), ("echo", {})), "x"]
    )

    asked = [(e.round, e.at_index) for e in driven.effects if isinstance(e, CallModel)]
    assert asked == [(1, 0), (2, 2)]
    assert driven.effects[1].round == 1
    assert [step.index for step in driven.effects[1].steps] == [0, 1]


def test_a_request_is_built_when_first_read():
    effect = next(run_agent_loop(make_spec(), {"input": "q"}))

    assert "request" not in vars(effect)
    assert effect.request is effect.request


def test_a_request_shows_what_was_known_when_it_was_asked():
    spec = make_spec("tool-calling")
    run = run_agent_loop(spec, {"input": "q"})
    first = next(run)
    run.send(ModelReplied(make_reply("", ("echo", {"a": "late"}))))
    run.send(ToolsFinished((ToolResult("late"),)))

    assert len(first.request.messages) == 2


def test_seconds_shrink_by_what_was_used():
    replies = [ModelReplied(Reply(text=ACT), elapsed=2.0), END]
    spec = make_spec(max_execution_time=10)

    driven = drive(spec, replies, tool=lambda step: ToolResult("x", elapsed=3.0))

    assert [effect.seconds for effect in driven.effects] == [10.0, 8.0, 5.0]


def test_a_round_takes_as_long_as_its_slowest_call():
    took = iter([3.0, 1.0])
    replies = [make_reply("", ("echo", {}), ("echo", {})), "done"]
    spec = make_spec("tool-calling", max_execution_time=10)

    driven = drive(spec, replies, tool=lambda step: ToolResult("x", elapsed=next(took)))

    assert driven.effects[-1].seconds == 7.0


def test_a_model_call_out_of_time_stops_the_run():
    driven = drive(make_spec(max_execution_time=5), [ModelCallTimedOut(elapsed=4.9)])

    assert (driven.result.status, driven.result.stop_reason) == (
        "limit_reached",
        "time",
    )


def test_the_last_request_after_a_time_limit_gets_a_time_of_its_own():
    spec = make_spec(max_execution_time=5, early_stopping_method="generate")

    driven = drive(spec, [ModelCallTimedOut(elapsed=5.0), END])

    assert driven.effects[-1].seconds == FINAL_ANSWER_SECONDS
    assert driven.result.output == "end"


@pytest.mark.parametrize("after", [[], ["hm"]])
def test_a_failed_request_fails_the_run_in_its_own_words(after):
    driven = drive(make_spec(), [*after, ModelCallFailed("auth", "The key is wrong.")])

    assert driven.result.status == "failed"
    assert driven.result.error.code == "auth"
    assert driven.result.error.message == "The key is wrong."


def test_an_outcome_of_another_effect_raises():
    run = run_agent_loop(make_spec(), {"input": "q"})
    next(run)
    with pytest.raises(WrongOutcome, match="ToolsFinished answers no such effect"):
        run.send(ToolsFinished(()))

    run = run_agent_loop(make_spec(), {"input": "q"})
    next(run)
    run.send(ModelReplied(Reply(text=ACT)))
    with pytest.raises(WrongOutcome):
        run.send(ModelReplied(Reply(text=ACT)))


def test_the_engines_own_answers_do_not_depend_on_the_driver():
    run = run_agent_loop(make_spec(), {"input": "q"})
    next(run)
    run.send(ModelReplied(Reply(text="hm")))
    effect = run.send(ToolsFinished((ToolResult("all is well", failed=False),)))

    assert "all is well" not in effect.request.messages[-1].text


def test_a_reply_that_cannot_be_stored_is_sanitized():
    reply = make_reply("a\x00", ("echo", {"a": "b\ud800"}))

    driven = drive(make_spec("tool-calling"), [reply, "ok"])

    assert driven.steps == [("echo", "b\ufffd", "echo: b\ufffd")]
    assert driven.effects[1].steps[0].action.log == "a\ufffd"


def test_the_native_form_of_an_unclean_reply_is_sanitized_too():
    reply = make_reply("a\x00", ("echo", {"a": "b"}), native={"content": "a\x00"})

    driven = drive(make_spec("tool-calling"), [reply, "ok"])

    assert driven.effects[-1].request.messages[2].native == {"content": "a\ufffd"}


def test_usage_counts_against_the_token_budget():
    reply = Reply(text=ACT, usage=Usage(input_tokens=90, output_tokens=10))

    driven = drive(make_spec(budget=Budget(tokens=200)), [reply, reply, END])

    assert driven.result.stop_reason == "tokens"
    assert len(driven.requests) == 2
    assert "token budget" in driven.result.output


def test_a_budget_uses_estimates_if_the_provider_counts_nothing():
    driven = drive(make_spec(budget=Budget(tokens=20)), [ACT, END])

    assert driven.result.stop_reason == "tokens"
    assert len(driven.requests) == 1


def test_cost_counts_cached_tokens_at_their_price():
    usage = Usage(
        input_tokens=2_000_000, cached_tokens=1_000_000, output_tokens=500_000
    )
    prices = Prices(input=2.0, cached_input=0.5, output=4.0)
    spec = make_spec(budget=Budget(cost=4.6), prices=prices)

    driven = drive(spec, [Reply(text=ACT, usage=usage)] * 2)

    assert driven.result.stop_reason == "cost"
    assert len(driven.requests) == 2


def test_a_used_up_budget_allows_no_final_answer():
    reply = Reply(text=ACT, usage=Usage(input_tokens=10))
    options = {"early_stopping_method": "generate", "budget": Budget(tokens=10)}

    by_budget = drive(make_spec(**options), [reply])
    by_rounds = drive(make_spec(max_iterations=1, **options), [reply])

    assert by_budget.purposes == by_rounds.purposes == ["plan"]
    assert by_rounds.result.stop_reason == "iterations"


def test_the_loop_guard_hints_and_then_stops():
    spec = make_spec(loop_guard=LoopGuard(hint=2, stop=3))

    driven = drive(spec, [ACT] * 9)

    assert driven.result.stop_reason == "loop"
    assert ["exactly this" in request for request in driven.requests] == [
        *(False, False, False),
        True,
    ]
    assert "exactly this 3 times" in driven.requests[3]
    assert all("exactly" not in observation for _, _, observation in driven.steps)


def test_the_loop_guard_counts_only_what_is_the_same_throughout():
    replies = [ACT, ACT, "Action: echo\nAction Input: y", ACT, ACT, END]

    driven = drive(make_spec(loop_guard=LoopGuard(hint=2, stop=2)), replies)

    assert driven.result.status == "succeeded"


def test_a_tool_that_must_not_fail_ends_the_run():
    tools = [make_tool(on_error="end")]

    driven = drive(
        make_spec(tools=tools), [ACT], tool=lambda s: ToolResult("No.", True)
    )

    assert driven.result.error.code == "tool_failed"
    assert driven.result.error.message == "The tool 'echo' failed: No."


def test_a_wrong_input_of_such_a_tool_is_only_reported_to_the_model():
    tools = [make_tool(on_error="end", args_schema=INTEGERS)]

    driven = drive(make_spec(tools=tools), ["Action: echo\nAction Input: x", END])

    assert driven.result.status == "succeeded"


def test_such_a_tool_interrupted_by_the_time_limit_stops_the_run():
    spec = make_spec(tools=[make_tool(on_error="end")], max_execution_time=1)

    driven = drive(spec, [ACT], tool=lambda s: ToolResult("Over.", True, elapsed=1.0))

    assert driven.result.stop_reason == "time"


def test_calls_over_the_limit_of_a_tool_are_refused():
    spec = make_spec("tool-calling", tools=[make_tool(calls_per_run=2)])
    call = ("echo", {"a": "1"})

    driven = drive(spec, [make_reply("", call), make_reply("", call, call), "ok"])

    assert [text for _, _, text in driven.steps[:2]] == ["echo: 1", "echo: 1"]
    assert (
        driven.steps[2][2]
        == "The limit is reached: 'echo' may be called 2 times per run."
    )


def test_an_observation_is_truncated_for_the_model_only():
    driven = drive(make_spec(observation_limit=4), [ACT, END])

    assert driven.steps[0][2] == "echo: x"
    assert "Observation: echo\n[cut: 4 of 7 bytes" in driven.requests[1]


def test_a_tools_output_limit_overrides_that_of_the_run():
    spec = make_spec(tools=[make_tool(output_limit=5)], observation_limit=4)

    assert "echo:\n[cut: 5 of 7" in drive(spec, [ACT, END]).requests[1]


def test_calls_with_the_same_id_get_ids_of_their_own():
    reply = make_reply("", ("echo", {"a": "1"}), ("echo", {"a": "2"}))
    twice = reply.model_copy(update={"tool_calls": (reply.tool_calls[0],) * 2})

    messages = (
        drive(make_spec("tool-calling"), [twice, "ok"]).effects[-1].request.messages
    )

    ids = [call.id for call in messages[2].tool_calls]
    assert len(set(ids)) == 2
    assert [message.tool_call_id for message in messages[3:]] == ids


def test_calls_are_repeated_in_a_form_that_servers_accept():
    reply = make_reply("", ("a b!", {}), ("echo", {}), ("echo", {}))
    calls = [
        reply.tool_calls[0],
        reply.tool_calls[1].model_copy(update={"arguments": '{"a": 1,'}),
        reply.tool_calls[2].model_copy(update={"arguments": ""}),
    ]
    broken = reply.model_copy(update={"tool_calls": tuple(calls)})

    asked = (
        drive(make_spec("tool-calling"), [broken, "ok"]).effects[-1].request.messages[2]
    )

    assert [call.name for call in asked.tool_calls] == [
        build_function_name("a b!"),
        "echo",
        "echo",
    ]
    assert [call.arguments for call in asked.tool_calls] == [
        *("{}", '{"unreadable":"{\\"a\\": 1,"}'),
        "{}",
    ]


@pytest.mark.parametrize("text", ["hi", "<think>so</think>hi"])
@pytest.mark.parametrize("name", ["echo", "e c h o"])
def test_the_providers_own_message_goes_back_with_the_calls(text, name):
    native = {"content": text, "reasoning_content": "so"}
    reply = make_reply(text, (name, {"a": "1"}), native=native)

    request = drive(make_spec("tool-calling"), [reply, "ok"]).effects[-1].request

    assert request.messages[2].native == native


def test_the_providers_own_message_goes_back_with_a_text_that_was_refused():
    native = {"content": "no JSON", "reasoning_content": "so"}
    reply = make_reply("no JSON", native=native)
    spec = make_spec("tool-calling", output_schema={"type": "object"})

    request = drive(spec, [reply, "{}"]).effects[-1].request

    assert [message.native for message in request.messages[-2:]] == [native, None]


def test_a_text_kind_says_that_function_calls_do_not_work():
    reply = make_reply("", ("echo", {"a": "1"}))

    driven = drive(make_spec("react"), [reply, END])

    assert "The reply is a function call" in driven.effects[1].steps[0].observation


def test_a_text_that_is_sent_back_is_repeated_before_its_error():
    spec = make_spec("tool-calling", output_schema={"type": "object"})

    request = drive(spec, ["hello", "{}"]).effects[-1].request

    assert [message.role for message in request.messages[-2:]] == ["assistant", "user"]


# resuming


def resumed(replies, index, *resumes, **options):
    """Run with `replies`, as if resumed at `index` with each of the limits given."""
    points = [ResumePoint(at_index=index, limits=limits) for limits in resumes]
    return drive(make_spec(**options), replies, resumes=points)


def test_a_resume_cancels_the_stop_at_its_step():
    assert drive(make_spec(max_iterations=1), [ACT]).result.status == "limit_reached"

    driven = resumed([ACT, END], 1, {"max_iterations": 5}, max_iterations=1)

    assert driven.result.status == "succeeded"


def test_the_limits_of_a_resume_hold_from_there_on():
    driven = resumed([ACT, ACT, ACT], 1, {"max_iterations": 3}, max_iterations=1)

    assert driven.result.stop_reason == "iterations"
    assert len(driven.steps) == 3


def test_a_resume_at_a_later_step_waits_for_it():
    driven = resumed([ACT, ACT, END], 2, {"max_iterations": 9}, max_iterations=2)

    assert driven.result.status == "succeeded"


def test_several_resumes_at_one_step_are_allowed():
    driven = resumed(
        [ACT, END], 1, {"max_iterations": 1}, {"max_iterations": 2}, max_iterations=1
    )

    assert driven.result.status == "succeeded"


def test_a_resume_resets_the_count_of_parse_errors():
    assert drive(make_spec(), ["a", "b", "c"]).result.error.code == "parse_errors"

    driven = resumed(["a", "b", "c", "d", "e", END], 3, {})

    assert driven.result.status == "succeeded"


def test_a_resume_resets_the_loop_guard():
    guard = LoopGuard(hint=9, stop=2)

    driven = resumed([ACT] * 9, 3, {}, loop_guard=guard)

    assert len(driven.steps) == 6


def test_a_resume_forgives_a_tool_that_must_not_fail():
    failing = iter([ToolResult("No.", True), ToolResult("Yes.")])
    spec = make_spec(tools=[make_tool(on_error="end")])
    points = [ResumePoint(at_index=1)]

    driven = drive(spec, [ACT, ACT, END], tool=lambda s: next(failing), resumes=points)

    assert driven.result.status == "succeeded"


def test_a_resume_may_raise_an_exceeded_time_limit():
    spec = make_spec(max_execution_time=1)
    points = [ResumePoint(at_index=1, limits={"max_execution_time": 5})]

    driven = drive(
        spec, [ACT, END], tool=lambda s: ToolResult("x", elapsed=1.0), resumes=points
    )

    assert driven.result.status == "succeeded"
    assert driven.effects[-1].seconds == 4.0


def test_limits_that_are_none_fail_the_run():
    driven = resumed([ACT], 1, {"max_iterations": "many"}, max_iterations=1)

    assert driven.result.error.code == "limits"


NAMES = ("查询天气", "查询 天气", "Intermediate Answer", "get-user")


def test_functions_have_names_that_every_server_takes_and_keep_their_tools():
    tools = tuple(make_tool(name=name) for name in NAMES)
    called = make_reply(
        "", *((build_function_name(name), {"a": "1"}) for name in NAMES)
    )

    driven = drive(make_spec("tool-calling", tools=tools), [called, "ok"])

    sent = driven.effects[0].request.tools
    names = [tool.name for tool in sent]
    assert len(set(names)) == 4
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names)
    assert names[3] == "get-user"
    assert sent[0].description.startswith("查询天气.")
    assert [tool for tool, *_ in driven.steps] == list(NAMES)
    replayed = driven.effects[2].request.messages[-5].tool_calls
    assert [call.name for call in replayed] == names


def test_a_function_called_by_the_name_of_its_tool_is_found():
    tool = make_tool(name="查询天气")
    called = make_reply("", ("查询天气", {"a": "1"}), ("查询", {}))

    driven = drive(make_spec("tool-calling", tools=(tool,)), [called, "ok"])

    assert [step[0] for step in driven.steps] == ["查询天气", "查询"]
    assert build_function_name("查询天气") in driven.steps[1][2]
    replayed = driven.effects[2].request.messages[-3].tool_calls
    assert replayed[0].name == build_function_name("查询天气")


@pytest.mark.parametrize("name", NAMES)
def test_a_text_format_calls_tools_by_their_own_names(name):
    reply = f"Action: {name}\nAction Input: Beijing"

    driven = drive(make_spec("react", tools=(make_tool(name=name),)), [reply, END])

    assert driven.steps[0][0] == name
    assert name in driven.effects[0].request.messages[-1].text
