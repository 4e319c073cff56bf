"""Reading `Action:` and `Action Input:` lines (R4, R5)."""

from typing import NamedTuple

from runs.engine.errors import ParseError
from runs.engine.kinds.kind import Call, Decision, finish
from runs.engine.labels import Label, Word, labels_in
from runs.engine.reading import input_text
from runs.engine.toolbox import Toolbox, stripped_name

FORMAT = (
    "Write either\nAction: the name of a tool\nAction Input: its input\n"
    "or\n{answer} your answer\nand never both."
)


class Bracketed(NamedTuple):
    """`name[input]`, taken apart; the input is as it was written."""

    name: str
    input: str


def read_lines(
    text: str, toolbox: Toolbox, *, answer: Word, answer_label: str
) -> Decision:
    """Understand a reply of labelled lines; `answer` is the label that ends the run.

    Beside `AI:`, an action counts only if it is well-formed (R3).
    """
    form = FORMAT.format(answer=answer_label)
    if not text.strip():
        raise ParseError(f"The reply is empty. {form}")
    labels = counted_labels(text, answer)
    action = next((label for label in labels if label.word == "action"), None)
    end = end_of_first_action(text, labels)
    answers = [la for la in labels if la.word == answer and la.start < end]
    if action is None and not answers:
        raise ParseError(f"The reply has neither an action nor an answer. {form}")
    if answers and (action is None or _lets_answer(text, labels, toolbox, answer)):
        return finish(text[answers[-1].end : end].strip(), text)
    if answers:
        raise ParseError(
            f"The reply has both an action and an answer. {form}", tried_action=True
        )
    return (_first_call(text, labels, toolbox),)


def _lets_answer(
    text: str, labels: list[Label], toolbox: Toolbox, answer: Word
) -> bool:
    """Say whether the action beside an answer is not well-formed, so does not count."""
    if answer != "ai":
        return False
    try:
        _first_call(text, labels, toolbox)
    except ParseError:
        return True
    return False


def counted_labels(text: str, answer: Word) -> list[Label]:
    """Return the labels of a reply that count."""
    return labels_in(text, frozenset({"action", "input", answer}))


def end_of_first_action(text: str, labels: list[Label]) -> int:
    """Return where a second `Action:` line begins, else the end of the text."""
    actions = [label for label in labels if label.word == "action"]
    return next((la.start for la in actions[1:] if la.leads), len(text))


def first_line_behind(text: str, label: Label, rest: list[Label]) -> str:
    """Return the first line behind `label` that is not empty, up to the next label."""
    end = rest[0].start if rest else len(text)
    return text[label.end : end].strip().partition("\n")[0].strip()


def bracketed(line: str) -> Bracketed | None:
    """Take `name[input]` apart; None where the line has another form."""
    bare = line.strip(" \t\r\"'`*")
    name, bracket, inside = bare.partition("[")
    if not bracket or not bare.endswith("]") or not stripped_name(name):
        return None
    return Bracketed(stripped_name(name), inside[:-1])


def _first_call(text: str, labels: list[Label], toolbox: Toolbox) -> Call:
    end = end_of_first_action(text, labels)
    action = next(label for label in labels if label.word == "action")
    rest = [label for label in labels if action.start < label.start < end]
    return _call(text[:end], action, rest, toolbox)


def _call(text: str, action: Label, rest: list[Label], toolbox: Toolbox) -> Call:
    line = first_line_behind(text, action, rest)
    name = stripped_name(line)
    if not name:
        raise ParseError(
            "The line `Action:` has no tool's name behind it.", tried_action=True
        )
    given = next((label for label in rest if label.word == "input"), None)
    parts = bracketed(line)
    if given is not None:
        if parts and not toolbox.find(name) and toolbox.find(parts.name):
            name = parts.name
        return Call(name, input_text(_input_behind(text, given, rest)))
    if parts:
        return Call(parts.name, input_text(parts.input))
    tool = toolbox.find(name)
    if tool is None or tool.takes != "nothing":
        raise ParseError(
            "The action has no line `Action Input:` with the tool's input.",
            tried_action=True,
        )
    return Call(name, "")


def _input_behind(text: str, given: Label, rest: list[Label]) -> str:
    end = next((la.start for la in rest if la.start > given.start), len(text))
    return text[given.end : end]
