"""The tab "Prompt": the messages as sent, with the new ones marked."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.engine.types import ExecutorOptions, Message, ModelRequest
from runs.llm.chat_completions import encode_tools
from runs.models import ModelCall, Run
from runs.store.specs import load_spec
from runs.ui.format import number
from runs.ui.role_labels import get_role_label
from runs.ui.summaries import truncate_line
from runs.views.run.step_detail import RowRecord, indent_json, rebuild_row_prompt

CHARACTERS_PER_TOKEN = 4
MAX_OLD_MESSAGES = 24
"""Number of old messages up to which all of them are listed."""
FIRST_OLD_MESSAGES, LAST_OLD_MESSAGES = 4, 12
"""Old messages that are listed if there are more."""
MAX_NEW_MESSAGES = 60


class ListedMessage(NamedTuple):
    """A listed message, or a placeholder for several that are not listed."""

    role: str
    text: str
    excerpt: str
    tokens: int
    at: int = 0
    """Position in the request."""
    is_new: bool = False
    skipped_count: int = 0
    """Number of messages that a placeholder stands for."""

    @property
    def name(self) -> str:
        """The name of its exact text in URLs."""
        return f"message-{self.at}"


class PromptPart(NamedTuple):
    """A part of the request by its tokens; positions in percent."""

    tone: str
    word: str
    tokens: int
    x: str
    width: str


@dataclass(frozen=True)
class MessageList:
    messages: tuple[Message, ...]
    tokens: Sequence[int]
    """Of each message."""
    known: int
    """How many the previous call had already sent; the others are new."""

    def list_messages(self, *, is_whole: bool) -> list[ListedMessage]:
        """Return the listed messages; with `is_whole`, every message."""
        known, count = self.known, len(self.messages)
        if is_whole:
            return self._each(0, count)
        first = known if known <= MAX_OLD_MESSAGES else FIRST_OLD_MESSAGES
        last, newest = (
            max(first, known - LAST_OLD_MESSAGES),
            max(known, count - MAX_NEW_MESSAGES),
        )
        return [
            *self._each(0, first),
            *self._skipped(first, last),
            *self._each(last, known),
            *self._skipped(known, newest),
            *self._each(newest, count),
        ]

    def _each(self, start: int, end: int) -> list[ListedMessage]:
        return [self._one(at) for at in range(start, end)]

    def _one(self, at: int) -> ListedMessage:
        message = self.messages[at]
        text = get_message_text(message)
        begin = truncate_line(" ".join(text[:300].split()))
        role, is_new = get_role_label(message.role), at >= self.known
        return ListedMessage(role, text, begin, self.tokens[at], at, is_new=is_new)

    def _skipped(self, start: int, end: int) -> list[ListedMessage]:
        """Return a placeholder for messages that are not listed."""
        tokens = sum(self.tokens[start:end])
        return (
            [ListedMessage("", "", "", tokens, skipped_count=end - start)]
            if end > start
            else []
        )


def prompt_tab_context(run: Run, place: RowRecord, *, is_whole: bool) -> dict[str, Any]:
    """Return the messages a call sent, with those new since the previous call."""
    rebuilt = rebuild_row_prompt(run, place)
    if rebuilt is None:
        return {"is_lost": True}
    call, request = place.call, rebuilt.request
    messages = request.messages
    tokens = [estimate_text_tokens(get_message_text(message)) for message in messages]
    listed = MessageList(messages, tokens, rebuilt.known_messages)
    tools = dump_request_tools(request)
    parts = split_prompt_parts(listed, tools if request.tools else "")
    guessed = sum(part.tokens for part in parts)
    counted = call.input_tokens if call else 0
    options = load_spec(run.spec).executor
    return {
        "is_unsent": call is None,
        "agrees": rebuilt.matches_digest,
        "tokens": counted or guessed,
        "is_counted": counted > 0,
        "guessed": guessed,
        "limit": options.context_tokens,
        "parts": parts,
        "left_out": describe_left_out_rounds(call, options) if call else "",
        "messages": listed.list_messages(is_whole=is_whole),
        "tools": ", ".join(tool.name for tool in request.tools),
        "tools_json": tools,
        "tools_tokens": estimate_text_tokens(tools),
    }


def dump_request_tools(request: ModelRequest) -> str:
    """Return the tools of a request in the Chat Completions format, indented."""
    return indent_json(json.loads(encode_tools(request.tools)))


def split_prompt_parts(listed: MessageList, tools: str) -> list[PromptPart]:
    """Return the tokens of prompt and tools, earlier rounds and new messages."""
    messages, sizes = listed.messages, listed.tokens
    begun = next(
        (n for n, one in enumerate(messages) if one.role in ("assistant", "tool")),
        len(messages),
    )
    known = max(listed.known, begun)
    spans = [
        (
            "model",
            _("prompt and tools"),
            sum(sizes[:begun]) + estimate_text_tokens(tools),
        ),
        ("first", _("earlier rounds"), sum(sizes[begun:known])),
        ("live", _("new"), sum(sizes[known:])),
    ]
    whole, at, parts = sum(tokens for *_, tokens in spans) or 1, 0.0, []
    for tone, word, tokens in spans:
        share = tokens / whole * 100
        if tokens:
            parts.append(PromptPart(tone, word, tokens, f"{at:.2f}%", f"{share:.2f}%"))
        at += share
    return parts


def get_message_text(message: Message) -> str:
    """Return a message's text and the calls it requests."""
    if not message.tool_calls:
        return message.text
    calls = [f"{call.name}({call.arguments})" for call in message.tool_calls]
    return "\n".join(filter(None, [message.text, *calls]))


def estimate_text_tokens(text: str) -> int:
    """Estimate the tokens of a text: about one per Chinese character.

    Those take three bytes each.
    """
    if text.isascii():
        return -(-len(text) // CHARACTERS_PER_TOKEN)
    wide = (len(text.encode("utf-8", "replace")) - len(text)) // 2
    return -(-(len(text) - wide) // CHARACTERS_PER_TOKEN) + wide


def describe_left_out_rounds(call: ModelCall, options: ExecutorOptions) -> str:
    """Return which rounds the request omits, and why; empty if it has all of them."""
    rounds = call.left_out
    if not rounds:
        return ""
    reason = describe_omission(options)
    if len(rounds) == 1:
        text = _("Round %(number)s is omitted: %(reason)s.")
        return text % {"number": rounds[0], "reason": reason}
    text = _("Rounds %(first)s to %(last)s are omitted: %(reason)s.")
    return text % {"first": rounds[0], "last": rounds[-1], "reason": reason}


def describe_omission(options: ExecutorOptions) -> str:
    trim, size = options.trim_intermediate_steps, options.context_tokens
    reasons = []
    if trim > 0:
        text = ngettext(
            "the agent sends only the last %(count)s round",
            "the agent sends only the last %(count)s rounds",
            trim,
        )
        reasons.append(text % {"count": trim})
    if size is not None and options.context_method == "summary":
        text = _("a summary keeps the request within %(tokens)s tokens")
        reasons.append(text % {"tokens": number(size)})
    elif size is not None:
        text = _("the request is limited to %(tokens)s tokens")
        reasons.append(text % {"tokens": number(size)})
    return "; ".join(reasons) or _("a limit was exceeded")
