"""Messages of model requests in the attributes of a span.

The GenAI conventions have them as JSON; OpenInference, and OpenLLMetry as earlier GenAI
conventions, as one attribute for each field: `llm.input_messages.0.message.role`.
"""

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from runs.engine.parsing.clean import clean_json
from runs.engine.types import Message, Role, ToolCall

MAX_MESSAGES = 2_000
ROLES = {"system", "user", "assistant", "tool"}
OTHER_ROLES = {"developer": "system", "model": "assistant", "ai": "assistant"}
OTHER_ROLES |= {"human": "user", "function": "tool"}
Found = dict[str, Any]


@dataclass(frozen=True)
class SeenMessage:
    """One message, in any convention."""

    role: str
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    reasoning: str = ""
    finish_reason: str = ""

    def build_message(self) -> Message:
        role = OTHER_ROLES.get(self.role, self.role)
        return Message.from_text(
            cast(Role, role if role in ROLES else "user"),
            self.text,
            tool_calls=self.tool_calls,
            tool_call_id=self.call_id,
        )


def read_messages(found: Found) -> list[SeenMessage]:
    """Return the messages of a request, system instructions first."""
    instructions = load_attribute_json(found.get("gen_ai.system_instructions"))
    messages = _read_list(found.get("gen_ai.input.messages"))
    if messages:
        system = _join_texts(instructions)
        first = [SeenMessage("system", system)] if system else []
        return [*first, *messages]
    for prefix in ("llm.input_messages", "gen_ai.prompt"):
        if messages := _read_flat(found, prefix):
            return messages
    return []


def read_reply_messages(found: Found) -> list[SeenMessage]:
    if messages := _read_list(found.get("gen_ai.output.messages")):
        return messages
    for prefix in ("llm.output_messages", "gen_ai.completion"):
        if messages := _read_flat(found, prefix):
            return messages
    value = found.get("output.value")
    is_text = isinstance(value, str) and not value.lstrip().startswith(("{", "["))
    return [SeenMessage("assistant", value)] if is_text and value else []


def load_attribute_json(value: Any) -> Any:
    """Return the value of a JSON object or list in a text; anything else unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in {"{", "["}:
        with suppress(ValueError, RecursionError):
            return clean_json(json.loads(value))
    return value


def dump_text(value: Any) -> str:
    """Return a value as text; JSON, unless it is one."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _read_list(value: Any) -> list[SeenMessage]:
    """Return messages of the GenAI conventions: roles, and parts with types."""
    messages = load_attribute_json(value)
    if not isinstance(messages, list):
        return []
    return [
        seen
        for one in messages[:MAX_MESSAGES]
        if isinstance(one, dict)
        for seen in _read_parts(one)
    ]


def _read_parts(message: Found) -> list[SeenMessage]:
    """Return one message, and one more for each result of a tool in it."""
    parts = message.get("parts", message.get("content"))
    if isinstance(parts, str):
        parts = [{"type": "text", "content": parts}]
    parts = [one for one in parts if isinstance(one, dict)] if parts else []
    role = str(message.get("role") or "user")
    results = [one for one in parts if one.get("type") == "tool_call_response"]
    calls = [one for one in parts if one.get("type") == "tool_call"]
    seen = SeenMessage(
        role,
        _join_texts([one for one in parts if one.get("type") == "text"]),
        tuple(
            _build_call(one.get("id"), one.get("name"), one.get("arguments"))
            for one in calls
        ),
        reasoning=_join_texts(
            [one for one in parts if one.get("type") in ("reasoning", "thinking")]
        ),
        finish_reason=str(message.get("finish_reason") or ""),
    )
    answers = [
        SeenMessage(
            "tool",
            dump_text(one.get("response", one.get("result"))),
            call_id=str(one.get("id") or ""),
        )
        for one in results
    ]
    return answers if answers and not (seen.text or calls) else [seen, *answers]


def _join_texts(parts: Any) -> str:
    if isinstance(parts, str):
        return parts
    if not isinstance(parts, list):
        return ""
    found = [
        one.get("content") or one.get("text") if isinstance(one, dict) else one
        for one in parts
    ]
    return "\n\n".join(one for one in found if isinstance(one, str) and one)


def _read_flat(found: Found, prefix: str) -> list[SeenMessage]:
    numbered = _unflatten(found, prefix)
    return [_read_flat_message(one) for one in _in_order(numbered)]


def _read_flat_message(one: Found) -> SeenMessage:
    message = one.get("message")
    if not isinstance(message, dict):
        message = one
    parts = [part.get("message_content") for part in _in_order(message.get("contents"))]
    content = message.get("content")
    text = (
        content
        if isinstance(content, str)
        else _join_texts(load_attribute_json(content))
    )
    calls = []
    for call in _in_order(message.get("tool_calls")):
        inner = call.get("tool_call", call)
        inner = inner if isinstance(inner, dict) else {}
        named = inner.get("function")
        named = named if isinstance(named, dict) else inner
        calls.append(
            _build_call(inner.get("id"), named.get("name"), named.get("arguments"))
        )
    return SeenMessage(
        str(message.get("role") or "user"),
        text or _join_texts(parts),
        tuple(calls),
        call_id=_text_or_none(message.get("tool_call_id")),
        finish_reason=str(message.get("finish_reason") or ""),
    )


def _unflatten(found: Found, prefix: str) -> Found:
    """Return attributes whose names begin like this as objects in objects."""
    whole: Found = {}
    for name, value in found.items():
        if not name.startswith(prefix + "."):
            continue
        *above, last = name[len(prefix) + 1 :].split(".")
        place = whole
        for part in above:
            inner = place.setdefault(part, {})
            if not isinstance(inner, dict):
                break
            place = inner
        else:
            place[last] = value
    return whole


def _in_order(numbered: Any) -> list[Found]:
    """Return the objects that numbers name, by number."""
    if not isinstance(numbered, dict):
        return []
    keys = sorted((key for key in numbered if key.isdecimal()), key=int)
    rows = [numbered[key] for key in keys[:MAX_MESSAGES]]
    return [one for one in rows if isinstance(one, dict)]


def _build_call(call_id: Any, name: Any, arguments: Any) -> ToolCall:
    return ToolCall(
        id=str(call_id or ""),
        name=str(name or ""),
        arguments=dump_text(arguments) or "{}",
    )


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
