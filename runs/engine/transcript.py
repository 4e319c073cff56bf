"""What the model sees: the prompt, earlier turns, and the rounds so far.

Each round is rendered once and reused, so that a step costs the same however long
the run is.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, assert_never

from runs.engine.kinds.kind import AgentKind, ScratchpadRound, render_observation_lines
from runs.engine.parsing.output_schema import format_schema_instruction
from runs.engine.prompts import render_template, variables_of_prompt
from runs.engine.types import (
    AgentSpec,
    HistoryTurn,
    Message,
    ModelRequest,
    PromptMessage,
    PromptSpec,
)
from tools.spec import ToolSpec
from tools.tool_name import build_function_name

FINAL_ANSWER_PROMPT = (
    "No further step is possible and no tool can be used any more. Give your final "
    "answer now, in the form agreed on, from what you know so far."
)
SCRATCHPAD = "{agent_scratchpad}"
_ROUND_LABEL = re.compile(r"(?:\A|\n)[^\S\n]*+([A-Za-z][\w ]{0,30}[:：])[^\S\n]*+\Z")
SUMMARY_PREFIX = "Summary of the steps before these:"

PromptSlot = PromptMessage | Literal["history", "rounds"]
RequestPart = Message | PromptMessage | Literal["rounds"]

NO_TOOLS = "(there are no tools)"

NO_ANSWER = "(There was no answer to this: the run was stopped.)"


@dataclass(frozen=True)
class RoundWindow:
    """The rounds that a request shows: from `first` up to `count`, counted from 0."""

    first: int
    count: int
    summary: str = ""
    """Stands for the rounds before `first`, if there is one."""


class Transcript:
    """Builds every request of a run."""

    def __init__(
        self,
        spec: AgentSpec,
        kind: AgentKind,
        *,
        inputs: Mapping[str, Any],
        turns: Sequence[HistoryTurn],
    ) -> None:
        prompt = spec.prompt or kind.prompt
        self._spec = spec
        self._kind = kind
        self._values: dict[str, Any] = {
            **inputs,
            **prompt.partials,
            "agent_scratchpad": "",
            "chat_history": history_text(turns),
        }
        self._tool_texts = render_tool_variables(spec.tools)
        self._functions = tuple(map(_build_function, spec.tools))
        schema = spec.executor.output_schema if kind.needs_functions else None
        self._base_request = ModelRequest(
            messages=(), stop=kind.stop, settings=spec.model, output_schema=schema
        )
        self._slots = _build_slots(prompt, kind)
        self._history = history_messages(turns)
        self._frames: dict[bool, tuple[RequestPart, ...]] = {}
        self._messages: list[Message] = []
        self._round_ends: list[int] = [0]
        self._texts: list[str] = []
        self._round_label = find_round_label(prompt, kind)

    def add_round(self, shown: ScratchpadRound) -> None:
        if self._kind.as_messages is not None:
            self._messages.extend(self._kind.as_messages(shown))
        if self._kind.as_text is not None:
            self._texts.append(self._label_round(self._kind.as_text(shown)))
        self._round_ends.append(len(self._messages))

    def _label_round(self, text: str) -> str:
        """End a round with the label that the prompt ends with (R17)."""
        label = self._round_label
        if not label:
            return text
        if self._texts:  # the previous round has written the label already
            text = f" {text.lstrip().removeprefix(label).lstrip()}"
        return text + label

    def build_request(self, shown: RoundWindow) -> ModelRequest:
        return self._build_request(
            self._build_messages(shown, with_tools=True), with_tools=True
        )

    def build_final_request(self, shown: RoundWindow) -> ModelRequest:
        """Return the request for a final answer, without tools (R11)."""
        messages = self._build_messages(shown, with_tools=False)
        nudge = Message.from_text("user", FINAL_ANSWER_PROMPT)
        return self._build_request((*messages, nudge), with_tools=False)

    def render_rounds(self, first: int, count: int) -> str:
        """Return rounds as lines of text, for a summary."""
        if self._kind.as_text is not None:
            return "".join(self._texts[first:count])
        rounds = self._messages[self._round_ends[first] : self._round_ends[count]]
        return "\n".join(_format_message(message) for message in rounds)

    def estimate_rounds_size(self, first: int, count: int) -> int:
        if self._kind.as_text is not None:
            return sum(
                estimate_tokens(text.encode()) for text in self._texts[first:count]
            )
        rounds = self._messages[self._round_ends[first] : self._round_ends[count]]
        return sum(message.size // 4 + 1 for message in rounds)

    def _build_messages(
        self, shown: RoundWindow, *, with_tools: bool
    ) -> tuple[Message, ...]:
        first, count = shown.first, shown.count
        lead = f"{SUMMARY_PREFIX} {shown.summary}\n" if shown.summary else ""
        rounds = self._messages[self._round_ends[first] : self._round_ends[count]]
        if lead and self._kind.as_messages is not None:
            rounds = [Message.from_text("user", lead), *rounds]
        pad = lead + "".join(self._texts[first:count])
        return tuple(self._fill_frame(rounds, pad, with_tools=with_tools))

    def _fill_frame(
        self, rounds: Sequence[Message], pad: str, *, with_tools: bool
    ) -> list[Message]:
        messages: list[Message] = []
        for part in self._get_frame(with_tools=with_tools):
            if isinstance(part, Message):
                messages.append(part)
            elif part == "rounds":
                messages.extend(rounds)
            else:
                values = self._tool_values(with_tools=with_tools)
                values = {**self._values, **values, "agent_scratchpad": pad}
                text = render_template(part.template, values)
                if text.strip():
                    messages.append(Message.from_text(part.role, text))
        return messages

    def _get_frame(self, *, with_tools: bool) -> tuple[RequestPart, ...]:
        """Return the fixed parts of a request, rendered once."""
        if with_tools not in self._frames:
            values = {**self._values, **self._tool_values(with_tools=with_tools)}
            self._frames[with_tools] = tuple(self._iter_parts(values))
        return self._frames[with_tools]

    def _iter_parts(self, values: Mapping[str, Any]) -> Iterator[RequestPart]:
        schema = self._spec.executor.output_schema
        if schema is not None:
            yield Message.from_text("system", format_schema_instruction(schema))
        for slot in self._slots:
            if slot == "history":
                yield from self._history
            elif slot == "rounds" or self._is_growing(slot):
                yield slot
            else:
                yield Message.from_text(
                    slot.role, render_template(slot.template, values)
                )

    def _is_growing(self, slot: PromptMessage) -> bool:
        names = variables_of_prompt(PromptSpec(template=slot.template))
        return self._kind.as_text is not None and "agent_scratchpad" in names

    def _tool_values(self, *, with_tools: bool) -> dict[str, str]:
        return self._tool_texts if with_tools else render_tool_variables(())

    def _build_request(
        self, messages: tuple[Message, ...], *, with_tools: bool
    ) -> ModelRequest:
        """Return a request without validating again what was validated when built."""
        calls_functions = self._kind.needs_functions
        tools = self._functions if with_tools and calls_functions else ()
        return self._base_request.model_copy(
            update={"messages": messages, "tools": tools}
        )


def _build_function(tool: ToolSpec) -> ToolSpec:
    """Return the tool as a function; the name it had begins its description."""
    name = build_function_name(tool.name)
    if name == tool.name:
        return tool
    description = f"{tool.name}. {tool.description}".strip()
    return tool.model_copy(update={"name": name, "description": description})


def find_round_label(prompt: PromptSpec, kind: AgentKind) -> str:
    """Return the label right before `{agent_scratchpad}`, such as `Thought:`."""
    if kind.as_text is not render_observation_lines:
        return ""
    messages = prompt.messages or (
        PromptMessage(role="user", template=prompt.template or ""),
    )
    for message in messages:
        before, scratchpad, _ = message.template.partition(SCRATCHPAD)
        if scratchpad and (label := _ROUND_LABEL.search(before)):
            return label[1]
    return ""


def estimate_tokens(raw: bytes) -> int:
    return len(raw) // 4 + 1


def _format_message(message: Message) -> str:
    calls = "".join(f"\n{call.name}({call.arguments})" for call in message.tool_calls)
    return f"{message.role}: {message.text}{calls}"


def _build_slots(prompt: PromptSpec, kind: AgentKind) -> tuple[PromptSlot, ...]:
    """Return the prompt's messages, with slots for earlier turns and rounds."""
    messages = prompt.messages
    if messages is None:
        messages = (PromptMessage(role="user", template=prompt.template or ""),)
    slots = [_build_slot(message, kind) for message in messages]
    if "history" not in slots and "chat_history" not in variables_of_prompt(prompt):
        slots.insert(_index_of_last_user(slots), "history")
    if kind.as_messages is not None and "rounds" not in slots:
        slots.append("rounds")
    return tuple(slots)


