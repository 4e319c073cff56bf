"""The Chat Completions wire format, without I/O: build bodies, parse replies."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from runs.engine.types import Message, ModelRequest, Reply, ToolCall, Usage
from runs.llm.wire import (
    ErrorResponse,
    InvalidJson,
    NotAReply,
    OnText,
    StreamCutOff,
    describe_non_json,
    encode_wire_json,
    get_dicts,
    parse_json_object,
)
from tools.net.server_sent_events import ServerSentEvent
from tools.spec import ToolSpec

SINGLE_TEXT_SCHEMA = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}
"""The arguments of a tool with a single text input."""

MAX_STOP_WORDS = 4
"""The format's maximum; the engine enforces all of them."""

RESERVED_FIELDS = frozenset(("messages", "model", "stream", "tools"))
"""Fields that an agent's parameters cannot set."""

REASONING = "reasoning_content"
REASONING_TEXTS = (REASONING, "reasoning")
"""Fields in use for the text of a model's reasoning."""

REASONING_BLOCKS = ("reasoning_details", "thinking_blocks")
"""Fields in use for reasoning in pieces, some signed: by OpenRouter and LiteLLM."""

REPEATED_FIELDS = (*REASONING_TEXTS, *REASONING_BLOCKS, "extra_content")
"""Fields of an assistant message that its server gets back as it sent them.

DeepSeek and Kimi refuse the next request without the reasoning of their calls, and
so do Gemini without its signatures (`extra_content`) and Claude behind a gateway.
"""

REPEATED_CALL_FIELDS = ("extra_content", "provider_specific_fields")
"""The same for one call: where Gemini and LiteLLM put the signature."""


def get_argument_schema(tool: ToolSpec) -> dict[str, Any]:
    schema = tool.args_schema
    if schema is None:
        return SINGLE_TEXT_SCHEMA
    return schema if "type" in schema else {"type": "object", **schema}


def encode_tools(tools: tuple[ToolSpec, ...]) -> bytes:
    return encode_wire_json(
        [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": get_argument_schema(tool),
                },
            }
            for tool in tools
        ]
    )


def encode_chat_messages(
    messages: Sequence[Message], unwanted: frozenset[str] = frozenset()
) -> list[bytes]:
    """Return messages with the reasoning and signatures their server sent with them.

    `unwanted` are fields that the server does not accept. If one reply had a
    `reasoning_content`, all get one, empty if need be: DeepSeek refuses a request
    without it.
    """
    reasons = REASONING not in unwanted and any(map(_has_reasoning, messages))
    return [
        message.canonical
        if message.native is None and not (reasons and message.role == "assistant")
        else _encode_once(message, unwanted, reasons)
        for message in messages
    ]


def _has_reasoning(message: Message) -> bool:
    native = message.native
    return native is not None and isinstance(native.get(REASONING), str)


def _encode_once(message: Message, unwanted: frozenset[str], reasons: bool, /) -> bytes:
    """Return the message in bytes; a run sends it again in each later request."""
    known: tuple[frozenset[str], bool, bytes] | None
    known = message.__dict__.get("_chat_bytes")
    if known is None or known[:2] != (unwanted, reasons):
        raw = _encode_with_extras(message, unwanted, reasons)
        known = message.__dict__["_chat_bytes"] = (unwanted, reasons, raw)
    return known[2]


def _encode_with_extras(
    message: Message, unwanted: frozenset[str], reasons: bool, /
) -> bytes:
    native = message.native or {}
    more = {
        name: native[name]
        for name in REPEATED_FIELDS
        if native.get(name) and name not in unwanted
    }
    if reasons:
        more.setdefault(REASONING, "")
    calls = [
        {
            name: call[name]
            for name in REPEATED_CALL_FIELDS
            if call.get(name) and name not in unwanted
        }
        for call in get_dicts(native, "tool_calls")
        if isinstance(call.get("function"), dict)  # in the order of the message's calls
    ]
    if message.tool_calls and any(calls):
        shape = parse_json_object(message.canonical)
        for call, extra in zip(shape["tool_calls"], calls, strict=False):
            call.update(extra)
        return encode_wire_json({**shape, **more})
    if more:
        return b"".join((message.canonical[:-1], b",", encode_wire_json(more)[1:]))
    return message.canonical


