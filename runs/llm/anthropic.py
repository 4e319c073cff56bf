"""Kind `anthropic`: Anthropic's Messages, with the thinking it wants to see again."""

import json
from typing import Any

from runs.engine.types import Message, ModelRequest, Reply, ToolCall, Usage
from runs.llm.base import Endpoint, ModelCard
from runs.llm.chat import OURS, count, named_apart, schema_of
from runs.llm.errors import ModelFailed
from runs.llm.model_list import listed_models
from runs.llm.optional_fields import OptionalFields
from runs.llm.server import Answer, ModelServer, Shown
from runs.llm.wire import (
    BadJson,
    CutOff,
    ErrorSent,
    NoReply,
    OnText,
    read_events,
    read_object,
    text_in,
    what_it_is,
    write_json,
)
from tools.netguard import NetPolicy
from tools.watch import Watch

VERSION = "2023-06-01"
MAX_TOKENS = 8192
"""Tokens of an answer where the agent names no limit; the format demands one."""

FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "content_filter",
}


class Anthropic:
    """A Messages server."""

    def __init__(self, endpoint: Endpoint, policy: NetPolicy) -> None:
        self._fields = OptionalFields("output_config", "stop_sequences")
        headers = {"x-api-key": endpoint.key.strip(), "anthropic-version": VERSION}
        self._server = ModelServer(endpoint, policy, headers=headers)

    def ask(
        self, request: ModelRequest, *, watch: Watch, on_text: OnText | None = None
    ) -> Reply:
        """Return the model's reply; see `LLM.ask`."""
        shown = Shown(on_text if request.settings.stream else None)
        stream = shown.on_text is not None
        model = request.settings.model

        def ask_once(unwanted: frozenset[str]) -> Reply:
            fields = body_of(request, stream=stream)
            body = {name: fields[name] for name in fields if name not in unwanted}
            with self._server.reply_from(
                "/messages", write_json(body), watch=watch, model=model, shown=shown
            ) as answer:
                return checked(self._reply(answer, shown))

        return self._fields.tried(ask_once)

    def list_models(self, *, watch: Watch) -> list[ModelCard]:
        """Return the models the server names, by name."""
        return listed_models(self._server, watch=watch, path="/models?limit=1000")

    def close(self) -> None:
        """Give back the connections."""
        self._server.close()

    def _reply(self, answer: Answer, shown: Shown) -> Reply:
        if shown.on_text is None or not answer.is_stream:
            reply = read_message(answer.read())
            if reply.text:
                shown(reply.text)
            return reply
        stream = MessageStream(shown)
        for event in read_events(answer.chunks):
            if stream.take(event.data):
                break
        return stream.reply()


def body_of(request: ModelRequest, *, stream: bool) -> dict[str, Any]:
    """Return the body of a call."""
    settings = request.settings
    body: dict[str, Any] = {"max_tokens": MAX_TOKENS, **settings.parameters}
    for name in OURS:
        body.pop(name, None)
    body["model"] = settings.model
    system = "\n\n".join(
        one.text for one in request.messages if one.role == "system" and one.text
    )
    if system:
        body["system"] = system
    body["messages"] = turns_of(request.messages)
    if request.stop:
        body["stop_sequences"] = [one for one in request.stop if one.strip()]
    if request.tools:
        body["tools"] = [
            {
                "name": tool.name,
                "description": tool.description,
                "input_schema": schema_of(tool),
            }
            for tool in request.tools
        ]
    if request.output_schema is not None:
        form = {"type": "json_schema", "schema": request.output_schema}
        body.setdefault("output_config", {"format": form})
    if stream:
        body["stream"] = True
    return body