def _build_slot(message: PromptMessage, kind: AgentKind) -> PromptSlot:
    alone = message.template.strip()
    if alone == "{chat_history}":
        return "history"
    if alone == "{agent_scratchpad}" and kind.as_messages is not None:
        return "rounds"
    return message


def _index_of_last_user(slots: Sequence[PromptSlot]) -> int:
    users = [
        i
        for i, s in enumerate(slots)
        if isinstance(s, PromptMessage) and s.role == "user"
    ]
    return users[-1] if users else len(slots)


def render_tool_variables(tools: Sequence[ToolSpec]) -> dict[str, str]:
    """Return the variables `tools`, one paragraph per tool, and `tool_names`."""
    return {
        "tools": "\n".join(_format_tool(tool) for tool in tools) or NO_TOOLS,
        "tool_names": ", ".join(tool.name for tool in tools) or "none",
    }


def _format_tool(tool: ToolSpec) -> str:
    head = f"{tool.name}: {tool.description}" if tool.description else tool.name
    match tool.takes:
        case "text":
            return head
        case "nothing":
            return f"{head} (takes no input)"
        case "arguments":
            return f"{head} (input: {_format_arguments(tool)})"
        case _:
            assert_never(tool.takes)


def _format_arguments(tool: ToolSpec) -> str:
    schema = tool.args_schema or {}
    required = schema.get("required") or []
    text = json.dumps(schema["properties"], ensure_ascii=False)
    needs = f"; required: {', '.join(map(str, required))}" if required else ""
    return f"a JSON object with {text}{needs}"


def history_messages(turns: Sequence[HistoryTurn]) -> tuple[Message, ...]:
    return tuple(message for turn in turns for message in _turn_messages(turn))


def history_text(turns: Sequence[HistoryTurn]) -> str:
    """Return earlier turns as lines, for `{chat_history}`."""
    return "\n".join(line for turn in turns for line in _turn_lines(turn))


def _turn_messages(turn: HistoryTurn) -> Iterator[Message]:
    if turn.question is not None:
        yield Message.from_text("user", turn.question)
    if not turn.is_note:
        yield Message.from_text("assistant", _answer_text(turn))


def _turn_lines(turn: HistoryTurn) -> Iterator[str]:
    if turn.question is not None:
        yield f"Human: {turn.question}"
    if not turn.is_note:
        yield f"AI: {_answer_text(turn)}"


def _answer_text(turn: HistoryTurn) -> str:
    return NO_ANSWER if turn.answer is None else turn.answer
