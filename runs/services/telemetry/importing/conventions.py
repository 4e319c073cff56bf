"""What a span says, by the GenAI semantic conventions, OpenInference or OpenLLMetry."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from runs.engine.types import Message, Reply, Usage
from runs.services.telemetry.importing.messages import (
    SeenMessage,
    dump_text,
    load_attribute_json,
    read_messages,
    read_reply_messages,
)
from runs.services.telemetry.importing.spans import ReceivedSpan

SpanKind = Literal["agent", "model", "tool"]

OPERATIONS: dict[str, SpanKind | None] = {
    "chat": "model",
    "text_completion": "model",
    "generate_content": "model",
    "execute_tool": "tool",
    "retrieval": "tool",
    "invoke_agent": "agent",
    "invoke_workflow": "agent",
}
"""Values of `gen_ai.operation.name`."""
OPENINFERENCE_KINDS: dict[str, SpanKind | None] = {
    "LLM": "model",
    "TOOL": "tool",
    "RETRIEVER": "tool",
    "AGENT": "agent",
    "CHAIN": "agent",
}
TRACELOOP_KINDS: dict[str, SpanKind | None] = {
    "workflow": "agent",
    "agent": "agent",
    "tool": "tool",
}
MAX_TOKENS = 2_000_000_000
MAX_COST = 1_000_000
MAX_NAME_CHARS = 120


@dataclass(frozen=True)
class SeenModelCall:
    """A request to a model and its reply."""

    messages: tuple[Message, ...]
    reply: Reply
    model: str
    provider: str
    cost: Decimal

    @property
    def has_reply(self) -> bool:
        return bool(self.reply.text or self.reply.tool_calls)


@dataclass(frozen=True)
class SeenToolCall:
    name: str
    call_id: str
    arguments: Any
    result: str


@dataclass(frozen=True)
class SeenAgent:
    """What an agent was asked, and what it answered."""

    name: str
    question: str
    answer: str


def get_span_kind(span: ReceivedSpan) -> SpanKind | None:
    """Return what a span stands for; None for one that no run has."""
    found = span.attributes
    operation = _text(found, "gen_ai.operation.name")
    if operation:
        return OPERATIONS.get(operation)
    if kind := _text(found, "openinference.span.kind"):
        return OPENINFERENCE_KINDS.get(kind.upper())
    if kind := _text(found, "traceloop.span.kind"):
        return TRACELOOP_KINDS.get(kind)
    is_request = "llm.request.type" in found or "gen_ai.request.model" in found
    return "model" if is_request else None


def read_model_call(span: ReceivedSpan) -> SeenModelCall:
    found = span.attributes
    said = read_reply_messages(found)
    reply = said[-1] if said else SeenMessage("assistant")
    model = _text(
        found,
        *("gen_ai.response.model", "gen_ai.request.model"),
        *("llm.model_name", "llm.response.model"),
    )
    return SeenModelCall(
        messages=tuple(one.build_message() for one in read_messages(found)),
        reply=Reply(
            text=reply.text,
            tool_calls=reply.tool_calls,
            reasoning=reply.reasoning,
            finish_reason=(_read_finish_reason(found) or reply.finish_reason)[:40],
            usage=_read_usage(found),
            model=model[:MAX_NAME_CHARS],
        ),
        model=model[:MAX_NAME_CHARS],
        provider=_text(
            found, "gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system"
        )[:MAX_NAME_CHARS],
        cost=_read_cost(found),
    )


def read_tool_call(span: ReceivedSpan) -> SeenToolCall:
    found = span.attributes
    names = ("gen_ai.tool.name", "tool.name", "traceloop.entity.name")
    name = _text(found, *names) or span.name.removeprefix("execute_tool ")
    arguments = _first(
        found,
        *(
            "gen_ai.tool.call.arguments",
            "tool.parameters",
            "tool_call.function.arguments",
        ),
        *("input.value", "traceloop.entity.input", "gen_ai.retrieval.query.text"),
    )
    result = _first(
        found,
        *("gen_ai.tool.call.result", "output.value", "traceloop.entity.output"),
        "gen_ai.retrieval.documents",
    )
    return SeenToolCall(
        name=name[:MAX_NAME_CHARS] or "tool",
        call_id=_text(found, "gen_ai.tool.call.id", "tool_call.id", "tool.id"),
        arguments=load_attribute_json(arguments),
        result=dump_text(result),
    )


def read_agent(span: ReceivedSpan) -> SeenAgent:
    found = span.attributes
    asked = [one for one in read_messages(found) if one.role == "user" and one.text]
    said = read_reply_messages(found)
    question = asked[-1].text if asked else ""
    answer = said[-1].text if said else ""
    return SeenAgent(
        name=get_agent_name(span),
        question=question
        or dump_text(_first(found, "input.value", "traceloop.entity.input")),
        answer=answer
        or dump_text(_first(found, "output.value", "traceloop.entity.output")),
    )


def get_agent_name(span: ReceivedSpan) -> str:
    """Return the name of an agent, else of its span."""
    named = _text(
        span.attributes,
        *("gen_ai.agent.name", "gen_ai.workflow.name"),
        *("agent.name", "graph.node.name", "traceloop.entity.name"),
    )
    own = span.name.removeprefix("invoke_agent").removeprefix("invoke_workflow")
    return (named or own.strip() or span.service)[:MAX_NAME_CHARS]


def _read_usage(found: dict[str, Any]) -> Usage:
    return Usage(
        input_tokens=_count(
            found,
            *("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
            "llm.token_count.prompt",
        ),
        output_tokens=_count(
            found,
            *("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
            "llm.token_count.completion",
        ),
        cached_tokens=_count(
            found,
            *("gen_ai.usage.cache_read.input_tokens",),
            "llm.token_count.prompt_details.cache_read",
        ),
        reasoning_tokens=_count(
            found,
            *("gen_ai.usage.reasoning.output_tokens",),
            "llm.token_count.completion_details.reasoning",
        ),
    )


def _read_cost(found: dict[str, Any]) -> Decimal:
    value = _first(found, "gen_ai.usage.cost", "llm.cost.total")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Decimal(0)
    return Decimal(str(round(min(max(value, 0), MAX_COST), 6)))


def _read_finish_reason(found: dict[str, Any]) -> str:
    value = _first(found, "gen_ai.response.finish_reasons", "llm.finish_reason")
    first = value[0] if isinstance(value, list) and value else value
    return first if isinstance(first, str) else ""


def _count(found: dict[str, Any], *names: str) -> int:
    value = _first(found, *names)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(min(max(value, 0), MAX_TOKENS)) if is_number else 0


def _first(found: dict[str, Any], *names: str) -> Any:
    """Return the value of the first attribute that is there and not empty."""
    values = (found.get(name) for name in names)
    return next((one for one in values if one not in (None, "", [], {})), None)


def _text(found: dict[str, Any], *names: str) -> str:
    value = _first(found, *names)
    return value if isinstance(value, str) else ""