def turns_of(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """Return the messages as turns: the format wants them to alternate."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system":
            continue
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message)
        if not blocks:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    return turns


def _blocks(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        result = {"type": "tool_result", "tool_use_id": message.tool_call_id or ""}
        return [{**result, "content": message.text or "(no output)"}]
    # Text blocks must not be empty.
    said = message.text
    text: list[dict[str, Any]] = []
    if said.strip():
        text.append({"type": "text", "text": said})
    if message.role != "assistant":
        return text
    calls = [
        {
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": arguments_of(call),
        }
        for call in message.tool_calls
    ]
    return [*_thinking(message), *text, *calls]


def _thinking(message: Message) -> list[dict[str, Any]]:
    """Return the signed thinking of a native message; calls want it in front."""
    content = (message.native or {}).get("content")
    if not message.tool_calls or not isinstance(content, list):
        return []
    return [
        block
        for block in content
        if isinstance(block, dict)
        and (
            (block.get("type") == "thinking" and block.get("signature"))
            or block.get("type") == "redacted_thinking"
        )
    ]


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """Return the arguments as the object the format wants, odd ones as text in it."""
    try:
        return read_object(call.arguments or "{}")
    except BadJson:
        return {"input": call.arguments}


def read_message(raw: bytes) -> Reply:
    """Return the reply in a complete answer; raise `NoReply` or `ErrorSent`."""
    try:
        answer = read_object(raw)
    except BadJson as error:
        raise NoReply(what_it_is(raw)) from error
    return reply_in(answer)


def reply_in(answer: dict[str, Any], raw: dict[int, str] | None = None) -> Reply:
    """Return the reply in an assembled message; `raw` has inputs as they were sent.

    Raises `NoReply` or `ErrorSent`.
    """
    if answer.get("type") == "error" or isinstance(answer.get("error"), dict):
        error = answer.get("error")
        raise ErrorSent(error if isinstance(error, dict) else {})
    content = answer.get("content")
    if not isinstance(content, list):
        raise NoReply("an answer without content")
    blocks = [one for one in content if isinstance(one, dict)]
    calls = [
        ToolCall(
            id=text_in(one, "id"),
            name=text_in(one, "name"),
            arguments=(raw or {}).get(at) or _arguments_text(one.get("input")),
        )
        for at, one in enumerate(blocks)
        if one.get("type") == "tool_use"
    ]
    reason = text_in(answer, "stop_reason")
    return Reply(
        text="".join(text_in(one, "text") for one in blocks),
        tool_calls=named_apart(calls),
        reasoning="".join(text_in(one, "thinking") for one in blocks),
        finish_reason=FINISH.get(reason, reason),
        usage=usage_in(answer.get("usage")),
        model=text_in(answer, "model"),
        native={"role": "assistant", "content": content},
    )


def _arguments_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def usage_in(usage: Any) -> Usage | None:
    """Return the tokens; the format counts cached ones apart from the others."""
    if not isinstance(usage, dict):
        return None
    cached = count(usage.get("cache_read_input_tokens"))
    written = count(usage.get("cache_creation_input_tokens"))
    return Usage(
        input_tokens=count(usage.get("input_tokens")) + cached + written,
        output_tokens=count(usage.get("output_tokens")),
        cached_tokens=cached,
    )


def checked(reply: Reply) -> Reply:
    """Return `reply`, or raise if a filter took all of it away."""
    if reply.finish_reason == "content_filter" and not (reply.text or reply.tool_calls):
        raise ModelFailed("content_filter", "The model refused to answer this request.")
    return reply


class MessageStream:
    """A message in the making."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._message: dict[str, Any] = {"usage": {}}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}
        self._has_begun = False
        self._is_over = False

    def take(self, raw: bytes) -> bool:
        """Add one event; return whether it was the last."""
        try:
            event = read_object(raw)
        except BadJson as error:
            raise NoReply("a stream with a piece that is no JSON") from error
        kind = event.get("type")
        if kind == "error" or (kind is None and "error" in event):
            told = event.get("error")
            raise ErrorSent(told if isinstance(told, dict) else {})
        if kind == "message_start":
            self._begin(event.get("message"))
        elif kind == "content_block_start":
            self._open(event)
        elif kind == "content_block_delta":
            self._add(event)
        elif kind == "message_delta":
            self._change(event)
        elif kind == "message_stop":
            self._is_over = True
        return self._is_over

    def _begin(self, message: Any) -> None:
        self._has_begun = True
        if isinstance(message, dict):
            self._message = {**message, "usage": message.get("usage") or {}}

    def _open(self, event: dict[str, Any]) -> None:
        block, index = event.get("content_block"), event.get("index")
        if isinstance(block, dict) and isinstance(index, int):
            self._blocks[index] = dict(block)
            text = text_in(block, "text")
            if text:
                self._on_text(text)

    def _add(self, event: dict[str, Any]) -> None:
        delta, index = event.get("delta"), event.get("index")
        if not isinstance(delta, dict) or not isinstance(index, int):
            return
        self._blocks.setdefault(index, {"type": "text", "text": ""})
        for key in ("text", "thinking", "signature", "partial_json"):
            piece = text_in(delta, key)
            if piece:
                self._pieces.setdefault((index, key), []).append(piece)
                if key == "text":
                    self._on_text(piece)

    def _change(self, event: dict[str, Any]) -> None:
        delta, usage = event.get("delta"), event.get("usage")
        if isinstance(delta, dict):
            self._message.update(delta)
        if isinstance(usage, dict) and isinstance(self._message["usage"], dict):
            self._message["usage"].update(usage)

    def reply(self) -> Reply:
        """Return what came; raise `NoReply` or `CutOff` if that is no whole message."""
        if not self._has_begun:
            raise NoReply("a stream without a reply")
        if not self._is_over and not self._message.get("stop_reason"):
            raise CutOff("the stream ended early")
        for (index, key), pieces in self._pieces.items():
            block = self._blocks[index]
            block[key] = text_in(block, key) + "".join(pieces)
        content = [self._blocks[index] for index in sorted(self._blocks)]
        raw = {}
        for position, block in enumerate(content):
            if "partial_json" in block:
                raw[position] = block.pop("partial_json")
                call = ToolCall(id="", name="", arguments=raw[position])
                block["input"] = arguments_of(call)
        return reply_in({**self._message, "content": content}, raw)
