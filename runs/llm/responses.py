"""Kind `responses`: OpenAI's Responses, with nothing stored at the provider."""

from functools import partial
from typing import Any

from runs.engine.types import (
    AudioPart,
    ImagePart,
    Message,
    ModelRequest,
    Reply,
    ToolCall,
    Usage,
)
from runs.llm.base import Endpoint, ModelCard, WireRequest
from runs.llm.chat_completions import (
    RESERVED_FIELDS,
    assign_unique_call_ids,
    get_argument_schema,
    parse_token_count,
)
from runs.llm.model_list import fetch_model_list
from runs.llm.openai import raise_if_filtered
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

PATH = "/responses"
FINISH_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}
REASONING_FIELDS = ("type", "id", "summary", "content", "encrypted_content")
END_EVENTS = ("response.completed", "response.incomplete", "response.failed")


class Responses:
    def __init__(self, endpoint: Endpoint, policy: NetPolicy) -> None:
        key = endpoint.key.strip()
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._server = ModelServer(endpoint, policy, headers=headers)
        self._fields = OptionalFields("include", "text")

    def complete(
        self,
        request: ModelRequest,
        *,
        deadline: Deadline,
        on_text: OnText | None = None,
    ) -> Reply:
        """Return the model's reply. The engine enforces stop words."""
        shown = TextForwarder(on_text if request.settings.stream else None)

        def send(body: bytes) -> Reply:
            model = request.settings.model
            with self._server.exchange_reply(
                PATH, body, deadline=deadline, model=model, shown=shown
            ) as answer:
                return raise_if_filtered(_read_reply(answer, shown))

        build = partial(_encode_body, request, stream=shown.on_text is not None)
        return self._fields.call_without_refused(build, send)

    def build_wire_request(self, request: ModelRequest) -> WireRequest:
        stream, unwanted = request.settings.stream, self._fields.unsupported
        body = _encode_body(request, unwanted, stream=stream)
        return self._server.describe_request(PATH, body)

    def list_models(self, *, deadline: Deadline) -> list[ModelCard]:
        """Return the models that the server lists, by name."""
        return fetch_model_list(self._server, deadline=deadline)

    def close(self) -> None:
        self._server.close()


def _encode_body(
    request: ModelRequest, unwanted: frozenset[str], *, stream: bool
) -> bytes:
    fields = build_responses_body(request, stream=stream)
    return encode_wire_json(
        {name: fields[name] for name in fields if name not in unwanted}
    )


def build_responses_body(request: ModelRequest, *, stream: bool) -> dict[str, Any]:
    settings = request.settings
    body = {
        name: value
        for name, value in settings.parameters.items()
        if name not in RESERVED_FIELDS
    }
    if "max_tokens" in body:
        body["max_output_tokens"] = body.pop("max_tokens")
    body |= {
        "model": settings.model,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "input": [item for one in request.messages for item in _build_items(one)],
    }
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": get_argument_schema(tool),
                "strict": False,
            }
            for tool in request.tools
        ]
    if request.output_schema is not None:
        form = {"type": "json_schema", "name": "answer", "strict": False}
        body["text"] = {"format": {**form, "schema": request.output_schema}}
    if stream:
        body["stream"] = True
    return body


