"""Kind `gemini`: Google's Gemini, through its Chat Completions surface."""

from typing import Any

from runs.engine.types import Message
from runs.llm.base import Endpoint
from runs.llm.openai import OpenAI
from runs.llm.wire import dicts_in, read_object, write_json
from tools.netguard import NetPolicy


def open_gemini(endpoint: Endpoint, policy: NetPolicy) -> OpenAI:
    """Return a connection that gives Gemini its signatures back."""
    return OpenAI(endpoint, policy, write=with_signatures)


def with_signatures(message: Message) -> bytes:
    """Return the message with the signatures of its calls, which Gemini 3 insists on.

    They come as unknown fields (`extra_content`) of the calls in the native message.
    """
    extras = [
        _extra(one)
        for one in dicts_in(message.native or {}, "tool_calls")
        if isinstance(one.get("function"), dict)  # as `calls_of` counts them
    ]
    if not message.tool_calls or not any(extras):
        return message.canonical
    shape = read_object(message.canonical)
    for call, extra in zip(shape["tool_calls"], extras, strict=False):
        call.update(extra)
    return write_json(shape)


def _extra(call: dict[str, Any]) -> dict[str, Any]:
    if isinstance(call.get("extra_content"), dict):
        return {"extra_content": call["extra_content"]}
    return {}
