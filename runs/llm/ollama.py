"""Kind `ollama`: Ollama's own chat format, one JSON object per line."""

import json
from typing import Any

from runs.engine.types import ImagePart, Message, ModelRequest, Reply, ToolCall, Usage
from runs.llm.anthropic import parse_call_arguments
from runs.llm.base import Endpoint, ModelCard, WireRequest
from runs.llm.chat_completions import (
    RESERVED_FIELDS,
    assign_unique_call_ids,
    encode_tools,
    parse_token_count,
)
from runs.llm.errors import ModelCallError
from runs.llm.server import ModelServer, ServerResponse, TextForwarder
from runs.llm.wire import (
    ErrorResponse,
    InvalidJson,
    NotAReply,
    OnText,
    StreamCutOff,
    describe_non_json,
    encode_wire_json,
    get_text,
    parse_json_object,
)
from tools.net.deadline import Deadline
from tools.net.netguard import NetPolicy
from tools.net.server_sent_events import iter_stream_lines

PATH = "/chat"
TOP_LEVEL_PARAMETERS = frozenset(
    ("think", "keep_alive", "format", "logprobs", "top_logprobs")
)
"""Parameters that are sent beside the options, not among them."""

MAX_DETAIL_REQUESTS = 30
"""Models whose details are fetched, each with its own request."""


class Ollama:
    def __init__(self, endpoint: Endpoint, policy: NetPolicy) -> None:
        key = endpoint.key.strip()
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._server = ModelServer(endpoint, policy, headers=headers, root="/api")

    def complete(
        self,
        request: ModelRequest,
        *,
        deadline: Deadline,
        on_text: OnText | None = None,
    ) -> Reply:
        shown = TextForwarder(on_text if request.settings.stream else None)
        body = build_ollama_body(request, stream=shown.on_text is not None)
        model = request.settings.model
        with self._server.exchange_reply(
            PATH, body, deadline=deadline, model=model, shown=shown
        ) as answer:
            return _read_reply(answer, shown)

    def build_wire_request(self, request: ModelRequest) -> WireRequest:
        body = build_ollama_body(request, stream=request.settings.stream)
        return self._server.describe_request(PATH, body)

    def list_models(self, *, deadline: Deadline) -> list[ModelCard]:
        """Return the pulled models, sorted by name."""
        with self._server.exchange("/tags", deadline=deadline) as answer:
            raw = answer.read()
        try:
            models = parse_json_object(raw).get("models")
        except InvalidJson as error:
            raise self._server.build_bad_list_error(describe_non_json(raw)) from error
        if not isinstance(models, list):
            raise self._server.build_bad_list_error("something else")
        named = {get_text(one, "name") for one in models if isinstance(one, dict)}
        names = sorted(filter(None, named))
        described = {
            name: self._fetch_model_details(name, deadline)
            for name in names[:MAX_DETAIL_REQUESTS]
        }
        return [described.get(name) or ModelCard(name=name) for name in names]

    def _fetch_model_details(self, name: str, deadline: Deadline) -> ModelCard:
        body = encode_wire_json({"model": name})
        try:
            with self._server.exchange(
                "/show", body, deadline=deadline, model=name
            ) as message:
                return parse_model_details(name, parse_json_object(message.read()))
        except (ModelCallError, InvalidJson):
            return ModelCard(name=name)

    def close(self) -> None:
        self._server.close()


def parse_model_details(name: str, message: dict[str, Any]) -> ModelCard:
    """Return the features and context size in a response of /api/show."""
    can, info = message.get("capabilities"), message.get("model_info")
    sizes = [
        parse_token_count(value)
        for key, value in (info.items() if isinstance(info, dict) else ())
        if key.endswith(".context_length")
    ]
    return ModelCard(
        name=name,
        functions="tools" in can if isinstance(can, list) else None,
        images="vision" in can if isinstance(can, list) else None,
        stop_words=True,
        streaming=True,
        context_tokens=next(filter(None, sizes), None),
    )


