"""How each provider writes a reply: whole, and in pieces."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

WIRE_FORMATS = {
    "/chat/completions": "chat",
    "/messages": "messages",
    "/responses": "responses",
    "/api/chat": "ollama",
}


@dataclass
class Script:
    """One reply the fake is told to give."""

    content: str = ""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    reasoning: str = ""
    extra: dict[str, Any] = field(default_factory=dict)
    """More fields of a Chat Completions message."""
    finish_reason: str = ""
    fault: str = ""
    seconds: float = 0.0
    pause: float = 0.0

    @classmethod
    def of(cls, message: Any) -> "Script":
        """Return the reply for one entry of a script."""
        if isinstance(message, str):
            return cls(content=message)
        unknown = set(message) - {one.name for one in fields(cls)}
        assert not unknown, f"a reply has no {unknown}"
        return cls(**message)

    @property
    def words(self) -> list[str]:
        """The content as it is streamed."""
        return re.findall(r"\S+\s*|\s+", self.content)

    @property
    def ending(self) -> str:
        """The finish reason, in Chat Completions words."""
        return self.finish_reason or ("tool_calls" if self.tool_calls else "stop")


class Rendered(NamedTuple):
    """A reply in a wire format."""

    whole: bytes
    pieces: list[bytes]
    stream_kind: str = "text/event-stream"


def wire_format_of(path: str) -> str | None:
    """Return the name of the format spoken at `path`."""
    ends = (form for end, form in WIRE_FORMATS.items() if path.endswith(end))
    return next(ends, None)


def rendered(path: str, body: dict[str, Any], reply: Script) -> Rendered:
    """Return `reply` in the format spoken at `path`."""
    forms = {"messages": messages, "responses": responses, "ollama": ollama}
    return forms.get(wire_format_of(path) or "", chat)(body, reply)


def counted(body: dict[str, Any], reply: Script) -> tuple[int, int]:
    """Return made-up but deterministic counts of tokens."""
    return len(json.dumps(body)) // 4, len(reply.content) // 4 + 10


def chat(body: dict[str, Any], reply: Script) -> Rendered:
    """Return `reply` as Chat Completions."""
    sent, made = counted(body, reply)
    usage = {
        "prompt_tokens": sent,
        "completion_tokens": made,
        "prompt_tokens_details": {"cached_tokens": sent // 2},
        "completion_tokens_details": {"reasoning_tokens": 3 if reply.reasoning else 0},
    }
    message: dict[str, Any] = {"role": "assistant", "content": reply.content or None}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    message |= reply.extra
    if reply.tool_calls:
        message["tool_calls"] = [_chat_call(one) for one in reply.tool_calls]
    base = {"id": "chatcmpl-1", "model": body.get("model", ""), "created": 1}
    whole = {
        **base,
        "choices": [{"index": 0, "message": message, "finish_reason": reply.ending}],
        "usage": usage,
    }
    pieces = [
        sse({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        for delta in _chat_deltas(reply)
    ]
    last = {"index": 0, "delta": {}, "finish_reason": reply.ending}
    pieces.append(sse({**base, "choices": [last]}))
    if (body.get("stream_options") or {}).get("include_usage"):
        pieces.append(sse({**base, "choices": [], "usage": usage}))
    return Rendered(json.dumps(whole).encode(), [*pieces, b"data: [DONE]\n\n"])


CALL_FIELDS = ("id", "name", "arguments")


def _chat_call(call: dict[str, Any]) -> dict[str, Any]:
    function = {"name": call["name"], "arguments": call["arguments"]}
    extra = {name: call[name] for name in call if name not in CALL_FIELDS}
    return {"id": call["id"], "type": "function", "function": function, **extra}


def _chat_deltas(reply: Script) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for word in reply.reasoning.split():
        yield {"reasoning_content": word + " "}
    for name, value in reply.extra.items():
        for piece in _extra_pieces(value):
            yield {name: piece}
    for word in reply.words:
        yield {"content": word}
    for index, call in enumerate(reply.tool_calls):
        whole = _chat_call(call)
        arguments = call["arguments"]
        first = {**whole, "function": {"name": call["name"], "arguments": ""}}
        yield {"tool_calls": [{"index": index, **first}]}
        for start in range(0, len(arguments), 7):
            piece = {"arguments": arguments[start : start + 7]}
            yield {"tool_calls": [{"index": index, "function": piece}]}


def _extra_pieces(value: Any) -> Iterator[Any]:
    """Return a text letter by letter, and the texts of blocks, too."""
    if isinstance(value, str):
        yield from value
    elif isinstance(value, list):
        for block in value:
            head = {name: block[name] for name in ("type", "index") if name in block}
            texts = {"text", "thinking", "summary"} & set(block)
            for name in texts:
                for letter in block[name]:
                    yield [{**head, name: letter}]
            rest = {name: block[name] for name in block if name not in texts}
            if not texts or rest != head:
                yield [rest]
    else:
        yield value


def messages(body: dict[str, Any], reply: Script) -> Rendered:
    """Return `reply` as Anthropic's Messages."""
    sent, made = counted(body, reply)
    blocks: list[dict[str, Any]] = []
    if reply.reasoning:
        sealed = {"type": "thinking", "thinking": reply.reasoning, "signature": "sig-1"}
        blocks.append(sealed)
    if reply.content:
        blocks.append({"type": "text", "text": reply.content})
    for call in reply.tool_calls:
        name = {"type": "tool_use", "id": call["id"], "name": call["name"]}
        blocks.append({**name, "input": _object(call["arguments"])})
    words = {"tool_calls": "tool_use", "stop": "end_turn", "length": "max_tokens"}
    ending = words.get(reply.ending, reply.ending)
    used = {"input_tokens": sent, "cache_read_input_tokens": sent // 2}
    head = {"id": "msg_1", "type": "message", "role": "assistant"}
    head["model"] = body.get("model", "")
    whole = {
        **head,
        "content": blocks,
        "stop_reason": ending,
        "usage": {**used, "output_tokens": made},
    }
    start = {**head, "content": [], "stop_reason": None}
    events = [
        {"type": "message_start", "message": {**start, "usage": used}},
        {"type": "ping"},
        *_block_events(reply, blocks),
        {
            "type": "message_delta",
            "delta": {"stop_reason": ending},
            "usage": {"output_tokens": made},
        },
        {"type": "message_stop"},
    ]
    pieces = [sse(one, str(one["type"])) for one in events]
    return Rendered(json.dumps(whole).encode(), pieces)


def _block_events(
    reply: Script, blocks: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    raw = [call["arguments"] for call in reply.tool_calls]
    for index, block in enumerate(blocks):
        empty = {"text": "", "thinking": "", "signature": "", "input": {}}
        shell = {key: empty.get(key, value) for key, value in block.items()}
        at = {"index": index}
        yield {"type": "content_block_start", **at, "content_block": shell}
        deltas: list[dict[str, Any]] = []
        if block["type"] == "text":
            deltas = [{"type": "text_delta", "text": word} for word in reply.words]
        elif block["type"] == "thinking":
            deltas = [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        else:
            text = raw.pop(0)
            deltas = [
                {"type": "input_json_delta", "partial_json": text[n : n + 7]}
                for n in range(0, len(text), 7)
            ]
        for delta in deltas:
            yield {"type": "content_block_delta", **at, "delta": delta}
        yield {"type": "content_block_stop", **at}


def responses(body: dict[str, Any], reply: Script) -> Rendered:
    """Return `reply` as OpenAI's Responses."""
    sent, made = counted(body, reply)
    items = list(_response_items(reply))
    is_cut = reply.finish_reason == "length"
    whole = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": body.get("model", ""),
        "status": "incomplete" if is_cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "error": None,
        "output": items,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": body.get("tools", []),
        "usage": {
            "input_tokens": sent,
            "output_tokens": made,
            "total_tokens": sent + made,
            "input_tokens_details": {"cached_tokens": sent // 2},
            "output_tokens_details": {"reasoning_tokens": 3 if reply.reasoning else 0},
        },
    }
    start = {**whole, "status": "in_progress", "output": [], "usage": None}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": start}]
    for index, item in enumerate(items):
        events += _response_item_events(reply, item, index)
    events.append({"type": f"response.{whole['status']}", "response": whole})
    pieces = [
        sse({**one, "sequence_number": number}, str(one["type"]))
        for number, one in enumerate(events)
    ]
    return Rendered(json.dumps(whole).encode(), pieces)


def _response_items(reply: Script) -> Iterator[dict[str, Any]]:
    if reply.reasoning:
        summary = [{"type": "summary_text", "text": reply.reasoning}]
        sealed = {"type": "reasoning", "id": "rs_1", "encrypted_content": "sealed-1"}
        yield {**sealed, "summary": summary}
    done = {"status": "completed"}
    if reply.content:
        part = {"type": "output_text", "text": reply.content, "annotations": []}
        message = {"type": "message", "id": "msg_1", "role": "assistant"}
        yield {**message, "content": [part], **done}
    for number, call in enumerate(reply.tool_calls, 1):
        named = {"type": "function_call", "call_id": call["id"], "name": call["name"]}
        yield {"id": f"fc_{number}", **named, "arguments": call["arguments"], **done}


def _response_item_events(
    reply: Script, item: dict[str, Any], index: int
) -> Iterator[dict[str, Any]]:
    empty = {"content": [], "arguments": "", "summary": []}
    shell = {name: empty.get(name, value) for name, value in item.items()}
    at = {"output_index": index, "item_id": item["id"]}
    of_item = {"output_index": index}
    yield {"type": "response.output_item.added", **of_item, "item": shell}
    if item["type"] == "message":
        (part,) = item["content"]
        here = {**at, "content_index": 0}
        opened = {**part, "text": ""}
        yield {"type": "response.content_part.added", **here, "part": opened}
        for word in reply.words:
            yield {"type": "response.output_text.delta", **here, "delta": word}
        yield {"type": "response.output_text.done", **here, "text": reply.content}
        yield {"type": "response.content_part.done", **here, "part": part}
    if item["type"] == "function_call":
        text, kind = item["arguments"], "response.function_call_arguments"
        for start in range(0, len(text), 7):
            yield {"type": f"{kind}.delta", **at, "delta": text[start : start + 7]}
        yield {"type": f"{kind}.done", **at, "arguments": text}
    yield {"type": "response.output_item.done", **of_item, "item": item}


def ollama(body: dict[str, Any], reply: Script) -> Rendered:
    """Return `reply` as Ollama's chat."""
    sent, made = counted(body, reply)
    calls = [
        {"function": {"name": one["name"], "arguments": _object(one["arguments"])}}
        for one in reply.tool_calls
    ]
    message: dict[str, Any] = {"role": "assistant", "content": reply.content}
    if reply.reasoning:
        message["thinking"] = reply.reasoning
    if calls:
        message["tool_calls"] = calls
    base = {"model": body.get("model", ""), "created_at": "2026-01-01T00:00:00Z"}
    reason = "length" if reply.finish_reason == "length" else "stop"
    end = {"done": True, "done_reason": reason}
    counts = {"prompt_eval_count": sent, "eval_count": made}
    whole = {**base, "message": message, **end, **counts}
    said: list[dict[str, Any]] = []
    if reply.reasoning:
        said.append({"content": "", "thinking": reply.reasoning})
    said += [{"content": word} for word in reply.words]
    said += [{"content": "", "tool_calls": [one]} for one in calls]
    lines = [{**base, "message": one, "done": False} for one in said]
    lines.append({**base, "message": {"content": ""}, **end, **counts})
    pieces = [json.dumps(one).encode() + b"\n" for one in lines]
    return Rendered(json.dumps(whole).encode(), pieces, "application/x-ndjson")


def _object(arguments: str) -> Any:
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments


def sse(value: Any, name: str = "") -> bytes:
    """Return `value` as one server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(value)}\n\n".encode()
