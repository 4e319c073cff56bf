"""Kind `anthropic`: Anthropic's Messages, including the signed thinking it requires."""

import json
from functools import partial
from typing import Any

from runs.engine.types import ImagePart, Message, ModelRequest, Reply, ToolCall, Usage
from runs.llm.base import Endpoint, ModelCard, WireRequest
from runs.llm.chat_completions import (
    RESERVED_FIELDS,
    assign_unique_call_ids,
    get_argument_schema,
    parse_token_count,
)
from runs.llm.errors import ModelCallError
from runs.llm.model_list import fetch_model_list
from runs.llm.optional_fields import OptionalFields
from runs.llm.server import ModelServer, ServerResponse, TextForwarder
from runs.llm.wire import (
    ErrorResponse,
    InvalidJson,
    NotAReply,
    OnText,
    StreamCutOff,
    describe_non_json,
    encode_wire_json,
    get_dicts,
    get_text,
    parse_json_object,
)
from tools.net.deadline import Deadline
from tools.net.netguard import NetPolicy
from tools.net.server_sent_events import parse_server_sent_events

API_VERSION = "2023-06-01"
DEFAULT_MAX_TOKENS = 8192
"""Used if the agent sets no limit; the format requires one."""

PATH = "/messages"
FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "content_filter",
}


class Anthropic:
    def __init__(self, endpoint: Endpoint, policy: NetPolicy) -> None:
        self._fields = OptionalFields("output_config", "stop_sequences")
        headers = {"x-api-key": endpoint.key.strip(), "anthropic-version": API_VERSION}
        self._server = ModelServer(endpoint, policy, headers=headers)

    def complete(
        self,
        request: ModelRequest,
        *,
        deadline: Deadline,
        on_text: OnText | None = None,
    ) -> Reply:
        shown = TextForwarder(on_text if request.settings.stream else None)

        def send(body: bytes) -> Reply:
            model = request.settings.model
            with self._server.exchange_reply(
                PATH, body, deadline=deadline, model=model, shown=shown
            ) as answer:
                return raise_if_refused(self._reply(answer, shown))

        build = partial(_encode_body, request, stream=shown.on_text is not None)
        return self._fields.call_without_refused(build, send)

    def build_wire_request(self, request: ModelRequest) -> WireRequest:
        stream, unwanted = request.settings.stream, self._fields.unsupported
        body = _encode_body(request, unwanted, stream=stream)
        return self._server.describe_request(PATH, body)

    def list_models(self, *, deadline: Deadline) -> list[ModelCard]:
        """Return the models that the server lists, sorted by name."""
        return fetch_model_list(
            self._server, deadline=deadline, path="/models?limit=1000"
        )

    def close(self) -> None:
        self._server.close()

    def _reply(self, answer: ServerResponse, shown: TextForwarder) -> Reply:
        if shown.on_text is None or not answer.is_stream:
            reply = parse_message_body(answer.read())
            if reply.text:
                shown(reply.text)
            return reply
        stream = MessageStream(shown)
        for event in parse_server_sent_events(answer.chunks):
            if stream.feed(event.data):
                break
        return stream.reply()


def _encode_body(
    request: ModelRequest, unwanted: frozenset[str], *, stream: bool
) -> bytes:
    fields = build_messages_body(request, stream=stream)
    return encode_wire_json(
        {name: fields[name] for name in fields if name not in unwanted}
    )


def build_messages_body(request: ModelRequest, *, stream: bool) -> dict[str, Any]:
    settings = request.settings
    body: dict[str, Any] = {"max_tokens": DEFAULT_MAX_TOKENS, **settings.parameters}
    for name in RESERVED_FIELDS:
        body.pop(name, None)
    body["model"] = settings.model
    system = "\n\n".join(
        one.text for one in request.messages if one.role == "system" and one.text
    )
    if system:
        body["system"] = system
    body["messages"] = build_alternating_messages(request.messages)
    if request.stop:
        body["stop_sequences"] = [one for one in request.stop if one.strip()]
    if request.tools:
        body["tools"] = [
            {
                "name": tool.name,
                "description": tool.description,
                "input_schema": get_argument_schema(tool),
            }
            for tool in request.tools
        ]
    if request.output_schema is not None:
        form = {"type": "json_schema", "schema": request.output_schema}
        body.setdefault("output_config", {"format": form})
    if stream:
        body["stream"] = True
    return body


