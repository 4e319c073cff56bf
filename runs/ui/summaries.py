"""One-line summaries of model calls and tool calls."""

import json
import re
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

MAX_LINE_CHARACTERS = 120
"""Maximum characters of a line; narrow pages clip it further."""

BIDI_CONTROLS = dict.fromkeys(
    [0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)], "\ufffd"
)
"""Characters that change the direction of the text after them."""

THOUGHT_PREFIX = re.compile(r"^\s*Thought:\s*", re.IGNORECASE)
ANSWER_MARKER = re.compile(
    r"Final Answer:|<final_answer>|\"action\":\s*\"Final Answer\"", re.I
)
MARKDOWN_MARKS = re.compile(r"^[#>*\-\s`]+|[*`]+")


def summarize_reply(reply: dict[str, Any], *, purpose: str = "plan") -> str:
    """Summarize a reply, in the model's own first words if it gave any."""
    if purpose == "summary":
        return _("Summarizes earlier rounds")
    if purpose == "early_stop":
        return _("Answers at the limit")
    text = reply.get("text") or ""
    names = [call.get("name", "") for call in reply.get("tool_calls") or []]
    if is_answer(reply):
        return _("Answers")
    thought = (
        get_first_line(THOUGHT_PREFIX.sub("", text))
        if names or is_thought(text)
        else ""
    )
    if thought:
        return thought
    if names:
        return _("Calls %(tools)s") % {"tools": format_tool_counts(names)}
    return _("Empty reply")


def is_answer(reply: dict[str, Any]) -> bool:
    """Whether a reply is an answer: it calls no tool and says more than a thought."""
    text = reply.get("text") or ""
    if reply.get("tool_calls"):
        return False
    if ANSWER_MARKER.search(text):
        return True
    thought = THOUGHT_PREFIX.sub("", text) if is_thought(text) else ""
    return bool(text.strip()) and not get_first_line(thought)


def is_thought(text: str) -> bool:
    """Whether a reply in a text format continues with an action."""
    return bool(THOUGHT_PREFIX.match(text)) or "\nAction:" in text


def format_tool_counts(names: list[str]) -> str:
    """Return the names of up to three tools, each once, with its number of calls."""
    counted = {name: names.count(name) for name in names}
    return format_names(
        [name if n == 1 else f"{name} ×{n}" for name, n in counted.items()], at_most=3
    )


def format_names(names: list[str], *, at_most: int) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - at_most
    if more > 0:
        return ngettext(
            "%(names)s and %(count)s more", "%(names)s and %(count)s more", more
        ) % {"names": ", ".join(names[:at_most]), "count": more}
    return ", ".join(names)


def get_first_line(text: str) -> str:
    """Return the first line with text, without Markdown marks."""
    for line in text.split("\n", 20)[:20]:
        if line.lstrip().lower().startswith(("action:", "action input:")):
            return ""
        words = MARKDOWN_MARKS.sub("", line).strip()
        if words:
            return truncate_line(words)
    return ""


def summarize_input(tool_input: Any) -> str:
    """Return the values of a call's arguments in one line."""
    if tool_input is None:
        return ""
    if isinstance(tool_input, dict):
        return truncate_line(
            ", ".join(format_argument_value(value) for value in tool_input.values())
        )
    return truncate_line(format_argument_value(tool_input))


def format_argument_value(value: Any) -> str:
    """Return a string in one line, another value as JSON."""
    if isinstance(value, str):
        return " ".join(value[: MAX_LINE_CHARACTERS * 2].split())
    return json.dumps(value, ensure_ascii=False)


def summarize_result(observation: str) -> str:
    """Return the beginning of a tool's result in one line."""
    return truncate_line(" ".join(observation[: MAX_LINE_CHARACTERS * 2].split()))


def truncate_line(text: str) -> str:
    """Return `text`, cut with an ellipsis if it is longer than a line.

    Bidirectional control characters are replaced: they would affect the whole row.
    """
    text = text if text.isascii() else text.translate(BIDI_CONTROLS)
    return (
        text
        if len(text) <= MAX_LINE_CHARACTERS
        else f"{text[: MAX_LINE_CHARACTERS - 1].rstrip()}…"
    )