def build_chat_body(
    request: ModelRequest,
    *,
    stream: bool,
    tools: bytes,
    messages: Iterable[bytes],
    unwanted: frozenset[str] = frozenset(),
) -> bytes:
    """Return the body of a call, with tools and messages already encoded.

    `unwanted` are optional fields that the server does not accept.
    """
    settings = request.settings
    fields: dict[str, Any] = {}
    if request.stop:
        fields["stop"] = list(request.stop[:MAX_STOP_WORDS])
    if request.output_schema is not None:
        fields["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": request.output_schema},
        }
    if stream and "stream_options" not in settings.parameters:
        fields["stream_options"] = {"include_usage": True}
    fields.update(settings.parameters)
    for name in unwanted | RESERVED_FIELDS:
        fields.pop(name, None)
    fields["model"] = settings.model
    if stream:
        fields["stream"] = True
    parts = [b',"messages":[']
    parts.append(b",".join(messages))
    parts.append(b"]")
    if request.tools:
        parts += (b',"tools":', tools)
    return b"".join((encode_wire_json(fields)[:-1], *parts, b"}"))


def parse_chat_reply(raw: bytes) -> Reply:
    """Return the reply in a complete response; raise `NotAReply` or `ErrorResponse`."""
    try:
        answer = parse_json_object(raw)
    except InvalidJson as error:
        raise NotAReply(describe_non_json(raw)) from error
    choice = _first_choice(answer)
    if choice is None:
        if answer.get("error"):
            raise ErrorResponse(_as_error_object(answer["error"]))
        raise NotAReply("an answer without choices")
    message = choice.get("message")
    if not isinstance(message, dict):
        raise NotAReply("a choice without a message")
    reply = Reply(
        text=extract_content_text(message.get("content"))
        or _as_text(message.get("refusal")),
        tool_calls=assign_unique_call_ids(extract_tool_calls(message)),
        reasoning=extract_reasoning(message),
        finish_reason=_as_text(choice.get("finish_reason")),
        usage=parse_chat_usage(answer.get("usage")),
        model=_as_text(answer.get("model")),
    )
    return keep_native_message(reply, message)


def keep_native_message(reply: Reply, message: dict[str, Any]) -> Reply:
    """Return the reply with the provider's message, if that says more than it.

    It is stored with each reply, and mostly would double it.
    """
    if message == build_chat_message(reply):
        return reply
    return reply.model_copy(update={"native": message})


