"""What a client is told of a run, whatever order its events come in."""

from typing import Any

from runs.live.narration import AnswerBreak, AnswerText, Narration, RunEnded
from runs.live.sse import ApiEvent


def draft(text: str, *, at: int = 0, number: int = 0, attempt: int = 1) -> ApiEvent:
    shape = {"number": number, "attempt": attempt, "at": at, "text": text}
    return ApiEvent("draft", shape)


def reply(
    text: str,
    *,
    number: int = 0,
    purpose: str = "plan",
    tool_calls: tuple[Any, ...] = (),
) -> ApiEvent:
    shape = {"number": number, "purpose": purpose, "text": text, "reasoning": ""}
    return ApiEvent("model_call", {**shape, "tool_calls": tool_calls})


def end(output: Any) -> list[ApiEvent]:
    run = {"status": "succeeded", "output": output}
    return [ApiEvent("run", run), ApiEvent("end", {})]


def told(*events: ApiEvent, streams_text: bool = True) -> str:
    """Return the answer as a client puts it together; `|` is a break."""
    narration = Narration(streams_text=streams_text)
    words = []
    for event in events:
        for said in narration.narrate(event):
            match said:
                case AnswerText():
                    words.append(said.text)
                case AnswerBreak():
                    words.append("|")
    assert isinstance(said, RunEnded)
    return "".join(words)


def test_text_is_told_once_however_it_comes():
    assert told(reply("Hello you"), *end("Hello you")) == "Hello you"
    pieces = (draft("Hello "), draft("you", at=6))
    assert told(*pieces, reply("Hello you"), *end("Hello you")) == "Hello you"
    assert told(draft("Hello "), reply("Hello you"), *end("Hello you")) == "Hello you"


def test_a_piece_that_comes_twice_is_told_once():
    pieces = (draft("Hello "), draft("Hello you"), draft("you", at=6))

    assert told(*pieces, reply("Hello you"), *end("Hello you")) == "Hello you"


def test_after_a_gap_the_rest_comes_with_the_reply():
    pieces = (draft("Hello "), draft("!", at=9))

    assert told(*pieces, reply("Hello you!"), *end("Hello you!")) == "Hello you!"
    assert told(draft("you", at=6), reply("Hello you"), *end("Hello you")) == (
        "Hello you"
    )


def test_a_repeated_attempt_that_says_something_else_is_a_new_paragraph():
    pieces = (draft("Good d"), draft("Hel", attempt=2), draft("lo", at=3, attempt=2))

    assert told(*pieces, reply("Hello"), *end("Hello")) == "Good d|Hello"


def test_a_remark_before_a_call_ends_with_a_break():
    events = (
        reply("I look.", tool_calls=({},)),
        draft("Found", number=1),
        reply("Found", number=1),
    )

    assert told(*events, *end("Found")) == "I look.|Found"


def test_text_that_arrives_before_an_earlier_reply_is_sent_once():
    early = draft("Found", number=1)
    first = reply("I look.", tool_calls=({},))
    rest = (reply("Found it", number=1), *end("Found it"))

    assert told(early, first, *rest) == "I look.|Found it"
    assert told(early, first, early, *rest) == "I look.|Found it"
    assert told(early, reply("", tool_calls=({},)), *rest) == "Found it"


def test_a_summary_of_earlier_rounds_is_not_part_of_the_answer():
    summary = reply("It looked twice.", purpose="summary")

    assert told(summary, reply("Found", number=1), *end("Found")) == "Found"


def test_an_answer_that_no_reply_contains_comes_at_the_end():
    assert told(reply("I look.", tool_calls=({},)), *end("Limit.")) == "I look.|Limit."
    assert told(*end({"city": "Lima"})) == '{"city":"Lima"}'


def test_thoughts_of_text_formats_are_not_the_answer():
    events = (draft("Thought: 4"), reply("Thought: 4\nFinal Answer: 4"), *end("4"))

    assert told(*events, streams_text=False) == "4"
