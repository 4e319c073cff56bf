"""The Chat Completions wire format, without any I/O: bodies out, replies in."""

import json
from collections.abc import Iterable
from typing import Any

from runs.engine.types import ModelRequest, Reply, ToolCall, Usage
from runs.llm.wire import (
    BadJson,
    CutOff,
    ErrorSent,
    Event,
    NoReply,
    OnText,
    read_object,
    what_it_is,
    write_json,
)
from tools.spec import ToolSpec

ONE_TEXT = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}
"""The arguments of a tool that takes one text."""

MAX_STOP_WORDS = 4
"""What the format allows; the engine enforces all of them."""

OURS = frozenset(("messages", "model", "stream", "tools"))
"""Fields that no parameter of an agent can set."""


def schema_of(tool: ToolSpec) -> dict[str, Any]:
    """Return the JSON Schema of the argument object a model is to send."""
    schema = tool.args_schema
    if schema is None:
        return ONE_TEXT
    return schema if "type" in schema else {"type": "object", **schema}


def tool_bytes(tools: tuple[ToolSpec, ...]) -> bytes:
    """Return the list of tools as the format wants it."""
    return write_json(
        [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": schema_of(tool),
                },
            }
            for tool in tools
        ]
    )


def body_of(
    request: ModelRequest,
    *,
    stream: bool,
    tools: bytes,
    messages: Iterable[bytes],
    unwanted: frozenset[str] = frozenset(),
) -> bytes:
    """Return the body of a call; the bytes of messages and tools are not made again.

    `unwanted` are optional fields that the server does not know.
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
    for name in unwanted | OURS:
        fields.pop(name, None)
    fields["model"] = settings.model
    if stream:
        fields["stream"] = True
    parts = [b',"messages":[']
    parts.append(b",".join(messages))
    parts.append(b"]")
    if request.tools:
        parts += (b',"tools":', tools)
    return b"".join((write_json(fields)[:-1], *parts, b"}"))


def read_reply(raw: bytes) -> Reply:
    """Return the reply in a complete answer; raise `NoReply` or `ErrorSent`."""
    try:
        answer = read_object(raw)
    except BadJson as error:
        raise NoReply(what_it_is(raw)) from error
    choice = _first_choice(answer)
    if choice is None:
        if answer.get("error"):
            raise ErrorSent(_error(answer["error"]))
        raise NoReply("an answer without choices")
    message = choice.get("message")
    if not isinstance(message, dict):
        raise NoReply("a choice without a message")
    return Reply(
        text=text_of(message.get("content")) or _text(message.get("refusal")),
        tool_calls=named_apart(calls_of(message)),
        reasoning=reasoning_of(message),
        finish_reason=_text(choice.get("finish_reason")),
        usage=usage_of(answer.get("usage")),
        model=_text(answer.get("model")),
        native=message,
    )


def read_stream(events: Iterable[Event], on_text: OnText) -> Reply:
    """Return the reply that `events` bring; raise `NoReply`, `ErrorSent` or `CutOff`.

    After a finish reason the end of the stream is the end, `[DONE]` or not.
    """
    stream = ChatStream(on_text)
    for event in events:
        if event.data.strip() == b"[DONE]":
            stream.is_done = True
            break
        stream.take(event.data)
    return stream.reply()


class ChatStream:
    """A reply in the making."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._by_index: dict[int, dict[str, Any]] = {}
        self._message: dict[str, Any] = {"role": "assistant"}
        self._finish = ""
        self._usage: Usage | None = None
        self._model = ""
        self._has_choice = False
        self.is_done = False
        """Whether the server said `[DONE]`."""

    def take(self, raw: bytes) -> None:
        """Add one chunk."""
        try:
            chunk = read_object(raw)
        except BadJson as error:
            raise NoReply("a stream with a piece that is no JSON") from error
        if chunk.get("error"):
            raise ErrorSent(_error(chunk["error"]))
        self._model = self._model or _text(chunk.get("model"))
        self._usage = usage_of(chunk.get("usage")) or self._usage
        choice = _first_choice(chunk)
        if choice is None:
            return
        self._has_choice = True
        self._finish = _text(choice.get("finish_reason")) or self._finish
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            self._add(delta)

    def _add(self, delta: dict[str, Any]) -> None:
        text = text_of(delta.get("content")) or _text(delta.get("refusal"))
        if text:
            self._text.append(text)
            self._on_text(text)
        reasoning = reasoning_of(delta)
        if reasoning:
            self._reasoning.append(reasoning)
        for fragment in _fragments(delta):
            self._add_fragment(fragment)
        for key, value in delta.items():
            if key not in KNOWN_KEYS and value is not None:
                self._message[key] = merged(self._message.get(key), value)

    def _add_fragment(self, fragment: dict[str, Any]) -> None:
        function = fragment.get("function")
        function = function if isinstance(function, dict) else {}
        call = self._call_of(fragment, function)
        name, arguments = _text(function.get("name")), function.get("arguments")
        inner = call["function"]
        if name and name != inner["name"]:
            inner["name"] += name
        if isinstance(arguments, str):
            inner["arguments"].append(arguments)
        elif arguments is not None:
            inner["arguments"].append(_dump(arguments))
        for key, value in fragment.items():
            if key not in ("index", "id", "function") and value is not None:
                call[key] = value

    def _call_of(
        self, fragment: dict[str, Any], function: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the call a fragment belongs to.

        By its index; but some servers give all calls the same one, or none at all.
        """
        index, call_id = fragment.get("index"), _text(fragment.get("id"))
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
        """Return what came; raise `NoReply` or `CutOff` if that is no whole reply."""
        if not self._finish and not self.is_done:
            if not self._has_choice and self._usage is None:
                raise NoReply("a stream without a reply")
            raise CutOff("the stream ended early")
        if not self._has_choice:
            raise NoReply("a stream without choices")
        message = self._message
        for call in self._calls:
            function = call["function"]
            call["function"] = {**function, "arguments": "".join(function["arguments"])}
        message["content"] = "".join(self._text) or None
        if self._reasoning:
            message["reasoning_content"] = "".join(self._reasoning)
        if self._calls:
            message["tool_calls"] = [{"type": "function", **one} for one in self._calls]
        return Reply(
            text=message["content"] or "",
            tool_calls=named_apart(calls_of(message)),
            reasoning=message.get("reasoning_content", ""),
            finish_reason=self._finish,
            usage=self._usage,
            model=self._model,
            native=message,
        )


KNOWN_KEYS = frozenset(
    (
        "role",
        "content",
        "refusal",
        "tool_calls",
        "function_call",
        "reasoning",
        "reasoning_content",
    )
)


def merged(old: Any, new: Any) -> Any:
    """Return an unknown field's value with the next piece added to it."""
    if isinstance(old, str) and isinstance(new, str):
        return old + new
    if isinstance(old, list) and isinstance(new, list):
        return old + new
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **new}
    return new


