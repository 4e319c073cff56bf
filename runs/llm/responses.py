"""Kind `responses`: OpenAI's Responses, with nothing kept at the provider."""

from typing import Any

from runs.engine.types import Message, ModelRequest, Reply, ToolCall, Usage
from runs.llm.base import Endpoint, ModelCard
from runs.llm.chat import OURS, count, named_apart, schema_of
from runs.llm.model_list import listed_models
from runs.llm.openai import refused_if_filtered
from runs.llm.optional_fields import OptionalFields
from runs.llm.server import Answer, ModelServer, Shown
from runs.llm.wire import (
    BadJson,
    CutOff,
    ErrorSent,
    NoReply,
    OnText,
    dicts_in,
    read_events,
    read_object,
    text_in,
    what_it_is,
    write_json,
)
from tools.netguard import NetPolicy
from tools.watch import Watch

FINISH = {"max_output_tokens": "length", "content_filter": "content_filter"}
ENDS = ("response.completed", "response.incomplete", "response.failed")


class Responses:
    """A Responses server."""

    def __init__(self, endpoint: Endpoint, policy: NetPolicy) -> None:
        key = endpoint.key.strip()
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._server = ModelServer(endpoint, policy, headers=headers)
        self._fields = OptionalFields("include", "text")

    def ask(
        self, request: ModelRequest, *, watch: Watch, on_text: OnText | None = None
    ) -> Reply:
        """Return the model's reply; see `LLM.ask`. The engine enforces stop words."""
        shown = Shown(on_text if request.settings.stream else None)
        stream = shown.on_text is not None
        model = request.settings.model

        def ask_once(unwanted: frozenset[str]) -> Reply:
            fields = body_of(request, stream=stream)
            body = {name: fields[name] for name in fields if name not in unwanted}
            with self._server.reply_from(
                "/responses", write_json(body), watch=watch, model=model, shown=shown
            ) as answer:
                return refused_if_filtered(_reply(answer, shown))

        return self._fields.tried(ask_once)

    def list_models(self, *, watch: Watch) -> list[ModelCard]:
        """Return the models the server names, by name."""
        return listed_models(self._server, watch=watch)

    def close(self) -> None:
        """Give back the connections."""
        self._server.close()


def body_of(request: ModelRequest, *, stream: bool) -> dict[str, Any]:
    """Return the body of a call."""
    settings = request.settings
    body = {
        name: value for name, value in settings.parameters.items() if name not in OURS
    }
    if "max_tokens" in body:
        body["max_output_tokens"] = body.pop("max_tokens")
    body |= {
        "model": settings.model,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "input": [item for one in request.messages for item in _items(one)],
    }
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": schema_of(tool),
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


def _items(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        call_id = message.tool_call_id or ""
        output = {"type": "function_call_output", "call_id": call_id}
        return [{**output, "output": message.text}]
    items = _reasoning_items(message)
    if message.text or not message.tool_calls:
        items.append({"role": message.role, "content": message.text})
    for call in message.tool_calls:
        named = {"type": "function_call", "call_id": call.id, "name": call.name}
        items.append({**named, "arguments": call.arguments or "{}"})
    return items


def _reasoning_items(message: Message) -> list[dict[str, Any]]:
    """Return the sealed reasoning that calls of a reasoning model want in front."""
    if not message.tool_calls:
        return []
    return [
        {name: one.get(name) for name in ("type", "id", "summary", "encrypted_content")}
        for one in dicts_in(message.native or {}, "output")
        if one.get("type") == "reasoning" and one.get("encrypted_content")
    ]


def _reply(answer: Answer, shown: Shown) -> Reply:
    if shown.on_text is not None and answer.is_stream:
        stream = ResponseStream(shown)
        for event in read_events(answer.chunks):
            if stream.take(event.data):
                break
        return stream.reply()
    raw = answer.read()
    try:
        reply = reply_in(read_object(raw))
    except BadJson as error:
        raise NoReply(what_it_is(raw)) from error
    if reply.text:
        shown(reply.text)
    return reply


class ResponseStream:
    """A response in the making; its last event repeats all of it."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._items: list[dict[str, Any]] = []
        self._whole: dict[str, Any] | None = None
        self._has_begun = False

    def take(self, raw: bytes) -> bool:
        """Add one event; return whether it was the last."""
        try:
            event = read_object(raw)
        except BadJson as error:
            raise NoReply("a stream with a piece that is no JSON") from error
        kind = text_in(event, "type")
        self._has_begun = self._has_begun or kind.startswith("response.")
        if kind == "error" or (not kind and event.get("error")):
            told = event.get("error")
            raise ErrorSent(told if isinstance(told, dict) else event)
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            piece = text_in(event, "delta")
            if piece:
                self._on_text(piece)
        elif kind == "response.output_item.done":
            self._items += dicts_in({"item": [event.get("item")]}, "item")
        elif kind in ENDS:
            response = event.get("response")
            self._whole = response if isinstance(response, dict) else {}
        return self._whole is not None

    def reply(self) -> Reply:
        """Return what came; raise `NoReply` or `CutOff` if it is no whole response."""
        if not self._has_begun:
            raise NoReply("a stream without a reply")
        if self._whole is None:
            raise CutOff("the stream ended early")
        output = dicts_in(self._whole, "output") or self._items
        return reply_in({**self._whole, "output": output})


def reply_in(answer: dict[str, Any]) -> Reply:
    """Return the reply in a response; raise `NoReply` or `ErrorSent`."""
    if answer.get("error"):
        error = answer["error"]
        raise ErrorSent(error if isinstance(error, dict) else {"message": str(error)})
    if not isinstance(answer.get("output"), list):
        raise NoReply("an answer without output")
    items = dicts_in(answer, "output")
    calls = [
        ToolCall(
            id=text_in(one, "call_id") or text_in(one, "id"),
            name=text_in(one, "name"),
            arguments=text_in(one, "arguments"),
        )
        for one in items
        if one.get("type") == "function_call"
    ]
    details = answer.get("incomplete_details")
    reason = text_in(details, "reason") if isinstance(details, dict) else ""
    finish = "tool_calls" if calls else "stop"
    return Reply(
        text="".join(_text_of(one) for one in items if one.get("type") == "message"),
        tool_calls=named_apart(calls),
        reasoning="\n\n".join(
            text
            for one in items
            if one.get("type") == "reasoning"
            for key in ("summary", "content")
            for text in (text_in(part, "text") for part in dicts_in(one, key))
            if text
        ),
        finish_reason=FINISH.get(reason, reason) or finish,
        usage=usage_in(answer.get("usage")),
        model=text_in(answer, "model"),
        native={"role": "assistant", "output": answer["output"]},
    )


def _text_of(item: dict[str, Any]) -> str:
    parts = dicts_in(item, "content")
    return "".join(text_in(one, "text") or text_in(one, "refusal") for one in parts)


def usage_in(usage: Any) -> Usage | None:
    """Return the tokens a server counted, None where it did not."""
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
        input_tokens=count(usage.get("input_tokens")),
        output_tokens=count(usage.get("output_tokens")),
        cached_tokens=count(sent.get("cached_tokens")),
        reasoning_tokens=count(made.get("reasoning_tokens")),
    )
