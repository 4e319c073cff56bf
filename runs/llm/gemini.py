"""Kind `gemini`: Google's Gemini, through its Chat Completions endpoint."""

from typing import Any

from runs.engine.types import Message
from runs.llm.base import Endpoint
from runs.llm.openai import OpenAI
from runs.llm.wire import encode_wire_json, get_dicts, parse_json_object
from tools.net.netguard import NetPolicy


def open_gemini(endpoint: Endpoint, policy: NetPolicy) -> OpenAI:
    """Return a connection that sends Gemini's thought signatures back."""
    return OpenAI(endpoint, policy, write=encode_with_signatures)


def encode_with_signatures(message: Message) -> bytes:
    """Return the message with the signatures of its calls, which Gemini 3 requires.

    They are unknown fields (`extra_content`) of the calls in the native message.
    """
    extras = [
        _extra_content(one)
        for one in get_dicts(message.native or {}, "tool_calls")
        if isinstance(one.get("function"), dict)  # in the order of `extract_tool_calls`
    ]
    if not message.tool_calls or not any(extras):
        return message.canonical
    shape = parse_json_object(message.canonical)
    for call, extra in zip(shape["tool_calls"], extras, strict=False):
        call.update(extra)
    return encode_wire_json(shape)


def _extra_content(call: dict[str, Any]) -> dict[str, Any]:
    if isinstance(call.get("extra_content"), dict):
        return {"extra_content": call["extra_content"]}
    return {}
