"""Parsing of `Action:` and `Action Input:` lines (R4, R5)."""

from typing import NamedTuple

from runs.engine.errors import ParseError
from runs.engine.kinds.kind import Decision, ParsedCall, build_finish
from runs.engine.parsing.labels import (
    LabelWord,
    ReplyLabel,
    find_label_inside,
    find_labels,
)
from runs.engine.parsing.reply_text import unwrap_input
from runs.engine.toolbox import Toolbox
from tools.tool_name import strip_tool_name

FORMAT_HINT = (
    "Write either\nAction: the name of a tool\nAction Input: its input\n"
    "or\n{answer} your answer\nand never both."
)


class BracketedCall(NamedTuple):
    """`name[input]`, parsed; the input is unchanged."""

    name: str
    input: str


def parse_react_lines(
    text: str, toolbox: Toolbox, *, answer: LabelWord, answer_label: str
) -> Decision:
    """Parse a reply of labeled lines; `answer` is the label that ends the run.

    Beside `AI:`, an action counts only if it is well-formed (R3).
    """
    form = FORMAT_HINT.format(answer=answer_label)
    if not text.strip():
        raise ParseError(f"The reply is empty. {form}")
    labels = find_counted_labels(text, answer)
    action = next((label for label in labels if label.word == "action"), None)
    end = end_of_first_action(text, labels)
    answers = [la for la in labels if la.word == answer and la.start < end]
    if action is None and not answers:
        raise ParseError(f"The reply has neither an action nor an answer. {form}")
    if answers and (
        action is None or _is_action_malformed(text, labels, toolbox, answer)
    ):
        return build_finish(text[answers[-1].end : end].strip(), text)
    if answers:
        raise ParseError(
            f"The reply has both an action and an answer. {form}", tried_action=True
        )
    return (_parse_first_call(text, labels, toolbox),)


def _is_action_malformed(
    text: str, labels: list[ReplyLabel], toolbox: Toolbox, answer: LabelWord
) -> bool:
    """Whether the action beside an answer is malformed, and so does not count."""
    if answer != "ai":
        return False
    try:
        _parse_first_call(text, labels, toolbox)
    except ParseError:
        return True
    return False


def find_counted_labels(text: str, answer: LabelWord) -> list[ReplyLabel]:
    return find_labels(text, frozenset({"action", "input", answer}))


def end_of_first_action(text: str, labels: list[ReplyLabel]) -> int:
    """Return where a second `Action:` line begins, else the end of the text."""
    actions = [label for label in labels if label.word == "action"]
    return next((la.start for la in actions[1:] if la.is_at_line_start), len(text))


def first_line_after(text: str, label: ReplyLabel, rest: list[ReplyLabel]) -> str:
    """Return the first nonempty line after `label`, up to the next label."""
    end = rest[0].start if rest else len(text)
    return text[label.end : end].strip().partition("\n")[0].strip()


def parse_bracketed_call(line: str) -> BracketedCall | None:
    """Parse `name[input]`; return None if the line has another form."""
    bare = line.strip(" \t\r\"'`*")
    name, bracket, inside = bare.partition("[")
    if not bracket or not bare.endswith("]") or not strip_tool_name(name):
        return None
    return BracketedCall(strip_tool_name(name), inside[:-1])


def _parse_first_call(
    text: str, labels: list[ReplyLabel], toolbox: Toolbox
) -> ParsedCall:
    end = end_of_first_action(text, labels)
    action = next(label for label in labels if label.word == "action")
    rest = [label for label in labels if action.start < label.start < end]
    return _parse_call(text[:end], action, rest, toolbox)


def _parse_call(
    text: str, action: ReplyLabel, rest: list[ReplyLabel], toolbox: Toolbox
) -> ParsedCall:
    line = first_line_after(text, action, rest)
    name = strip_tool_name(line)
    if not name:
        raise ParseError(
            "The line `Action:` has no tool's name behind it.", tried_action=True
        )
    given = next((label for label in rest if label.word == "input"), None)
    parts = parse_bracketed_call(line)
    if given is not None:
        if parts and not toolbox.find(name) and toolbox.find(parts.name):
            name = parts.name
        return ParsedCall(name, unwrap_input(_input_after(text, given, rest)))
    if one_line := _parse_one_line_call(text, action, rest, toolbox):
        return one_line
    if parts:
        return ParsedCall(parts.name, unwrap_input(parts.input))
    tool = toolbox.find(name)
    if tool is None or tool.takes != "nothing":
        raise ParseError(
            "The action has no line `Action Input:` with the tool's input.",
            tried_action=True,
        )
    return ParsedCall(name, "")


def _parse_one_line_call(
    text: str, action: ReplyLabel, rest: list[ReplyLabel], toolbox: Toolbox
) -> ParsedCall | None:
    """Return the call of `Action: tool Action Input: text`, if the tool is known."""
    behind = text[action.end : rest[0].start if rest else len(text)]
    given = find_label_inside(behind, "input")
    if given is None:
        return None
    name = strip_tool_name(behind[: given.start])
    if not toolbox.find(name):
        return None
    return ParsedCall(name, unwrap_input(behind[given.end :]))


def _input_after(text: str, given: ReplyLabel, rest: list[ReplyLabel]) -> str:
    end = next((la.start for la in rest if la.start > given.start), len(text))
    return text[given.end : end]
