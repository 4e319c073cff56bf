"""Parsing of `{"action": ..., "action_input": ...}` in a reply (R14).

Nothing is repaired: truncated or invalid JSON is not run. A reply is scanned from
brace to brace, and each piece is decoded once.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, assert_never

from runs.engine.errors import ParseError
from runs.engine.kinds.kind import Decision, ParsedCall, build_finish
from runs.engine.parsing.labels import ReplyLabel, find_labels
from runs.engine.parsing.reply_text import DecodedJson, decode_json_at
from tools.tool_name import strip_tool_name

FORMAT_HINT = (
    'Write one JSON object, {"action": "tool name", "action_input": its input}, or '
    '{"action": "Final Answer", "action_input": your answer}.'
)
FINAL_ANSWER = "final answer"

_OPENING = re.compile(r"""\{\s*+(?:["'/#]|(?i:action)\b)|\[\s*+\{\s*+["']""")
_MEANT_AS_FINAL = re.compile(r'"action"\s{0,20}:\s{0,20}"\s{0,20}final answer', re.I)
_FENCE_BEFORE = re.compile(r"```\w{0,20}\s{0,20}\Z")
_FLAT = re.compile(r"\{[^{}]*+\}")
_MAX_OBJECTS = 100


@dataclass(frozen=True)
class JsonBlob:
    """A JSON object of a reply, or what was meant to be one."""

    kind: Literal["action", "final", "broken"]
    start: int
    end: int
    name: str = ""
    input: Any = None
    problem: str = ""
    meant_as_final: bool = False


def parse_json_reply(text: str, *, label_ends: bool = False) -> Decision:
    """Parse a reply; with `label_ends` a label `Final Answer:` is an answer, too."""
    if not text.strip():
        raise ParseError(f"The reply is empty. {FORMAT_HINT}")
    blobs = _find_first_blobs(text)
    answers = _find_answer_labels(text, blobs) if label_ends else []
    if not blobs:
        if answers:
            return _finish_at_label(text, answers)
        raise ParseError(
            f"The reply holds no JSON object with an action. {FORMAT_HINT}"
        )
    first, others = blobs[0], blobs[1:]
    match first.kind:
        case "action":
            end = others[0].start if others else len(text)
            return _call_of_blob(first, [la for la in answers if la.start < end])
        case "final":
            return _finish_of_blob(text, first, others)
        case "broken":
            if answers:
                return _finish_at_label(text, answers)
            return _decide_beside_broken(text, first, others)
        case _:
            assert_never(first.kind)


def _find_first_blobs(text: str) -> list[JsonBlob]:
    """Return as many blobs as the decision needs."""
    blobs: list[JsonBlob] = []
    for blob in _find_blobs(text) if "action" in text else ():
        blobs.append(blob)
        if blobs[0].kind == "action" and len(blobs) == 2:
            break
    return blobs


def _find_blobs(text: str) -> Iterator[JsonBlob]:
    at = 0
    for _ in range(_MAX_OBJECTS):
        match = _OPENING.search(text, at)
        if match is None:
            return
        start = match.start()
        try:
            value, at = _decode_blob(text, start)
        except ValueError as error:
            if (aside := _skip_prose_braces(text, start)) is not None:
                at = aside
                continue
            problem = f"The JSON is not valid ({error})."
            at = _end_of_fence(text, start)
            final = (
                _MEANT_AS_FINAL.search(text, start, min(start + 200, at)) is not None
            )
            yield JsonBlob("broken", start, at, problem=problem, meant_as_final=final)
            continue
        blob = _build_blob(value, start, at)
        if blob is not None:
            yield blob
        elif _is_in_fence(text, start):
            problem = "The JSON object has no action."
            yield JsonBlob("broken", start, at, problem=problem)


def _decode_blob(text: str, start: int) -> DecodedJson:
    if text[max(0, start - 20) : start].rstrip().endswith("{"):
        raise ValueError("a brace is doubled")
    return decode_json_at(text, start)


def _skip_prose_braces(text: str, start: int) -> int | None:
    """Return the end of braces in prose, which are not meant as an action."""
    braces = _FLAT.match(text, start)
    if braces is None or "action" in braces[0] or _is_in_fence(text, start):
        return None
    return braces.end()


def _is_in_fence(text: str, start: int) -> bool:
    return _FENCE_BEFORE.search(text, max(0, start - 50), start) is not None


def _end_of_fence(text: str, start: int) -> int:
    """Return where the text behind the fence line after `start` begins."""
    fence = text.find("\n```", start)
    return len(text) if fence < 0 else fence + len("\n```")


def _build_blob(value: Any, start: int, end: int) -> JsonBlob | None:
    found = value[0] if isinstance(value, list) else value
    if "action" not in found:
        return None
    action = found["action"]
    name = strip_tool_name(action) if isinstance(action, str) else ""
    given = found.get("action_input")
    if not name:
        problem = "The value of `action` must be a tool's name."
        return JsonBlob("broken", start, end, problem=problem)
    if name.casefold() == FINAL_ANSWER:
        if "action_input" in found:
            return JsonBlob("final", start, end, input=given)
        problem = "The final answer has no `action_input`."
        return JsonBlob("broken", start, end, problem=problem, meant_as_final=True)
    if "action_input" not in found and (unknown := set(found) - {"action"}):
        problem = f"The object has no `action_input`, but {min(unknown)[:40]!r}."
        return JsonBlob("broken", start, end, problem=problem)
    if isinstance(given, (bool, int, float, list)):
        problem = "The value of `action_input` must be a text or an object."
        return JsonBlob("broken", start, end, problem=problem)
    return JsonBlob("action", start, end, name=name, input=given)


def _find_answer_labels(text: str, blobs: list[JsonBlob]) -> list[ReplyLabel]:
    """Return the labels `Final Answer:` outside the first object."""
    labels = find_labels(text, frozenset({"action", "input", "answer"}))
    answers = [label for label in labels if label.word == "answer"]
    if not blobs:
        return answers
    first = blobs[0]
    if first.kind == "broken":
        return [la for la in answers if la.is_at_line_start or la.start < first.start]
    return [la for la in answers if not first.start <= la.start < first.end]


def _finish_at_label(text: str, answers: list[ReplyLabel]) -> Decision:
    return build_finish(text[answers[-1].end :].strip(), text)


def _call_of_blob(blob: JsonBlob, answers: list[ReplyLabel]) -> Decision:
    if answers:
        message = f"The reply has both an action and a final answer. {FORMAT_HINT}"
        raise ParseError(message, tried_action=True)
    return (ParsedCall(blob.name, blob.input),)


def _finish_of_blob(text: str, blob: JsonBlob, others: list[JsonBlob]) -> Decision:
    if any(other.kind == "action" for other in others):
        message = f"The reply has both a final answer and an action. {FORMAT_HINT}"
        raise ParseError(message, tried_action=True)
    return build_finish(blob.input, text)


def _decide_beside_broken(
    text: str, broken: JsonBlob, others: list[JsonBlob]
) -> Decision:
    """Return the action or answer that is well-formed, if there is exactly one (R3)."""
    other = next((blob for blob in others if blob.kind != "broken"), None)
    if other is not None and (other.kind == "final") != broken.meant_as_final:
        return (
            _finish_of_blob(text, other, [])
            if other.kind == "final"
            else _call_of_blob(other, [])
        )
    raise ParseError(f"{broken.problem} {FORMAT_HINT}", tried_action=True)