def build_chat_message(reply: Reply) -> dict[str, Any]:
    """Return the message of a reply that has no unknown fields."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.tool_calls:
        message["tool_calls"] = [
            {
                "type": "function",
                "id": call.id,
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in reply.tool_calls
        ]
    return message


def parse_chat_stream(events: Iterable[ServerSentEvent], on_text: OnText) -> Reply:
    """Return the streamed reply; raise like `parse_chat_reply`, or `StreamCutOff`.

    After a finish reason the stream may end with or without `[DONE]`.
    """
    stream = ChatStream(on_text)
    for event in events:
        if event.data.strip() == b"[DONE]":
            stream.is_done = True
            break
        stream.feed(event.data)
    return stream.reply()


class ChatStream:
    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._text: list[str] = []
        self._reasoning: dict[str, list[str]] = {}
        self._thinking: list[str] = []
        """Reasoning among the content, as Mistral streams it."""
        self._calls: list[dict[str, Any]] = []
        self._by_index: dict[int, dict[str, Any]] = {}
        self._message: dict[str, Any] = {"role": "assistant"}
        self._finish = ""
        self._usage: Usage | None = None
        self._model = ""
        self._has_choice = False
        self.is_done = False
        """Whether the server sent `[DONE]`."""

    def feed(self, raw: bytes) -> None:
        try:
            chunk = parse_json_object(raw)
        except InvalidJson as error:
            raise NotAReply("a stream with a chunk that is not JSON") from error
        if chunk.get("error"):
            raise ErrorResponse(_as_error_object(chunk["error"]))
        self._model = self._model or _as_text(chunk.get("model"))
        self._usage = parse_chat_usage(chunk.get("usage")) or self._usage
        choice = _first_choice(chunk)
        if choice is None:
            return
        self._has_choice = True
        self._finish = _as_text(choice.get("finish_reason")) or self._finish
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            self._add(delta)

    def _add(self, delta: dict[str, Any]) -> None:
        text = extract_content_text(delta.get("content")) or _as_text(
            delta.get("refusal")
        )
        if text:
            self._text.append(text)
            self._on_text(text)
        for key in REASONING_TEXTS:
            if isinstance(piece := delta.get(key), str):
                self._reasoning.setdefault(key, []).append(piece)
        for key in REASONING_BLOCKS:
            if blocks := get_dicts(delta, key):
                merge_reasoning_blocks(self._message.setdefault(key, []), blocks)
        if not isinstance(delta.get("content"), str):
            self._thinking.append(_content_thinking(delta))
        for fragment in _fragments(delta):
            self._add_fragment(fragment)
        for key, value in delta.items():
            if key not in KNOWN_KEYS and value is not None:
                self._message[key] = merge_delta_field(self._message.get(key), value)

    def _add_fragment(self, fragment: dict[str, Any]) -> None:
        function = fragment.get("function")
        function = function if isinstance(function, dict) else {}
        call = self._find_call(fragment, function)
        name, arguments = _as_text(function.get("name")), function.get("arguments")
        inner = call["function"]
        if name and name != inner["name"]:
            inner["name"] += name
        if isinstance(arguments, str):
            inner["arguments"].append(arguments)
        elif arguments is not None:
            inner["arguments"].append(_dump_json(arguments))
        for key, value in fragment.items():
            if key not in ("index", "id", "function") and value is not None:
                call[key] = value

    def _find_call(
        self, fragment: dict[str, Any], function: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the call that a fragment belongs to.

        Found by its index, but some servers use one index for all calls, or none.
        """
        index, call_id = fragment.get("index"), _as_text(fragment.get("id"))
        known = self._calls[-1] if self._calls else None
        if isinstance(index, int):
            known = self._by_index.get(index)
        is_another = (
            known is not None
            and bool(function.get("name"))
            and (
                bool(call_id and known["id"] and call_id != known["id"])
                or (not isinstance(index, int) and not call_id)
            )
        )
        if known is None or is_another:
            known = {"id": "", "function": {"name": "", "arguments": []}}
            self._calls.append(known)
            if isinstance(index, int):
                self._by_index[index] = known
        known["id"] = known["id"] or call_id
        return known

    def reply(self) -> Reply:
        """Return the reply; raise `NotAReply` or `StreamCutOff` if it is incomplete."""
        if not self._finish and not self.is_done:
            if not self._has_choice and self._usage is None:
                raise NotAReply("a stream without a reply")
            raise StreamCutOff("the stream ended early")
        if not self._has_choice:
            raise NotAReply("a stream without choices")
        message = self._message
        for call in self._calls:
            function = call["function"]
            call["function"] = {**function, "arguments": "".join(function["arguments"])}
        message["content"] = "".join(self._text) or None
        message |= {key: "".join(pieces) for key, pieces in self._reasoning.items()}
        if self._calls:
            message["tool_calls"] = [{"type": "function", **one} for one in self._calls]
        reply = Reply(
            text=message["content"] or "",
            tool_calls=assign_unique_call_ids(extract_tool_calls(message)),
            reasoning=extract_reasoning(message) or "".join(self._thinking),
            finish_reason=self._finish,
            usage=self._usage,
            model=self._model,
        )
        return keep_native_message(reply, message)


KNOWN_KEYS = frozenset(
    (
        "role",
        "content",
        "refusal",
        "tool_calls",
        "function_call",
        *REASONING_TEXTS,
        *REASONING_BLOCKS,
    )
)

BLOCK_TEXTS = ("text", "thinking", "summary")
"""Fields of a block of reasoning that arrive in pieces."""


