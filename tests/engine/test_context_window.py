"""Which rounds a request shows when not all of them fit."""

from runs.engine.effects import ModelCallFailed, ModelCallTimedOut, ToolResult
from tests.engine.make import END, drive, make_reply, make_spec

LONG = ToolResult("z" * 4000)


def act(number):
    return f"Action: echo\nAction Input: n{number}"


def call(number):
    return make_reply("", ("echo", {"a": f"n{number}"}))


def left_out(driven):
    return [effect.left_out for effect in driven.effects if hasattr(effect, "left_out")]


def test_the_oldest_rounds_are_left_out_whole():
    replies = [call(1), call(2), call(3), "end"]
    spec = make_spec("tool-calling", context_tokens=2500)

    driven = drive(spec, replies, tool=lambda step: LONG)

    assert left_out(driven) == [(), (), (), (1,)]
    last = driven.effects[-1].request.messages
    assert [m.role for m in last[2:]] == ["assistant", "tool"] * 2


def test_text_rounds_are_left_out_too():
    spec = make_spec(context_tokens=2600)

    driven = drive(spec, [act(1), act(2), act(3), END], tool=lambda step: LONG)

    assert left_out(driven)[-1] == (1,)
    assert "n1" not in driven.requests[-1]
    assert "n2" in driven.requests[-1]


def test_the_newest_round_always_stays():
    driven = drive(make_spec(context_tokens=1), [act(1), act(2), END])

    assert left_out(driven) == [(), (), (1,)]
    assert "n2" in driven.requests[-1]


def test_what_was_once_left_out_stays_out():
    sizes = iter([4000, 4000, 4000, 1, 1])
    spec = make_spec(context_tokens=2600)
    replies = [act(number) for number in range(1, 6)]

    driven = drive(spec, [*replies, END], tool=lambda s: ToolResult("z" * next(sizes)))

    first_shown = [len(rounds) for rounds in left_out(driven)]
    assert first_shown == sorted(first_shown)


def test_trimming_names_the_rounds_it_leaves_out():
    driven = drive(make_spec(trim_intermediate_steps=1), [act(1), act(2), END])

    assert left_out(driven) == [(), (), (1,)]


SUMMARY = {"context_tokens": 2600, "context_method": "summary"}


def test_rounds_that_do_not_fit_are_summarized():
    replies = [act(1), act(2), act(3), "n1 gave a z.", END]

    driven = drive(make_spec(**SUMMARY), replies, tool=lambda step: LONG)

    assert driven.purposes == ["plan"] * 3 + ["summary", "plan"]
    assert "n1" in driven.requests[3]
    assert "Summary of the steps before these: n1 gave a z." in driven.requests[4]
    assert "Action Input: n1" not in driven.requests[4]
    assert left_out(driven)[-1] == (1,)
    assert driven.result.status == "succeeded"


def test_a_summary_is_built_on_the_one_before():
    replies = [call(1), call(2), call(3), "first", call(4), "second", "end"]

    driven = drive(
        make_spec("tool-calling", **SUMMARY), replies, tool=lambda step: LONG
    )

    assert driven.purposes[3::2] == ["summary", "summary"]
    assert "Summary so far: first" in driven.requests[5]
    assert "echo(" in driven.requests[5]
    assert "Summary of the steps before these: second" in driven.requests[6]
    assert "first" not in driven.requests[6]


def test_two_rounds_that_do_not_fit_leave_the_newest():
    spec = make_spec(context_tokens=1, context_method="summary")

    driven = drive(spec, [act(1), act(2), "short", END])

    assert driven.purposes == ["plan", "plan", "summary", "plan"]
    assert left_out(driven)[-1] == (1,)


def test_without_a_summary_the_rounds_are_dropped():
    replies = [act(1), act(2), act(3), ModelCallFailed("overloaded", "Busy."), END]

    driven = drive(make_spec(**SUMMARY), replies, tool=lambda step: LONG)

    assert driven.result.status == "succeeded"
    assert "Summary" not in driven.requests[-1]


def test_a_summary_out_of_time_stops_the_run():
    replies = [act(1), act(2), act(3), ModelCallTimedOut(elapsed=9.0)]
    spec = make_spec(max_execution_time=9, **SUMMARY)

    driven = drive(spec, replies, tool=lambda step: LONG)

    assert driven.result.stop_reason == "time"


def test_a_summary_that_saves_nothing_is_not_requested():
    driven = drive(make_spec(**SUMMARY), [act(1), END])

    assert driven.purposes == ["plan", "plan"]
