"""The tab What the model saw: messages as sent, the new ones marked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from runs.engine.types import ExecutorOptions, Message, ModelRequest
from runs.models import ModelCall, Run
from runs.services.freeze_agent import spec_of
from runs.views.plain_words import cut
from runs.views.run_detail import Place, body_as_sent, indented, rebuilt_of

CHARACTERS_A_TOKEN = 4
MOST_OLD = 24
"""Old messages up to which all of them are listed."""
FIRST, LAST = 4, 12
"""Old messages listed where there are more."""
MOST_NEW = 60

ROLES = {"system": "System", "user": "Person", "assistant": "Model", "tool": "Tool"}


class Shown(NamedTuple):
    """One message as it is listed, or the place of several that are not."""

    role: str
    text: str
    begin: str
    tokens: int
    at: int = 0
    """Its place in the request."""
    is_new: bool = False
    skipped: int = 0
    """How many messages it stands for."""

    @property
    def name(self) -> str:
        """What its exact text is asked for by."""
        return f"message-{self.at}"


class Part(NamedTuple):
    """A part of the request by its tokens; places in percent."""

    tone: str
    word: str
    tokens: int
    x: str
    width: str


@dataclass(frozen=True)
class Listed:
    """The messages of a request, as many as are listed."""

    messages: tuple[Message, ...]
    tokens: Sequence[int]
    """Of each message."""
    known: int
    """How many the call before had sent already; the others are new."""

    def shown(self, *, is_whole: bool) -> list[Shown]:
        """Return what is listed; with `is_whole`, every message."""
        known, count = self.known, len(self.messages)
        if is_whole:
            return self._each(0, count)
        first = known if known <= MOST_OLD else FIRST
        last, newest = max(first, known - LAST), max(known, count - MOST_NEW)
        return [
            *self._each(0, first),
            *self._skipped(first, last),
            *self._each(last, known),
            *self._skipped(known, newest),
            *self._each(newest, count),
        ]

    def _each(self, start: int, end: int) -> list[Shown]:
        return [self._one(at) for at in range(start, end)]

    def _one(self, at: int) -> Shown:
        message = self.messages[at]
        text = text_of(message)
        begin = cut(" ".join(text[:300].split()))
        role, is_new = ROLES[message.role], at >= self.known
        return Shown(role, text, begin, self.tokens[at], at, is_new=is_new)

    def _skipped(self, start: int, end: int) -> list[Shown]:
        """Return one line for messages that are not listed."""
        tokens = sum(self.tokens[start:end])
        return [Shown("", "", "", tokens, skipped=end - start)] if end > start else []


def prompt_tab(run: Run, place: Place, *, is_whole: bool) -> dict[str, Any]:
    """Return the messages a call sent, those new since the call before marked."""
    rebuilt = rebuilt_of(run, place)
    if rebuilt is None:
        return {"is_lost": True}
    call, request = place.call, rebuilt.request
    messages = request.messages
    tokens = [tokens_in(text_of(message)) for message in messages]
    listed = Listed(messages, tokens, rebuilt.known)
    tools = tools_json(request)
    parts = parts_of(listed, tools if request.tools else "")
    guessed = sum(part.tokens for part in parts)
    counted = call.input_tokens if call else 0
    options = spec_of(run.spec).executor
    return {
        "is_unsent": call is None,
        "agrees": rebuilt.agrees,
        "tokens": counted or guessed,
        "is_counted": counted > 0,
        "guessed": guessed,
        "limit": options.context_tokens,
        "parts": parts,
        "left_out": left_out_words(call, options) if call else "",
        "messages": listed.shown(is_whole=is_whole),
        "tools": ", ".join(tool.name for tool in request.tools),
        "tools_json": tools,
        "tools_tokens": tokens_in(tools),
    }


def tools_json(request: ModelRequest) -> str:
    """Return the tools of a request as they are sent, indented."""
    alone = request.model_copy(update={"messages": ()})
    return indented(body_as_sent(alone).get("tools", []))


def parts_of(listed: Listed, tools: str) -> list[Part]:
    """Return what takes how many tokens: prompt and tools, old rounds, what is new."""
    messages, sizes = listed.messages, listed.tokens
    begun = next(
        (n for n, one in enumerate(messages) if one.role in ("assistant", "tool")),
        len(messages),
    )
    known = max(listed.known, begun)
    spans = [
        ("model", "prompt and tools", sum(sizes[:begun]) + tokens_in(tools)),
        ("first", "earlier rounds", sum(sizes[begun:known])),
        ("live", "new", sum(sizes[known:])),
    ]
    whole, at, parts = sum(tokens for *_, tokens in spans) or 1, 0.0, []
    for tone, word, tokens in spans:
        share = tokens / whole * 100
        if tokens:
            parts.append(Part(tone, word, tokens, f"{at:.2f}%", f"{share:.2f}%"))
        at += share
    return parts


def text_of(message: Message) -> str:
    """Return a message's text, and the calls it asks for."""
    if not message.tool_calls:
        return message.text
    calls = [f"{call.name}({call.arguments})" for call in message.tool_calls]
    return "\n".join(filter(None, [message.text, *calls]))


def tokens_in(text: str) -> int:
    """Guess how many tokens a text takes; Chinese takes about one a character.

    Its characters take three bytes each.
    """
    if text.isascii():
        return -(-len(text) // CHARACTERS_A_TOKEN)
    wide = (len(text.encode("utf-8", "replace")) - len(text)) // 2
    return -(-(len(text) - wide) // CHARACTERS_A_TOKEN) + wide


def left_out_words(call: ModelCall, options: ExecutorOptions) -> str:
    """Say which rounds the request did not show, and why; empty where it showed all."""
    rounds = call.left_out
    if not rounds:
        return ""
    which = f"Rounds {rounds[0]} to {rounds[-1]} are left out"
    if len(rounds) == 1:
        which = f"Round {rounds[0]} is left out"
    trim, size = options.trim_intermediate_steps, options.context_tokens
    reasons = []
    if trim > 0:
        last = "the last round" if trim == 1 else f"the last {trim} rounds"
        reasons.append(f"the agent shows its model {last} only")
    if size is not None and options.context_method == "summary":
        reasons.append(f"a summary keeps the request within {size:,} tokens")
    elif size is not None:
        reasons.append(f"the request may hold {size:,} tokens")
    return f"{which}: {', and '.join(reasons) or 'they were over a limit'}."