def build_alternating_messages(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """Return the messages as turns, which must alternate in this format."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system":
            continue
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _build_blocks(message)
        if not blocks:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    return turns


def _build_blocks(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        result = {"type": "tool_result", "tool_use_id": message.tool_call_id or ""}
        return [{**result, "content": message.text or "(no output)"}]
    # Text blocks must not be empty.
    said = message.text
    text: list[dict[str, Any]] = []
    if said.strip():
        text.append({"type": "text", "text": said})
    if message.role != "assistant":
        return text + [
            _build_image_block(image)
            for image in message.media
            if isinstance(image, ImagePart)
        ]
    calls: list[dict[str, Any]] = [
        {
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": parse_call_arguments(call),
        }
        for call in message.tool_calls
    ]
    if not calls:
        return text
    return _insert_signed_thinking(message, text, calls)


def _build_image_block(image: ImagePart) -> dict[str, Any]:
    source = {"type": "base64", "media_type": image.media_type, "data": image.data}
    return {"type": "image", "source": source}


def _insert_signed_thinking(
    message: Message, text: list[dict[str, Any]], calls: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return text and calls with the signed thinking of the native message.

    Thinking is sent back unchanged and in its place: before the calls, and between two
    of them if the model thought again.
    """
    native = get_dicts(message.native or {}, "content")
    if all(block.get("type") != "text" for block in native):
        text, calls = [], [*text, *calls]
    blocks: list[dict[str, Any]] = []
    for block in native:
        match block.get("type"):
            case "redacted_thinking":
                blocks.append(block)
            case "thinking" if block.get("signature"):
                blocks.append(block)
            case "text" if text:
                blocks.append(text.pop())
            case "tool_use" if calls:
                blocks.append(calls.pop(0))
    return [*blocks, *text, *calls]


def parse_call_arguments(call: ToolCall) -> dict[str, Any]:
    """Return the arguments as an object; anything else as text inside one."""
    try:
        return parse_json_object(call.arguments or "{}")
    except InvalidJson:
        return {"input": call.arguments}


def parse_message_body(raw: bytes) -> Reply:
    """Return the reply in a complete response; raise `NotAReply` or `ErrorResponse`."""
    try:
        answer = parse_json_object(raw)
    except InvalidJson as error:
        raise NotAReply(describe_non_json(raw)) from error
    return build_message_reply(answer)


def build_message_reply(
    answer: dict[str, Any], raw: dict[int, str] | None = None
) -> Reply:
    """Return the reply in an assembled message; `raw` has inputs as they were sent.

    Raise `NotAReply` or `ErrorResponse`.
    """
    if answer.get("type") == "error" or isinstance(answer.get("error"), dict):
        error = answer.get("error")
        raise ErrorResponse(error if isinstance(error, dict) else {})
    content = answer.get("content")
    if not isinstance(content, list):
        raise NotAReply("an answer without content")
    blocks = [one for one in content if isinstance(one, dict)]
    calls = [
        ToolCall(
            id=get_text(one, "id"),
            name=get_text(one, "name"),
            arguments=(raw or {}).get(at) or _arguments_text(one.get("input")),
        )
        for at, one in enumerate(blocks)
        if one.get("type") == "tool_use"
    ]
    reason = get_text(answer, "stop_reason")
    return Reply(
        text="".join(get_text(one, "text") for one in blocks),
        tool_calls=assign_unique_call_ids(calls),
        reasoning="".join(get_text(one, "thinking") for one in blocks),
        finish_reason=FINISH_REASONS.get(reason, reason),
        usage=parse_message_usage(answer.get("usage")),
        model=get_text(answer, "model"),
        native={"role": "assistant", "content": content},
    )


def _arguments_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def parse_message_usage(usage: Any) -> Usage | None:
    """Return the tokens; the format counts cached input separately."""
    if not isinstance(usage, dict):
        return None
    cached = parse_token_count(usage.get("cache_read_input_tokens"))
    written = parse_token_count(usage.get("cache_creation_input_tokens"))
    return Usage(
        input_tokens=parse_token_count(usage.get("input_tokens")) + cached + written,
        output_tokens=parse_token_count(usage.get("output_tokens")),
        cached_tokens=cached,
    )


def raise_if_refused(reply: Reply) -> Reply:
    """Return `reply`, or raise if the model refused with an empty one."""
    if reply.finish_reason == "content_filter" and not (reply.text or reply.tool_calls):
        raise ModelCallError(
            "content_filter", "The model refused to answer this request."
        )
    return reply


class MessageStream:
    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._message: dict[str, Any] = {"usage": {}}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}
        self._has_begun = False
        self._is_over = False

    def feed(self, raw: bytes) -> bool:
        """Add one event; return whether it was the last."""
        try:
            event = parse_json_object(raw)
        except InvalidJson as error:
            raise NotAReply("a stream with a chunk that is not JSON") from error
        kind = event.get("type")
        if kind == "error" or (kind is None and "error" in event):
            message = event.get("error")
            raise ErrorResponse(message if isinstance(message, dict) else {})
        if kind == "message_start":
            self._start_message(event.get("message"))
        elif kind == "content_block_start":
            self._start_block(event)
        elif kind == "content_block_delta":
            self._add_delta(event)
        elif kind == "message_delta":
            self._update_message(event)
        elif kind == "message_stop":
            self._is_over = True
        return self._is_over

    def _start_message(self, message: Any) -> None:
        self._has_begun = True
        if isinstance(message, dict):
            self._message = {**message, "usage": message.get("usage") or {}}

    def _start_block(self, event: dict[str, Any]) -> None:
        block, index = event.get("content_block"), event.get("index")
        if isinstance(block, dict) and isinstance(index, int):
            self._blocks[index] = dict(block)
            text = get_text(block, "text")
            if text:
                self._on_text(text)

    def _add_delta(self, event: dict[str, Any]) -> None:
        delta, index = event.get("delta"), event.get("index")
        if not isinstance(delta, dict) or not isinstance(index, int):
            return
        self._blocks.setdefault(index, {"type": "text", "text": ""})
        for key in ("text", "thinking", "signature", "partial_json"):
            piece = get_text(delta, key)
            if piece:
                self._pieces.setdefault((index, key), []).append(piece)
                if key == "text":
                    self._on_text(piece)

    def _update_message(self, event: dict[str, Any]) -> None:
        delta, usage = event.get("delta"), event.get("usage")
        if isinstance(delta, dict):
            self._message.update(delta)
        if isinstance(usage, dict) and isinstance(self._message["usage"], dict):
            self._message["usage"].update(usage)

    def reply(self) -> Reply:
        """Return the reply; raise `NotAReply` or `StreamCutOff` if it is incomplete."""
        if not self._has_begun:
            raise NotAReply("a stream without a reply")
        if not self._is_over and not self._message.get("stop_reason"):
            raise StreamCutOff("the stream ended early")
        for (index, key), pieces in self._pieces.items():
            block = self._blocks[index]
            block[key] = get_text(block, key) + "".join(pieces)
        content = [self._blocks[index] for index in sorted(self._blocks)]
        raw = {}
        for position, block in enumerate(content):
            if "partial_json" in block:
                raw[position] = block.pop("partial_json")
                call = ToolCall(id="", name="", arguments=raw[position])
                block["input"] = parse_call_arguments(call)
        return build_message_reply({**self._message, "content": content}, raw)
