"""Kind `ollama`: Ollama's own chat format, one JSON object a line."""

import json
from typing import Any

from runs.engine.types import Message, ModelRequest, Reply, ToolCall, Usage
from runs.llm.anthropic import arguments_of
from runs.llm.base import Endpoint, ModelCard
from runs.llm.chat import OURS, count, named_apart, tool_bytes
from runs.llm.errors import ModelFailed
from runs.llm.server import Answer, ModelServer, Shown
from runs.llm.wire import (
    BadJson,
    CutOff,
    ErrorSent,
    NoReply,
    OnText,
    read_lines,
    read_object,
    text_in,
    what_it_is,
    write_json,
)
from tools.netguard import NetPolicy
from tools.watch import Watch

TOP_LEVEL = frozenset(("think", "keep_alive", "format", "logprobs", "top_logprobs"))
"""Parameters that stand beside the options, not among them."""

MAX_DESCRIBED = 30
"""Models that are asked for one by one."""


class Ollama:
    """An Ollama server."""

    def __init__(self, endpoint: Endpoint, policy: NetPolicy) -> None:
        key = endpoint.key.strip()
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._server = ModelServer(endpoint, policy, headers=headers, root="/api")

    def ask(
        self, request: ModelRequest, *, watch: Watch, on_text: OnText | None = None
    ) -> Reply:
        """Return the model's reply; see `LLM.ask`."""
        shown = Shown(on_text if request.settings.stream else None)
        body = body_of(request, stream=shown.on_text is not None)
        model = request.settings.model
        with self._server.reply_from(
            "/chat", body, watch=watch, model=model, shown=shown
        ) as answer:
            return _reply(answer, shown)

    def list_models(self, *, watch: Watch) -> list[ModelCard]:
        """Return the models that are pulled, by name."""
        with self._server.exchange("/tags", watch=watch) as answer:
            raw = answer.read()
        try:
            models = read_object(raw).get("models")
        except BadJson as error:
            raise self._server.bad_list(what_it_is(raw)) from error
        if not isinstance(models, list):
            raise self._server.bad_list("something else")
        named = {text_in(one, "name") for one in models if isinstance(one, dict)}
        names = sorted(filter(None, named))
        described = {name: self._card(name, watch) for name in names[:MAX_DESCRIBED]}
        return [described.get(name) or ModelCard(name=name) for name in names]

    def _card(self, name: str, watch: Watch) -> ModelCard:
        """Return what the server knows of a model; it tells of one at a time."""
        body = write_json({"model": name})
        try:
            with self._server.exchange("/show", body, watch=watch, model=name) as told:
                return card_in(name, read_object(told.read()))
        except (ModelFailed, BadJson):
            return ModelCard(name=name)

    def close(self) -> None:
        """Give back the connections."""
        self._server.close()


def card_in(name: str, told: dict[str, Any]) -> ModelCard:
    """Return the abilities and the context size in an answer to /api/show."""
    can, info = told.get("capabilities"), told.get("model_info")
    sizes = [
        count(value)
        for key, value in (info.items() if isinstance(info, dict) else ())
        if key.endswith(".context_length")
    ]
    return ModelCard(
        name=name,
        functions="tools" in can if isinstance(can, list) else None,
        stop_words=True,
        streaming=True,
        context_tokens=next(filter(None, sizes), None),
    )


def body_of(request: ModelRequest, *, stream: bool) -> bytes:
    """Return the body of a call."""
    settings = request.settings
    options = {
        name: value
        for name, value in settings.parameters.items()
        if name not in OURS | TOP_LEVEL
    }
    if "max_tokens" in options:
        options["num_predict"] = options.pop("max_tokens")
    if request.stop:
        options["stop"] = list(request.stop)
    fields: dict[str, Any] = {
        name: value for name, value in settings.parameters.items() if name in TOP_LEVEL
    }
    if request.output_schema is not None:
        fields["format"] = request.output_schema
    names = {call.id: call.name for one in request.messages for call in one.tool_calls}
    fields |= {
        "model": settings.model,
        "stream": stream,
        "options": options,
        "messages": [_message(one, names) for one in request.messages],
    }
    if not request.tools:
        return write_json(fields)
    tools = tool_bytes(request.tools)
    return b"".join((write_json(fields)[:-1], b',"tools":', tools, b"}"))


def _message(message: Message, names: dict[str, str]) -> dict[str, Any]:
    shape: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.tool_calls:
        shape["tool_calls"] = [
            {"function": {"name": call.name, "arguments": arguments_of(call)}}
            for call in message.tool_calls
        ]
    if message.role == "tool":
        shape["tool_name"] = names.get(message.tool_call_id or "", "")
    thinking = text_in(message.native or {}, "thinking")
    if thinking and message.tool_calls:
        shape["thinking"] = thinking
    return shape


def _reply(answer: Answer, shown: Shown) -> Reply:
    stream = ChatLines(shown)
    if shown.on_text is None:
        stream.take(answer.read())
        return stream.reply()
    if answer.content_type.startswith("text/html"):
        raise NoReply(what_it_is(answer.read()))
    for line in read_lines(answer.chunks):
        if line.strip() and stream.take(line):
            break
    return stream.reply()


class ChatLines:
    """A reply in the making; a whole answer is one line of it."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._last: dict[str, Any] = {}
        self._has_begun = False

    def take(self, raw: bytes) -> bool:
        """Add one line; return whether it was the last."""
        try:
            line = read_object(raw)
        except BadJson as error:
            what = "a stream with a piece that is no JSON"
            raise NoReply(what if self._has_begun else what_it_is(raw)) from error
        if line.get("error"):
            raise ErrorSent({"message": str(line["error"])})
        message = line.get("message")
        if not isinstance(message, dict):
            raise NoReply("an answer without a message")
        self._has_begun = True
        self._add(message)
        self._last = {name: line[name] for name in line if name != "message"}
        return line.get("done") is True

    def _add(self, message: dict[str, Any]) -> None:
        text, thinking = text_in(message, "content"), text_in(message, "thinking")
        if text:
            self._text.append(text)
            self._on_text(text)
        if thinking:
            self._thinking.append(thinking)
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            self._calls += [one for one in calls if isinstance(one, dict)]

    def reply(self) -> Reply:
        """Return what came; raise `NoReply` or `CutOff` if that is no whole reply."""
        if not self._has_begun:
            raise NoReply("a stream without a reply")
        if self._last.get("done") is not True:
            raise CutOff("the stream ended early")
        text, thinking = "".join(self._text), "".join(self._thinking)
        native: dict[str, Any] = {"role": "assistant", "content": text}
        if thinking:
            native["thinking"] = thinking
        if self._calls:
            native["tool_calls"] = self._calls
        reason = text_in(self._last, "done_reason")
        return Reply(
            text=text,
            tool_calls=named_apart([_call(one) for one in self._calls]),
            reasoning=thinking,
            finish_reason="tool_calls" if self._calls and reason == "stop" else reason,
            usage=Usage(
                input_tokens=count(self._last.get("prompt_eval_count")),
                output_tokens=count(self._last.get("eval_count")),
            ),
            model=text_in(self._last, "model"),
            native=native,
        )


def _call(call: dict[str, Any]) -> ToolCall:
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = json.dumps(
            {} if arguments is None else arguments,
            ensure_ascii=False,
            separators=(",", ":"),
        )
    name = text_in(function, "name")
    return ToolCall(id=text_in(call, "id"), name=name, arguments=arguments)