def build_ollama_body(request: ModelRequest, *, stream: bool) -> bytes:
    settings = request.settings
    options = {
        name: value
        for name, value in settings.parameters.items()
        if name not in RESERVED_FIELDS | TOP_LEVEL_PARAMETERS
    }
    if "max_tokens" in options:
        options["num_predict"] = options.pop("max_tokens")
    if request.stop:
        options["stop"] = list(request.stop)
    fields: dict[str, Any] = {
        name: value
        for name, value in settings.parameters.items()
        if name in TOP_LEVEL_PARAMETERS
    }
    if request.output_schema is not None:
        fields["format"] = request.output_schema
    names = {call.id: call.name for one in request.messages for call in one.tool_calls}
    fields |= {
        "model": settings.model,
        "stream": stream,
        "options": options,
        "messages": [_build_message(one, names) for one in request.messages],
    }
    if not request.tools:
        return encode_wire_json(fields)
    tools = encode_tools(request.tools)
    return b"".join((encode_wire_json(fields)[:-1], b',"tools":', tools, b"}"))


def _build_message(message: Message, names: dict[str, str]) -> dict[str, Any]:
    shape: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.tool_calls:
        shape["tool_calls"] = [
            {"function": {"name": call.name, "arguments": parse_call_arguments(call)}}
            for call in message.tool_calls
        ]
    images = [one.data for one in message.media if isinstance(one, ImagePart)]
    if images:
        shape["images"] = images
    if message.role == "tool":
        shape["tool_name"] = names.get(message.tool_call_id or "", "")
    thinking = get_text(message.native or {}, "thinking")
    if thinking and message.tool_calls:
        shape["thinking"] = thinking
    return shape


def _read_reply(answer: ServerResponse, shown: TextForwarder) -> Reply:
    stream = OllamaStream(shown)
    if shown.on_text is None:
        stream.feed(answer.read())
        return stream.reply()
    if answer.content_type.startswith("text/html"):
        raise NotAReply(describe_non_json(answer.read()))
    for line in iter_stream_lines(answer.chunks):
        if line.strip() and stream.feed(line):
            break
    return stream.reply()


class OllamaStream:
    """A reply while it is streamed; a complete response is a stream of one line."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._last: dict[str, Any] = {}
        self._has_begun = False

    def feed(self, raw: bytes) -> bool:
        """Add one line; return whether it was the last."""
        try:
            line = parse_json_object(raw)
        except InvalidJson as error:
            what = "a stream with a chunk that is not JSON"
            raise NotAReply(
                what if self._has_begun else describe_non_json(raw)
            ) from error
        if line.get("error"):
            raise ErrorResponse({"message": str(line["error"])})
        message = line.get("message")
        if not isinstance(message, dict):
            raise NotAReply("an answer without a message")
        self._has_begun = True
        self._add(message)
        self._last = {name: line[name] for name in line if name != "message"}
        return line.get("done") is True

    def _add(self, message: dict[str, Any]) -> None:
        text, thinking = get_text(message, "content"), get_text(message, "thinking")
        if text:
            self._text.append(text)
            self._on_text(text)
        if thinking:
            self._thinking.append(thinking)
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            self._calls += [one for one in calls if isinstance(one, dict)]

    def reply(self) -> Reply:
        """Return the reply; raise `NotAReply` or `StreamCutOff` if it is incomplete."""
        if not self._has_begun:
            raise NotAReply("a stream without a reply")
        if self._last.get("done") is not True:
            raise StreamCutOff("the stream ended early")
        text, thinking = "".join(self._text), "".join(self._thinking)
        native: dict[str, Any] = {"role": "assistant", "content": text}
        if thinking:
            native["thinking"] = thinking
        if self._calls:
            native["tool_calls"] = self._calls
        reason = get_text(self._last, "done_reason")
        return Reply(
            text=text,
            tool_calls=assign_unique_call_ids(
                [_parse_call(one) for one in self._calls]
            ),
            reasoning=thinking,
            finish_reason="tool_calls" if self._calls and reason == "stop" else reason,
            usage=Usage(
                input_tokens=parse_token_count(self._last.get("prompt_eval_count")),
                output_tokens=parse_token_count(self._last.get("eval_count")),
            ),
            model=get_text(self._last, "model"),
            native=native,
        )


def _parse_call(call: dict[str, Any]) -> ToolCall:
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = json.dumps(
            {} if arguments is None else arguments,
            ensure_ascii=False,
            separators=(",", ":"),
        )
    name = get_text(function, "name")
    return ToolCall(id=get_text(call, "id"), name=name, arguments=arguments)