def merge_reasoning_blocks(
    blocks: list[dict[str, Any]], pieces: list[dict[str, Any]]
) -> None:
    """Add streamed pieces to `blocks`; a signature ends the block it arrives in."""
    for piece in pieces:
        last = blocks[-1] if blocks else {}
        continues = (
            not last.get("signature")
            and (last.get("type"), last.get("index"))
            == (piece.get("type"), piece.get("index"))
            and any(isinstance(last.get(name), str) for name in BLOCK_TEXTS)
        )
        if not continues:
            blocks.append(dict(piece))
            continue
        for name, value in piece.items():
            if name in BLOCK_TEXTS and isinstance(last.get(name), str):
                last[name] += _as_text(value)
            elif value is not None:
                last[name] = value


def merge_delta_field(old: Any, new: Any) -> Any:
    """Return an unknown field's value with the next piece appended."""
    if isinstance(old, str) and isinstance(new, str):
        return old + new
    if isinstance(old, list) and isinstance(new, list):
        return old + new
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **new}
    return new


def extract_content_text(content: Any) -> str:
    """Return the text of a message's content, which may be a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "".join(
        _as_text(part.get("text"))
        for part in content
        if isinstance(part, dict) and part.get("type") in ("text", "output_text")
    )


def extract_reasoning(message: dict[str, Any]) -> str:
    """Return the reasoning that a message carries apart from its answer."""
    for key in REASONING_TEXTS:
        if isinstance(message.get(key), str) and message[key]:
            return str(message[key])
    for key in REASONING_BLOCKS:
        if blocks := get_dicts(message, key):
            return "".join(
                _as_text(block.get(name)) for block in blocks for name in BLOCK_TEXTS
            )
    return _content_thinking(message)


def _content_thinking(message: dict[str, Any]) -> str:
    return "".join(
        extract_content_text(part.get("thinking"))
        for part in get_dicts(message, "content")
        if part.get("type") == "thinking"
    )


def extract_tool_calls(message: dict[str, Any]) -> list[ToolCall]:
    calls = []
    for one in _fragments(message):
        function = one.get("function")
        if not isinstance(function, dict):
            continue
        arguments = function.get("arguments")
        if not isinstance(arguments, str):
            arguments = "" if arguments is None else _dump_json(arguments)
        name = _as_text(function.get("name"))
        calls.append(
            ToolCall(id=_as_text(one.get("id")), name=name, arguments=arguments)
        )
    return calls


def assign_unique_call_ids(calls: list[ToolCall]) -> tuple[ToolCall, ...]:
    """Return `calls` with unique ids; the same input always gives the same ids."""
    used = {call.id for call in calls}
    seen: set[str] = set()
    for position, call in enumerate(calls):
        if not call.id or call.id in seen:
            number = position
            stem = call.id or "call"
            while f"{stem}_{number}" in used:
                number += len(calls)
            calls[position] = call.model_copy(update={"id": f"{stem}_{number}"})
            used.add(calls[position].id)
        seen.add(calls[position].id)
    return tuple(calls)


def parse_chat_usage(usage: Any) -> Usage | None:
    """Return the tokens that a server counted, or None."""
    if not isinstance(usage, dict):
        return None
    prompt, completion = (
        one if isinstance(one, dict) else {}
        for one in (
            usage.get("prompt_tokens_details"),
            usage.get("completion_tokens_details"),
        )
    )
    cached = prompt.get("cached_tokens", usage.get("prompt_cache_hit_tokens"))
    return Usage(
        input_tokens=parse_token_count(usage.get("prompt_tokens")),
        output_tokens=parse_token_count(usage.get("completion_tokens")),
        cached_tokens=parse_token_count(cached),
        reasoning_tokens=parse_token_count(completion.get("reasoning_tokens")),
    )


def parse_token_count(value: Any) -> int:
    """Return a number of tokens; 0 for invalid values."""
    if isinstance(value, int | float) and 0 <= value < 2**53:
        return int(value)
    return 0


def _first_choice(answer: dict[str, Any]) -> dict[str, Any] | None:
    choices = answer.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0]
    return None


def _fragments(message: dict[str, Any]) -> list[dict[str, Any]]:
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        return [one for one in calls if isinstance(one, dict)]
    old = message.get("function_call")
    return [{"function": old}] if isinstance(old, dict) else []


def _as_error_object(error: Any) -> dict[str, Any]:
    return error if isinstance(error, dict) else {"message": str(error)}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _dump_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
