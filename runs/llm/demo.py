"""Kind `demo`: a scripted model that needs no network, and says so.

It writes the bytes a Chat Completions server would send, and reads them with the parser
that reads real servers.
"""

import re
from collections.abc import Iterator
from typing import Any

from runs.engine.types import ModelRequest, Reply
from runs.llm.base import Endpoint, ModelCard
from runs.llm.chat import read_reply, read_stream
from runs.llm.demo_script import Line, next_line
from runs.llm.errors import ModelFailed
from runs.llm.wire import OnText, read_events, write_json
from tools.watch import Watch

MODELS = ("demo-planner", "demo-approval", "demo-slow", "demo-fails")
WORDS_PER_SECOND = 30.0
WORD = re.compile(r"[\u3000-\u9fff\uff00-\uffef]{1,2}|[^\s\u3000-\u9fff]+\s*|\s+")


class Demo:
    """The demo model; the parameter `words_per_second` sets its pace."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._slug = endpoint.slug

    def ask(
        self, request: ModelRequest, *, watch: Watch, on_text: OnText | None = None
    ) -> Reply:
        """Return the scripted reply; see `LLM.ask`."""
        watch.check()
        model = request.settings.model or MODELS[0]
        if model not in MODELS:
            raise ModelFailed(
                "not_found",
                f"The demo provider has no model {model!r}."
                f" It has {', '.join(MODELS)}.",
                status=404,
            )
        if model == "demo-fails":
            raise ModelFailed(
                "overloaded",
                "The demo model 'demo-fails' always fails, as a busy server does"
                " (status 503).",
                status=503,
                may_retry=True,
            )
        line = next_line(model, request)
        if on_text is None or not request.settings.stream:
            return read_reply(_whole(model, line, request))
        pace = _pace(request.settings.parameters.get("words_per_second"))
        chunks = _streamed(model, line, request, watch=watch, pause=1 / pace)
        return read_stream(read_events(chunks), on_text)

    def list_models(self, *, watch: Watch) -> list[ModelCard]:
        """Return the scripts there are."""
        return [
            ModelCard(name, functions=True, stop_words=False, streaming=True)
            for name in MODELS
        ]

    def close(self) -> None:
        """Nothing is open."""


def _pace(value: Any) -> float:
    is_number = isinstance(value, int | float) and 0 < value < 1e6
    return float(value) if is_number else WORDS_PER_SECOND


def _usage(line: Line, request: ModelRequest) -> dict[str, int]:
    """Count about as a tokenizer would: four bytes are a token."""
    prompt = sum(len(one.canonical) for one in request.messages) // 4 + 1
    said = "".join((line.text, line.arguments, *line.more))
    completion = len(said.encode()) // 4 + 1
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def _calls(line: Line, request: ModelRequest) -> list[dict[str, Any]]:
    first = sum(one.role == "tool" for one in request.messages) + 1
    return [
        {
            "id": f"demo_{number}",
            "type": "function",
            "function": {"name": line.tool, "arguments": arguments},
        }
        for number, arguments in enumerate((line.arguments, *line.more), first)
    ]


def _whole(model: str, line: Line, request: ModelRequest) -> bytes:
    message: dict[str, Any] = {"role": "assistant", "content": line.text}
    if line.tool:
        message["tool_calls"] = _calls(line, request)
    finish = "tool_calls" if line.tool else "stop"
    return write_json(
        {
            "object": "chat.completion",
            "model": model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": _usage(line, request),
        }
    )


def _streamed(
    model: str, line: Line, request: ModelRequest, *, watch: Watch, pause: float
) -> Iterator[bytes]:
    base = {"object": "chat.completion.chunk", "model": model}

    def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return b"data: " + write_json({**base, "choices": [choice]}) + b"\n\n"

    yield event({"role": "assistant", "content": ""})
    for word in WORD.findall(line.text):
        watch.sleep(pause)
        yield event({"content": word})
    if line.tool:
        for index, call in enumerate(_calls(line, request)):
            yield event({"tool_calls": [{"index": index, **call}]})
    yield event({}, "tool_calls" if line.tool else "stop")
    usage = {**base, "choices": [], "usage": _usage(line, request)}
    yield b"data: " + write_json(usage) + b"\n\ndata: [DONE]\n\n"