def text_of(content: Any) -> str:
    """Return the text in a message's content, which may be a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "".join(
        _text(part.get("text"))
        for part in content
        if isinstance(part, dict) and part.get("type") in ("text", "output_text")
    )


def reasoning_of(message: dict[str, Any]) -> str:
    """Return the thinking a message carries apart from its answer."""
    for key in ("reasoning_content", "reasoning"):
        if isinstance(message.get(key), str) and message[key]:
            return str(message[key])
    content = message.get("content")
    if not isinstance(content, list):
        return ""
    return "".join(
        text_of(part.get("thinking"))
        for part in content
        if isinstance(part, dict) and part.get("type") == "thinking"
    )


def calls_of(message: dict[str, Any]) -> list[ToolCall]:
    """Return the calls of a message as they came."""
    calls = []
    for one in _fragments(message):
        function = one.get("function")
        if not isinstance(function, dict):
            continue
        arguments = function.get("arguments")
        if not isinstance(arguments, str):
            arguments = "" if arguments is None else _dump(arguments)
        name = _text(function.get("name"))
        calls.append(ToolCall(id=_text(one.get("id")), name=name, arguments=arguments))
    return calls


def named_apart(calls: list[ToolCall]) -> tuple[ToolCall, ...]:
    """Return `calls` with an id each, and each id once; always the same ids."""
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


def usage_of(usage: Any) -> Usage | None:
    """Return the tokens a server counted, None where it did not."""
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
        input_tokens=count(usage.get("prompt_tokens")),
        output_tokens=count(usage.get("completion_tokens")),
        cached_tokens=count(cached),
        reasoning_tokens=count(completion.get("reasoning_tokens")),
    )


def count(value: Any) -> int:
    """Return a number of tokens; 0 for what cannot be one."""
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


def _error(error: Any) -> dict[str, Any]:
    return error if isinstance(error, dict) else {"message": str(error)}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
