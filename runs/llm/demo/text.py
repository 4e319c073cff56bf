"""The text formats of agents without function calling, as the demo model uses them."""

import json
import re
from dataclasses import dataclass

from runs.engine.types import Message
from tools.spec import ToolSpec

FORMAT_MARKERS = {
    "<tool_input>": "xml",
    '"action_input"': "json",
    "Follow up:": "self-ask",
    "Finish[": "docstore",
    "\nAI:": "conversational",
    "Action Input:": "react",
}
"""The text in a prompt that identifies its format, most specific first."""

PLAIN = "plain"
"""A prompt that explains no way of calling tools, so it has none."""

QUESTION_LINE = re.compile(
    r"^[^\S\n]*(?:Question|Human):[^\S\n]*(\S.*?)[^\S\n]*$", re.MULTILINE
)
TOOL_LIST = re.compile(
    r"(?:out of|one of|names are)(?::| (?=\[)| (?=[\w, -]+ or Finish\b)) *\[?"
    r"([\w-]+(?:, [\w-]+)*)"
)
WEATHER_TOOL_NAME = re.compile(r"\b\w*weather\w*\b", re.IGNORECASE)
OBSERVATION_BLOCK = re.compile(
    r"^Observation: ?(?P<line>.*?)(?=^Thought:|^\(Reply with|\Z)"
    r"|<observation>(?P<tag>.*?)</observation>"
    r"|^Result:\n(?P<result>.*?)\n\nGo on:"
    r"|^Intermediate answer: (?P<answer>.*?)(?=^(?: Yes\.\n)?Follow up:|\Z)",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class TextPrompt:
    """A prompt in a text format, taken apart."""

    text_format: str
    question: str
    observations: tuple[str, ...]
    tools: tuple[ToolSpec, ...]


def parse_text_prompt(messages: tuple[Message, ...]) -> TextPrompt:
    """Find the format, last question, observations since and tools in a prompt."""
    whole = "\n".join(one.text for one in messages)
    formats = (name for mark, name in FORMAT_MARKERS.items() if mark in whole)
    asked = [
        at
        for at, one in enumerate(messages)
        if one.role == "user" and not one.text.startswith("Result:\n")
    ]
    last, *later = [one.text for one in messages[asked[-1] :]] if asked else [""]
    lines = list(QUESTION_LINE.finditer(last))
    question, _, rest = last.partition("\n\n")
    if lines:
        question, rest = lines[-1][1], last[lines[-1].end() :]
    tail = "\n".join([rest, *later])
    found = (match[match.lastgroup or 0] for match in OBSERVATION_BLOCK.finditer(tail))
    head = whole.removesuffix(tail.rstrip("\n"))
    text_format = next(formats, PLAIN)
    return TextPrompt(
        text_format,
        question.strip(),
        tuple(map(str.strip, found)),
        () if text_format == PLAIN else _parse_tools(head),
    )


def _parse_tools(head: str) -> tuple[ToolSpec, ...]:
    lists = TOOL_LIST.findall(head)
    names = lists[-1].split(", ") if lists else WEATHER_TOOL_NAME.findall(head)[:1]
    return tuple(ToolSpec(name=name) for name in names)


def format_demo_action(
    text_format: str, thought: str, tool: str, arguments: str
) -> str:
    match text_format:
        case "json":
            return _fence_json(tool, json.loads(arguments))
        case "xml":
            return f"{thought}\n<tool>{tool}</tool><tool_input>{arguments}</tool_input>"
        case "self-ask":
            return f" Yes.\nFollow up: {arguments}"
        case "docstore":
            return f"Thought: {thought}\nAction: {tool}[{arguments}]"
    return f"Thought: {thought}\nAction: {tool}\nAction Input: {arguments}\n"


def format_demo_answer(text_format: str, text: str) -> str:
    if text_format == "json":
        return _fence_json("Final Answer", text)
    templates = {
        "xml": "<final_answer>{}</final_answer>",
        "self-ask": "So the final answer is: {}",
        "docstore": "Thought: I know enough.\nAction: Finish[{}]",
        "conversational": "Thought: I know enough.\nAI: {}",
        "react": "Thought: I know enough.\nFinal Answer: {}",
    }
    return templates.get(text_format, "{}").replace("{}", text)


def _fence_json(action: str, action_input: object) -> str:
    value = {"action": action, "action_input": action_input}
    return f"```json\n{json.dumps(value, ensure_ascii=False)}\n```"
