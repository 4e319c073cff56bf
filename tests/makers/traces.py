"""Traces of another program, as JSON and as protobuf."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from runs.services.telemetry.otlp import Span, encode_traces

START = datetime(2026, 11, 1, 12, tzinfo=UTC)
TRACE = "0af7651916cd43dd8448eb211c80319c"


def span_id(number: int) -> str:
    return f"{number:016x}"


def agent_span(number: int = 1, parent: int = 0, **fields: Any) -> Span:
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "Weather agent",
        "gen_ai.input.messages": messages("user", "Is it raining in Paris?"),
        "gen_ai.output.messages": messages("assistant", "Yes, it is raining."),
    }
    return span(number, parent, "invoke_agent Weather agent", attributes, **fields)


def chat_span(number: int, parent: int = 1, **fields: Any) -> Span:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4.1",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.input.messages": messages("user", "Is it raining in Paris?"),
        "gen_ai.output.messages": messages("assistant", "Yes, it is raining."),
    }
    return span(number, parent, "chat gpt-4.1", attributes, **fields)


def tool_span(number: int, parent: int = 1, **fields: Any) -> Span:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_weather",
        "gen_ai.tool.call.id": "call_1",
        "gen_ai.tool.call.arguments": '{"city": "Paris"}',
        "gen_ai.tool.call.result": "Rain, 9 degrees",
    }
    return span(number, parent, "execute_tool get_weather", attributes, **fields)


def span(
    number: int,
    parent: int,
    name: str,
    attributes: dict[str, Any],
    *,
    more: dict[str, Any] | None = None,
    **fields: Any,
) -> Span:
    """Make a span that starts as many seconds after `START` as its number says."""
    begin = START + timedelta(seconds=number)
    defaults: dict[str, Any] = {
        "trace_id": TRACE,
        "span_id": span_id(number),
        "parent_id": span_id(parent) if parent else "",
        "name": name,
        "started_at": begin,
        "ended_at": begin + timedelta(seconds=1 if parent else 10),
        "attributes": {**attributes, **(more or {})},
    }
    return Span(**{**defaults, **fields})


def weather_trace() -> list[Span]:
    """Make an agent that calls a tool between two model calls."""
    call = {
        "type": "tool_call",
        "id": "call_1",
        "name": "get_weather",
        "arguments": {"city": "Paris"},
    }
    asking = [{"role": "assistant", "parts": [call], "finish_reason": "tool_call"}]
    return [
        agent_span(1),
        chat_span(2, more={"gen_ai.output.messages": json.dumps(asking)}),
        tool_span(3),
        chat_span(4),
    ]


def messages(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def as_protobuf(spans: list[Span]) -> bytes:
    return encode_traces(
        {"service.name": "weather-app"}, spans, scope="test", version="1"
    )


def as_json(spans: list[Span]) -> bytes:
    found = [
        {
            "traceId": one.trace_id,
            "spanId": one.span_id,
            "parentSpanId": one.parent_id,
            "name": one.name,
            "kind": 1,
            "startTimeUnixNano": nanoseconds(one.started_at),
            "endTimeUnixNano": nanoseconds(one.ended_at),
            "attributes": [
                {"key": key, "value": json_value(value)}
                for key, value in one.attributes.items()
            ],
            "status": {"code": 2, "message": one.error} if one.error else {},
        }
        for one in spans
    ]
    service = [{"key": "service.name", "value": {"stringValue": "weather-app"}}]
    resource_spans = {
        "resource": {"attributes": service},
        "scopeSpans": [{"scope": {"name": "test"}, "spans": found}],
    }
    return json.dumps({"resourceSpans": [resource_spans]}).encode()


def json_value(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
    return {"arrayValue": {"values": [json_value(one) for one in value]}}


def nanoseconds(moment: datetime) -> str:
    return str(int(moment.timestamp()) * 10**9)
