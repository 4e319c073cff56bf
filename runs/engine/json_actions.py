"""Reading `{"action": ..., "action_input": ...}` out of a reply (R14).

Nothing is ever repaired: what is cut off or no valid JSON is not run. A reply is walked
from brace to brace, each piece of it decoded once.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, assert_never

from runs.engine.errors import ParseError
from runs.engine.kinds.kind import Call, Decision, finish
from runs.engine.labels import Label, labels_in
from runs.engine.reading import Decoded, decode_at
from runs.engine.toolbox import stripped_name

FORM = (
    'Write one JSON object, {"action": "tool name", "action_input": its input}, or '
    '{"action": "Final Answer", "action_input": your answer}.'
)
FINAL = "final answer"

_OPENING = re.compile(r"""\{\s*+(?:["'/#]|(?i:action)\b)|\[\s*+\{\s*+["']""")
_MEANT_AS_FINAL = re.compile(r'"action"\s{0,20}:\s{0,20}"\s{0,20}final answer', re.I)
_FENCE_BEFORE = re.compile(r"```\w{0,20}\s{0,20}\Z")
_FLAT = re.compile(r"\{[^{}]*+\}")
_MOST_OBJECTS = 100


@dataclass(frozen=True)
class Blob:
    """One JSON object of a reply, or what was meant to be one."""

    sort: Literal["action", "final", "broken"]
    start: int
    end: int
    name: str = ""
    input: Any = None
    problem: str = ""
    meant_as_final: bool = False


def read_json(text: str, *, label_ends: bool = False) -> Decision:
    """Understand a reply; `label_ends`: a label `Final Answer:` is an answer, too."""
    if not text.strip():
        raise ParseError(f"The reply is empty. {FORM}")
    blobs = _first_blobs(text)
    answers = _answers(text, blobs) if label_ends else []
    if not blobs:
        if answers:
            return _labelled(text, answers)
        raise ParseError(f"The reply holds no JSON object with an action. {FORM}")
    first, others = blobs[0], blobs[1:]
    match first.sort:
        case "action":
            end = others[0].start if others else len(text)
            return _action(first, [la for la in answers if la.start < end])
        case "final":
            return _final(text, first, others)
        case "broken":
            if answers:
                return _labelled(text, answers)
            return _beside_broken(text, first, others)
        case _:
            assert_never(first.sort)


def _first_blobs(text: str) -> list[Blob]:
    """Return as many blobs as the decision needs."""
    blobs: list[Blob] = []
    for blob in _blobs(text) if "action" in text else ():
        blobs.append(blob)
        if blobs[0].sort == "action" and len(blobs) == 2:
            break
    return blobs


def _blobs(text: str) -> Iterator[Blob]:
    at = 0
    for _ in range(_MOST_OBJECTS):
        match = _OPENING.search(text, at)
        if match is None:
            return
        start = match.start()
        try:
            value, at = _decoded(text, start)
        except ValueError as error:
            if (aside := _aside(text, start)) is not None:
                at = aside
                continue
            problem = f"The JSON is not valid ({error})."
            at = _behind_fence(text, start)
            final = (
                _MEANT_AS_FINAL.search(text, start, min(start + 200, at)) is not None
            )
            yield Blob("broken", start, at, problem=problem, meant_as_final=final)
            continue
        blob = _blob(value, start, at)
        if blob is not None:
            yield blob
        elif _fenced(text, start):
            problem = "The JSON object has no action."
            yield Blob("broken", start, at, problem=problem)


def _decoded(text: str, start: int) -> Decoded:
    if text[max(0, start - 20) : start].rstrip().endswith("{"):
        raise ValueError("a brace is doubled")
    return decode_at(text, start)


def _aside(text: str, start: int) -> int | None:
    """Return the end of braces in prose, which are no attempt at an action."""
    braces = _FLAT.match(text, start)
    if braces is None or "action" in braces[0] or _fenced(text, start):
        return None
    return braces.end()


def _fenced(text: str, start: int) -> bool:
    return _FENCE_BEFORE.search(text, max(0, start - 50), start) is not None


def _behind_fence(text: str, start: int) -> int:
    """Return where the text behind the fence line after `start` begins."""
    fence = text.find("\n```", start)
    return len(text) if fence < 0 else fence + len("\n```")


def _blob(value: Any, start: int, end: int) -> Blob | None:
    found = value[0] if isinstance(value, list) else value
    if "action" not in found:
        return None
    action = found["action"]
    name = stripped_name(action) if isinstance(action, str) else ""
    given = found.get("action_input")
    if not name:
        problem = "The value of `action` must be a tool's name."
        return Blob("broken", start, end, problem=problem)
    if name.casefold() == FINAL:
        if "action_input" in found:
            return Blob("final", start, end, input=given)
        problem = "The final answer has no `action_input`."
        return Blob("broken", start, end, problem=problem, meant_as_final=True)
    if isinstance(given, (bool, int, float, list)):
        problem = "The value of `action_input` must be a text or an object."
        return Blob("broken", start, end, problem=problem)
    return Blob("action", start, end, name=name, input=given)


def _answers(text: str, blobs: list[Blob]) -> list[Label]:
    """Return the labels `Final Answer:` that are no part of the first object."""
    labels = labels_in(text, frozenset({"action", "input", "answer"}))
    answers = [label for label in labels if label.word == "answer"]
    if not blobs:
        return answers
    first = blobs[0]
    if first.sort == "broken":
        return [la for la in answers if la.leads or la.start < first.start]
    return [la for la in answers if not first.start <= la.start < first.end]


def _labelled(text: str, answers: list[Label]) -> Decision:
    return finish(text[answers[-1].end :].strip(), text)


def _action(blob: Blob, answers: list[Label]) -> Decision:
    if answers:
        told = f"The reply has both an action and a final answer. {FORM}"
        raise ParseError(told, tried_action=True)
    return (Call(blob.name, blob.input),)


def _final(text: str, blob: Blob, others: list[Blob]) -> Decision:
    if any(other.sort == "action" for other in others):
        told = f"The reply has both a final answer and an action. {FORM}"
        raise ParseError(told, tried_action=True)
    return finish(blob.input, text)


def _beside_broken(text: str, broken: Blob, others: list[Blob]) -> Decision:
    """Return the one of action and answer that is well-formed, if just one is (R3)."""
    other = next((blob for blob in others if blob.sort != "broken"), None)
    if other is not None and (other.sort == "final") != broken.meant_as_final:
        return _final(text, other, []) if other.sort == "final" else _action(other, [])
    raise ParseError(f"{broken.problem} {FORM}", tried_action=True)
