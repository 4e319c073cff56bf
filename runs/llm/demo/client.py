"""Provider kind `demo`: a scripted model that needs no network.

Replies are encoded as a Chat Completions stream, and parsed like those of servers.
"""

import re
from collections.abc import Iterator
from typing import Any

from runs.engine.types import ModelRequest, Reply
from runs.llm.base import Endpoint, ModelCard, WireRequest
from runs.llm.chat_completions import build_chat_body, encode_tools, parse_chat_stream
from runs.llm.demo.script import ScriptedReply, next_scripted_reply
from runs.llm.errors import ModelCallError
from runs.llm.wire import OnText, encode_wire_json
from tools.net.deadline import Deadline
from tools.net.server_sent_events import parse_server_sent_events

MODELS = ("demo-planner", "demo-slow", "demo-fails")
WORDS_PER_SECOND = 30.0
"""Reading speed; the model parameter `words_per_second` overrides it."""

WORD = re.compile(r"[\u3000-\u9fff\uff00-\uffef]{1,2}|[^\s\u3000-\u9fff]+\s*|\s+")


class Demo:
    def __init__(self, endpoint: Endpoint) -> None:
        self._slug = endpoint.slug

    def complete(
        self,
        request: ModelRequest,
        *,
        deadline: Deadline,
        on_text: OnText | None = None,
    ) -> Reply:
        deadline.check()
        model = request.settings.model or MODELS[0]
        if model not in MODELS:
            raise ModelCallError(
                "not_found",
                f"Model {model!r} not found. The demo provider has"
                f" {', '.join(MODELS)}.",
                status=404,
            )
        if model == "demo-fails":
            raise ModelCallError(
                "overloaded",
                "The demo model 'demo-fails' always fails like an overloaded server"
                " (status 503).",
                status=503,
                may_retry=True,
            )
        shown = on_text if request.settings.stream else None
        pace = _parse_pace(request.settings.parameters.get("words_per_second"))
        chunks = _stream_body(
            next_scripted_reply(model, request),
            request,
            deadline=deadline,
            pause=1 / pace if shown else 0,
        )
        return parse_chat_stream(
            parse_server_sent_events(chunks), shown or (lambda _: None)
        )

    def build_wire_request(self, request: ModelRequest) -> WireRequest:
        """Return the request as a Chat Completions server would get it."""
        body = build_chat_body(
            request,
            stream=request.settings.stream,
            tools=encode_tools(request.tools),
            messages=[message.canonical for message in request.messages],
        )
        return WireRequest("", {}, body)

    def list_models(self, *, deadline: Deadline) -> list[ModelCard]:
        return [
            ModelCard(name, functions=True, stop_words=False, streaming=True)
            for name in MODELS
        ]

    def close(self) -> None:
        """Do nothing: no connection is open."""


def _parse_pace(value: Any) -> float:
    is_number = isinstance(value, int | float) and 0 < value < 1e6
    return float(value) if is_number else WORDS_PER_SECOND


def _stream_body(
    reply: ScriptedReply, request: ModelRequest, *, deadline: Deadline, pause: float
) -> Iterator[bytes]:
    base = {"model": request.settings.model or MODELS[0]}

    def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return b"data: " + encode_wire_json({**base, "choices": [choice]}) + b"\n\n"

    for word in WORD.findall(reply.text):
        if pause:
            deadline.sleep(pause)
        yield event({"content": word})
    first = sum(one.role == "tool" for one in request.messages) + 1
    for index, arguments in enumerate(reply.calls):
        function = {"name": reply.tool, "arguments": arguments}
        call = {"index": index, "id": f"demo_{first + index}", "function": function}
        yield event({"tool_calls": [call]})
    yield event({}, "tool_calls" if reply.calls else "stop")
    # Four bytes per token are about what a tokenizer counts.
    usage = {
        "prompt_tokens": sum(len(one.canonical) for one in request.messages) // 4 + 1,
        "completion_tokens": len("".join((reply.text, *reply.calls)).encode()) // 4 + 1,
    }
    yield b"data: " + encode_wire_json({**base, "choices": [], "usage": usage})
    yield b"\n\ndata: [DONE]\n\n"
