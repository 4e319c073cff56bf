"""What the model is shown: the prompt, earlier turns, and the rounds so far.

Each round is turned into messages or text once and reused, so that a step costs the
same however long the run is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from runs.engine.kinds.kind import Kind, ShownRound
from runs.engine.memory import history_messages, history_text
from runs.engine.prompts import render, variables_of
from runs.engine.schema import schema_note
from runs.engine.tool_text import tool_texts
from runs.engine.types import (
    AgentSpec,
    Message,
    ModelRequest,
    PromptMessage,
    PromptSpec,
    Turn,
)

LAST_WORD = (
    "No further step is possible and no tool can be used any more. Give your final "
    "answer now, in the form agreed on, from what you know so far."
)
SUMMARY_LEAD = "Summary of the steps before these:"

Slot = PromptMessage | Literal["history", "rounds"]
Part = Message | PromptMessage | Literal["rounds"]


@dataclass(frozen=True)
class Shown:
    """Which rounds a request shows: from `first` up to `count`, counted from 0."""

    first: int
    count: int
    summary: str = ""
    """Stands for the rounds before `first`, where there is one."""


class Transcript:
    """Builds every request of a run."""

    def __init__(
        self,
        spec: AgentSpec,
        kind: Kind,
        *,
        inputs: Mapping[str, Any],
        turns: Sequence[Turn],
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
        self._tool_texts = tool_texts(spec.tools)
        schema = spec.executor.output_schema if kind.needs_functions else None
        self._bare_request = ModelRequest(
            messages=(), stop=kind.stop, settings=spec.model, output_schema=schema
        )
        self._slots = _slots(prompt, kind)
        self._history = history_messages(turns)
        self._frames: dict[bool, tuple[Part, ...]] = {}
        self._messages: list[Message] = []
        self._ends: list[int] = [0]
        self._texts: list[str] = []

    def add(self, shown: ShownRound) -> None:
        """Keep one more round."""
        if self._kind.as_messages is not None:
            self._messages.extend(self._kind.as_messages(shown))
        if self._kind.as_text is not None:
            self._texts.append(self._kind.as_text(shown))
        self._ends.append(len(self._messages))

    def request(self, shown: Shown) -> ModelRequest:
        """Return the request for the next round."""
        return self._made(self._all(shown, with_tools=True), with_tools=True)

    def last_request(self, shown: Shown) -> ModelRequest:
        """Return the request for a final answer, without tools (R11)."""
        messages = self._all(shown, with_tools=False)
        nudge = Message.of("user", LAST_WORD)
        return self._made((*messages, nudge), with_tools=False)

    def rounds_as_text(self, first: int, count: int) -> str:
        """Return rounds as lines of text, to be summarised."""
        if self._kind.as_text is not None:
            return "".join(self._texts[first:count])
        rounds = self._messages[self._ends[first] : self._ends[count]]
        return "\n".join(_line(message) for message in rounds)

    def size_of_rounds(self, first: int, count: int) -> int:
        """Return the estimated tokens that these rounds take."""
        if self._kind.as_text is not None:
            return sum(tokens_in(text.encode()) for text in self._texts[first:count])
        rounds = self._messages[self._ends[first] : self._ends[count]]
        return sum(tokens_in(message.canonical) for message in rounds)

    def _all(self, shown: Shown, *, with_tools: bool) -> tuple[Message, ...]:
        first, count = shown.first, shown.count
        lead = f"{SUMMARY_LEAD} {shown.summary}\n" if shown.summary else ""
        rounds = self._messages[self._ends[first] : self._ends[count]]
        if lead and self._kind.as_messages is not None:
            rounds = [Message.of("user", lead), *rounds]
        pad = lead + "".join(self._texts[first:count])
        return tuple(self._filled(rounds, pad, with_tools=with_tools))

    def _filled(
        self, rounds: Sequence[Message], pad: str, *, with_tools: bool
    ) -> list[Message]:
        messages: list[Message] = []
        for part in self._frame(with_tools=with_tools):
            if isinstance(part, Message):
                messages.append(part)
            elif part == "rounds":
                messages.extend(rounds)
            else:
                values = self._tool_values(with_tools=with_tools)
                values = {**self._values, **values, "agent_scratchpad": pad}
                text = render(part.template, values)
                if text.strip():
                    messages.append(Message.of(part.role, text))
        return messages

    def _frame(self, *, with_tools: bool) -> tuple[Part, ...]:
        """Return the parts of a request, rendered where they never change."""
        if with_tools not in self._frames:
            values = {**self._values, **self._tool_values(with_tools=with_tools)}
            self._frames[with_tools] = tuple(self._parts(values))
        return self._frames[with_tools]

    def _parts(self, values: Mapping[str, Any]) -> Iterator[Part]:
        schema = self._spec.executor.output_schema
        if schema is not None:
            yield Message.of("system", schema_note(schema))
        for slot in self._slots:
            if slot == "history":
                yield from self._history
            elif slot == "rounds" or self._is_growing(slot):
                yield slot
            else:
                yield Message.of(slot.role, render(slot.template, values))

    def _is_growing(self, slot: PromptMessage) -> bool:
        names = variables_of(PromptSpec(template=slot.template))
        return self._kind.as_text is not None and "agent_scratchpad" in names

    def _tool_values(self, *, with_tools: bool) -> dict[str, str]:
        return self._tool_texts if with_tools else tool_texts(())

    def _made(self, messages: tuple[Message, ...], *, with_tools: bool) -> ModelRequest:
        """Return a request without checking again what was checked when it was made."""
        calls_functions = self._kind.needs_functions
        tools = self._spec.tools if with_tools and calls_functions else ()
        return self._bare_request.model_copy(
            update={"messages": messages, "tools": tools}
        )


def tokens_in(raw: bytes) -> int:
    """Return about how many tokens a text takes."""
    return len(raw) // 4 + 1


def _line(message: Message) -> str:
    calls = "".join(f"\n{call.name}({call.arguments})" for call in message.tool_calls)
    return f"{message.role}: {message.text}{calls}"


def _slots(prompt: PromptSpec, kind: Kind) -> tuple[Slot, ...]:
    """Return the prompt's messages with the places of earlier turns and of rounds."""
    messages = prompt.messages
    if messages is None:
        messages = (PromptMessage(role="user", template=prompt.template or ""),)
    slots = [_slot(message, kind) for message in messages]
    if "history" not in slots and "chat_history" not in variables_of(prompt):
        slots.insert(_last_user(slots), "history")
    if kind.as_messages is not None and "rounds" not in slots:
        slots.append("rounds")
    return tuple(slots)


def _slot(message: PromptMessage, kind: Kind) -> Slot:
    alone = message.template.strip()
    if alone == "{chat_history}":
        return "history"
    if alone == "{agent_scratchpad}" and kind.as_messages is not None:
        return "rounds"
    return message


def _last_user(slots: Sequence[Slot]) -> int:
    users = [
        i
        for i, s in enumerate(slots)
        if isinstance(s, PromptMessage) and s.role == "user"
    ]
    return users[-1] if users else len(slots)
