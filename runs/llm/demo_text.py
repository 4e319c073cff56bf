"""The text formats of agents without function calling, as the demo model uses them."""

import json
import re
from dataclasses import dataclass
from typing import Literal

from runs.engine.types import Message
from tools.spec import ToolSpec

Form = Literal["plain", "react", "talk", "json", "xml", "self-ask", "docstore"]

MARKS: tuple[tuple[str, Form], ...] = (
    ("<tool_input>", "xml"),
    ('"action_input"', "json"),
    ("Follow up:", "self-ask"),
    ("Finish[", "docstore"),
    ("\nAI:", "talk"),
    ("Action Input:", "react"),
)
"""What tells a format by its instructions, the surest first."""

ASKED = re.compile(
    r"^[^\S\n]*(?:Question|Human):[^\S\n]*(\S.*?)[^\S\n]*$", re.MULTILINE
)
OFFERED = re.compile(
    r"(?:out of|one of|names are)(?::| (?=\[)| (?=[\w, -]+ or Finish\b)) *\[?"
    r"([\w-]+(?:, [\w-]+)*)"
)
WEATHER = re.compile(r"\b\w*weather\w*\b", re.IGNORECASE)
OBSERVED = re.compile(
    r"^Observation: ?(?P<line>.*?)(?=^Thought:|^\(Reply with|\Z)"
    r"|<observation>(?P<tag>.*?)</observation>"
    r"|^Result:\n(?P<result>.*?)\n\nGo on:"
    r"|^Intermediate answer: (?P<answer>[^\n]*)",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class TextScene:
    """What a prompt in a text format says."""

    form: Form
    question: str
    observations: tuple[str, ...]
    tools: tuple[ToolSpec, ...]


def read_prompt(messages: tuple[Message, ...]) -> TextScene:
    """Return format, question, results so far and tools of a prompt."""
    whole = "\n".join(one.text for one in messages)
    form: Form = next((form for mark, form in MARKS if mark in whole), "plain")
    asked = [
        at
        for at, one in enumerate(messages)
        if one.role == "user" and not one.text.startswith("Result:\n")
    ]
    last = messages[asked[-1]].text if asked else ""
    later = "\n".join(one.text for one in messages[asked[-1] + 1 :]) if asked else ""
    question, behind = _question(last)
    tail = f"{behind}\n{later}"
    found = (match[match.lastgroup or 0] for match in OBSERVED.finditer(tail))
    head = whole.removesuffix(tail.rstrip("\n"))
    return TextScene(form, question, tuple(map(str.strip, found)), _tools(head))


def _question(text: str) -> tuple[str, str]:
    """Return the question in a prompt, and what stands behind it."""
    labelled = list(ASKED.finditer(text))
    if labelled:
        return labelled[-1][1], text[labelled[-1].end() :]
    question, _, behind = text.partition("\n\n")
    return question.strip(), behind


def _tools(head: str) -> tuple[ToolSpec, ...]:
    offered = OFFERED.findall(head)
    names = offered[-1].split(", ") if offered else []
    if not names:
        names = [match[0] for match in WEATHER.finditer(head)][:1]
    return tuple(ToolSpec(name=name) for name in names)


def action_in(form: Form, thought: str, tool: str, arguments: str) -> str:
    """Return a call of `tool` in a text format."""
    match form:
        case "json":
            call = {"action": tool, "action_input": json.loads(arguments)}
            return _fenced(call)
        case "xml":
            return f"{thought}\n<tool>{tool}</tool><tool_input>{arguments}</tool_input>"
        case "self-ask":
            return f" Yes.\nFollow up: {arguments}"
        case "docstore":
            return f"Thought: {thought}\nAction: {tool}[{arguments}]"
        case _:
            head = f"Thought: {thought}\nAction: {tool}\n"
            return f"{head}Action Input: {arguments}\n"


def answer_in(form: Form, text: str) -> str:
    """Return an answer in a text format."""
    match form:
        case "plain":
            return text
        case "json":
            return _fenced({"action": "Final Answer", "action_input": text})
        case "xml":
            return f"<final_answer>{text}</final_answer>"
        case "self-ask":
            return f"So the final answer is: {text}"
        case "docstore":
            return f"Thought: I know enough.\nAction: Finish[{text}]"
        case "talk":
            return f"Thought: I know enough.\nAI: {text}"
        case "react":
            return f"Thought: I know enough.\nFinal Answer: {text}"


def _fenced(value: dict[str, object]) -> str:
    return f"```json\n{json.dumps(value, ensure_ascii=False)}\n```"
