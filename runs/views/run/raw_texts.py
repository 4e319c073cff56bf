"""The exact texts of a step, for downloads and for copying."""

from typing import NamedTuple

from runs.models import Run
from runs.views.run.prompt import dump_request_tools, get_message_text
from runs.views.run.raw_request import build_raw_request, build_raw_response
from runs.views.run.step_detail import RowRecord, indent_json, rebuild_row_prompt
from runs.whole_number import parse_whole_number


class RawText(NamedTuple):
    text: str
    kind: str = "txt"


def get_raw_text(run: Run, place: RowRecord, what: str) -> RawText | None:
    """Return one text of a row; None if the row has none of that name.

    Messages are named by their position in the request: `message-0` is the first.
    """
    match what.partition("-"):
        case ("request", "", ""):
            return RawText(build_raw_request(run, place).text, "json")
        case ("tools" | "message" as name, _, number):
            return _get_prompt_text(run, place, name, number)
        case (name, "", ""):
            return (
                _get_step_text(place, name)
                if place.step
                else _get_call_text(place, name)
            )
    return None


def _get_prompt_text(
    run: Run, place: RowRecord, name: str, number: str
) -> RawText | None:
    rebuilt = rebuild_row_prompt(run, place)
    if rebuilt is None:
        return None
    if name == "tools":
        return (
            RawText(dump_request_tools(rebuilt.request), "json") if not number else None
        )
    messages, at = rebuilt.request.messages, parse_whole_number(number)
    if at is None or at >= len(messages):
        return None
    return RawText(get_message_text(messages[at]))


def _get_step_text(place: RowRecord, name: str) -> RawText | None:
    step = place.step
    assert step is not None
    match name:
        case "observation":
            return RawText(step.observation)
        case "input" if isinstance(step.tool_input, str):
            return RawText(step.tool_input)
        case "input":
            return RawText(indent_json(step.tool_input), "json")
        case "text":
            return RawText(step.log)
    return _get_call_text(place, name) if name == "response" else None


def _get_call_text(place: RowRecord, name: str) -> RawText | None:
    if place.call is None:
        return None
    if name == "response":
        return RawText(build_raw_response(place)[0], "json")
    if name in ("text", "reasoning"):
        return RawText(place.call.reply.get(name) or "")
    return None
