"""What a model call or tool call did, in one plain line."""

import json
import re
from typing import Any

CUT = 120
"""Characters of a line; the page clips it where it is narrower."""

TURNING = dict.fromkeys(
    [0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)], "\ufffd"
)
"""Characters that set the direction of others."""

THOUGHT = re.compile(r"^\s*Thought:\s*", re.IGNORECASE)
ANSWER = re.compile(
    r"Final Answer:|<final_answer>|\"action\":\s*\"Final Answer\"", re.I
)
MARKS = re.compile(r"^[#>*\-\s`]+|[*`]+")


def words_of_reply(reply: dict[str, Any], *, purpose: str = "plan") -> str:
    """Say what the model decided, from its own first words where it gave some."""
    if purpose == "summary":
        return "Sums up earlier rounds"
    if purpose == "early_stop":
        return "Answers at the limit"
    text = reply.get("text") or ""
    names = [call.get("name", "") for call in reply.get("tool_calls") or []]
    if not names and ANSWER.search(text):
        return "Answers"
    thought = first_line(THOUGHT.sub("", text)) if names or is_thought(text) else ""
    if thought:
        return thought
    if names:
        return f"Calls {listed(names)}"
    return "Answers" if text.strip() else "Says nothing"


def is_thought(text: str) -> bool:
    """Whether a text format's reply goes on to act."""
    return bool(THOUGHT.match(text)) or "\nAction:" in text


def listed(names: list[str]) -> str:
    """Return the names of tools, each once, with how often."""
    counted = {name: names.count(name) for name in names}
    shown = [name if n == 1 else f"{name} {n} times" for name, n in counted.items()]
    if len(shown) > 3:
        return f"{', '.join(shown[:3])} and {len(shown) - 3} more"
    return ", ".join(shown)


def first_line(text: str) -> str:
    """Return the first line with words in it, without Markdown's marks."""
    for line in text.split("\n", 20)[:20]:
        if line.lstrip().lower().startswith(("action:", "action input:")):
            return ""
        words = MARKS.sub("", line).strip()
        if words:
            return cut(words)
    return ""


def words_of_input(tool_input: Any) -> str:
    """Return the arguments of a call as one line: values, the names left out."""
    if tool_input is None:
        return ""
    if isinstance(tool_input, dict):
        return cut(", ".join(one_value(value) for value in tool_input.values()))
    return cut(one_value(tool_input))


def one_value(value: Any) -> str:
    """Return a value as a person would write it."""
    if isinstance(value, str):
        return " ".join(value[: CUT * 2].split())
    return json.dumps(value, ensure_ascii=False)


def words_of_result(observation: str) -> str:
    """Return the first words of what a tool answered."""
    return cut(" ".join(observation[: CUT * 2].split()))


def cut(text: str) -> str:
    """Return `text`, with an ellipsis where it is longer than a line.

    Characters that turn what follows around would turn the whole row: they are marked.
    """
    text = text if text.isascii() else text.translate(TURNING)
    return text if len(text) <= CUT else f"{text[: CUT - 1].rstrip()}…"
