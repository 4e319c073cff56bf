"""The texts of a step exactly as they are on record, for files and for copying."""

from typing import NamedTuple

from runs.models import Run
from runs.views.run_detail import (
    Place,
    indented,
    raw_request,
    raw_response,
    rebuilt_of,
)
from runs.views.run_prompt import text_of, tools_json
from runs.whole_number import whole_number


class RawText(NamedTuple):
    """A text, and how its file's name ends."""

    text: str
    kind: str = "txt"


def raw_text(run: Run, place: Place, what: str) -> RawText | None:
    """Return one text of a row; None where the row has none of that name.

    A message is asked for by its place in the request: `message-0` is the first.
    """
    match what.partition("-"):
        case ("request", "", ""):
            return RawText(raw_request(run, place)[0], "json")
        case ("tools" | "message" as name, _, number):
            return _of_prompt(run, place, name, number)
        case (name, "", ""):
            return _of_step(place, name) if place.step else _of_call(place, name)
    return None


def _of_prompt(run: Run, place: Place, name: str, number: str) -> RawText | None:
    rebuilt = rebuilt_of(run, place)
    if rebuilt is None:
        return None
    if name == "tools":
        return RawText(tools_json(rebuilt.request), "json") if not number else None
    messages, at = rebuilt.request.messages, whole_number(number)
    if at is None or at >= len(messages):
        return None
    return RawText(text_of(messages[at]))


def _of_step(place: Place, name: str) -> RawText | None:
    step = place.step
    assert step is not None
    match name:
        case "observation":
            return RawText(step.observation)
        case "input" if isinstance(step.tool_input, str):
            return RawText(step.tool_input)
        case "input":
            return RawText(indented(step.tool_input), "json")
        case "text":
            return RawText(step.log)
    return _of_call(place, name) if name == "response" else None


def _of_call(place: Place, name: str) -> RawText | None:
    if place.call is None:
        return None
    if name == "response":
        return RawText(raw_response(place)[0], "json")
    if name in ("text", "reasoning"):
        return RawText(place.call.reply.get(name) or "")
    return None