def _build_items(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        call_id = message.tool_call_id or ""
        output = {"type": "function_call_output", "call_id": call_id}
        return [{**output, "output": message.text}]
    if message.media:
        return [{"role": message.role, "content": _build_parts(message)}]
    text: list[dict[str, Any]] = []
    if message.text or not message.tool_calls:
        text.append({"role": message.role, "content": message.text})
    calls: list[dict[str, Any]] = [
        {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments or "{}",
        }
        for call in message.tool_calls
    ]
    return _insert_reasoning(message, text, calls) if calls else text


def _build_parts(message: Message) -> list[dict[str, Any]]:
    return [
        {"type": "input_image", "image_url": part.url}
        if isinstance(part, ImagePart)
        else {"type": "input_text", "text": part.text}
        for part in message.content
        if not isinstance(part, AudioPart)
    ]


def _insert_reasoning(
    message: Message, text: list[dict[str, Any]], calls: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return text and calls with the reasoning before what it led to.

    OpenAI encrypts it; servers of open models send it as text.
    """
    native = get_dicts(message.native or {}, "output")
    if all(item.get("type") != "message" for item in native):
        text, calls = [], [*text, *calls]
    items: list[dict[str, Any]] = []
    for item in native:
        match item.get("type"):
            case "reasoning" if item.get("encrypted_content") or item.get("content"):
                fields = {name: item[name] for name in REASONING_FIELDS if name in item}
                items.append({"summary": [], **fields})
            case "message" if text:
                items.append(text.pop())
            case "function_call" if calls:
                items.append(calls.pop(0))
    return [*items, *text, *calls]


def _read_reply(answer: ServerResponse, shown: TextForwarder) -> Reply:
    if shown.on_text is not None and answer.is_stream:
        stream = ResponseStream(shown)
        for event in parse_server_sent_events(answer.chunks):
            if stream.feed(event.data):
                break
        return stream.reply()
    raw = answer.read()
    try:
        reply = build_response_reply(parse_json_object(raw))
    except InvalidJson as error:
        raise NotAReply(describe_non_json(raw)) from error
    if reply.text:
        shown(reply.text)
    return reply


class ResponseStream:
    """A response while it is streamed; its last event repeats all of it."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._items: list[dict[str, Any]] = []
        self._whole: dict[str, Any] | None = None
        self._has_begun = False

    def feed(self, raw: bytes) -> bool:
        """Add one event; return whether it was the last."""
        try:
            event = parse_json_object(raw)
        except InvalidJson as error:
            raise NotAReply("a stream with a chunk that is not JSON") from error
        kind = get_text(event, "type")
        self._has_begun = self._has_begun or kind.startswith("response.")
        if kind == "error" or (not kind and event.get("error")):
            message = event.get("error")
            raise ErrorResponse(message if isinstance(message, dict) else event)
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            piece = get_text(event, "delta")
            if piece:
                self._on_text(piece)
        elif kind == "response.output_item.done":
            self._items += get_dicts({"item": [event.get("item")]}, "item")
        elif kind in END_EVENTS:
            response = event.get("response")
            self._whole = response if isinstance(response, dict) else {}
        return self._whole is not None

    def reply(self) -> Reply:
        """Return the reply; raise `NotAReply` or `StreamCutOff` if it is incomplete."""
        if not self._has_begun:
            raise NotAReply("a stream without a reply")
        if self._whole is None:
            raise StreamCutOff("the stream ended early")
        output = get_dicts(self._whole, "output") or self._items
        return build_response_reply({**self._whole, "output": output})


def build_response_reply(answer: dict[str, Any]) -> Reply:
    """Return the reply in a response; raise `NotAReply` or `ErrorResponse`."""
    if answer.get("error"):
        error = answer["error"]
        raise ErrorResponse(
            error if isinstance(error, dict) else {"message": str(error)}
        )
    if answer.get("status") in ("failed", "cancelled"):
        raise NotAReply(f"a {answer['status']} response without a reason")
    if not isinstance(answer.get("output"), list):
        raise NotAReply("an answer without output")
    items = get_dicts(answer, "output")
    calls = [
        ToolCall(
            id=get_text(one, "call_id") or get_text(one, "id"),
            name=get_text(one, "name"),
            arguments=get_text(one, "arguments"),
        )
        for one in items
        if one.get("type") == "function_call"
    ]
    details = answer.get("incomplete_details")
    reason = get_text(details, "reason") if isinstance(details, dict) else ""
    finish = "tool_calls" if calls else "stop"
    return Reply(
        text="".join(_item_text(one) for one in items if one.get("type") == "message"),
        tool_calls=assign_unique_call_ids(calls),
        reasoning="\n\n".join(
            text
            for one in items
            if one.get("type") == "reasoning"
            for key in ("summary", "content")
            for text in (get_text(part, "text") for part in get_dicts(one, key))
            if text
        ),
        finish_reason=FINISH_REASONS.get(reason, reason) or finish,
        usage=parse_response_usage(answer.get("usage")),
        model=get_text(answer, "model"),
        native={"role": "assistant", "output": answer["output"]},
    )


def _item_text(item: dict[str, Any]) -> str:
    parts = get_dicts(item, "content")
    return "".join(get_text(one, "text") or get_text(one, "refusal") for one in parts)


def parse_response_usage(usage: Any) -> Usage | None:
    """Return the tokens that a server counted, or None."""
    if not isinstance(usage, dict):
        return None
    sent, made = (
        one if isinstance(one, dict) else {}
        for one in (
            usage.get("input_tokens_details"),
            usage.get("output_tokens_details"),
        )
    )
    return Usage(
        input_tokens=parse_token_count(usage.get("input_tokens")),
        output_tokens=parse_token_count(usage.get("output_tokens")),
        cached_tokens=parse_token_count(sent.get("cached_tokens")),
        reasoning_tokens=parse_token_count(made.get("reasoning_tokens")),
    )
