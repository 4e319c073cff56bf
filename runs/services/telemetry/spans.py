"""The spans of a run, from its stored rows, in the GenAI semantic conventions.

One span for the agent (`invoke_agent`), and below it one for each request to the model
(`chat`) and each tool call (`execute_tool`). The run of a sub-agent hangs below the
call that started it. What a fork copied did not happen again, and has no span.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.conf import settings

from runs.models import AgentStep, ModelAttempt, ModelCall, Provider, Run
from runs.services.runs.mask_secrets import SecretMask
from runs.services.telemetry.otlp import Attribute, Span
from runs.store.trace_ids import (
    build_call_span_id,
    build_run_span_id,
    build_tool_span_id,
    get_parent_span_id,
    get_trace_id,
)

MAX_CONTENT_CHARS = 20_000
"""Characters of one attribute with content."""
MAX_ERROR_CHARS = 500
PARAMETERS = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "max_tokens": "gen_ai.request.max_tokens",
    "max_completion_tokens": "gen_ai.request.max_tokens",
    "max_output_tokens": "gen_ai.request.max_tokens",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "presence_penalty": "gen_ai.request.presence_penalty",
    "seed": "gen_ai.request.seed",
}
"""Parameters of a model with an attribute of their own."""
FAILED_STEPS = ("failed", "rejected", "unknown", "canceled")

Found = dict[str, Attribute]


@dataclass(frozen=True)
class RunPart:
    """What an export covers: all since the last one that was sent."""

    number: int
    """Earlier exports that were sent."""
    first_step: int
    first_call: int
    started_at: datetime


def get_unsent_part(run: Run) -> RunPart | None:
    """Return the part that was not exported; None if nothing has happened since."""
    if not run.traces_sent:
        return RunPart(0, 0, 0, run.started_at or run.queued_at)
    resumes = list(run.resumes.all())
    if len(resumes) < run.traces_sent:
        return None
    resume = resumes[run.traces_sent - 1]
    return RunPart(run.traces_sent, resume.at_index, resume.at_number, resume.at)


def build_spans(run: Run, part: RunPart, *, with_content: bool = False) -> list[Span]:
    """Return the spans of an ended run; texts have no secrets."""
    return list(_RunSpans(run, part, with_content=with_content).iter_spans())


class _RunSpans:
    """The spans of one part of a run."""

    def __init__(self, run: Run, part: RunPart, *, with_content: bool) -> None:
        self.run, self.part, self.with_content = run, part, with_content
        self.trace_id = get_trace_id(run)
        self.root_id = build_run_span_id(run, part=part.number)
        self.model: dict[str, Any] = run.spec.body.get("model") or {}

    @cached_property
    def mask(self) -> SecretMask:
        """Costs queries, so that only runs with texts to export pay for it."""
        return SecretMask(self.run)

    @cached_property
    def provider(self) -> str:
        pk = self.model.get("provider_id")
        row = Provider.objects.only("kind").filter(pk=pk).first() if pk else None
        return row.kind if row is not None else str(self.model.get("provider") or "")

    def iter_spans(self) -> Iterator[Span]:
        run, part = self.run, self.part
        yield self._build_root()
        failed = list(run.attempts.filter(number__gte=part.first_call))
        for attempt in failed:
            yield self._build_attempt(attempt)
        rows = run.calls.filter(number__gte=part.first_call, is_copied=False)
        for call in rows:
            before = [one for one in failed if one.number == call.number]
            yield self._build_call(call, before)
        steps = run.steps.filter(index__gte=part.first_step, is_copied=False)
        for step in steps.select_related("tool_ref"):
            if (span := self._build_step(step)) is not None:
                yield span

    def _build_root(self) -> Span:
        run = self.run
        found: Found = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": self.provider,
            "gen_ai.agent.id": str(run.agent_id),
            "gen_ai.agent.name": run.agent.name,
            "gen_ai.request.model": str(self.model.get("model") or ""),
            "gen_ai.usage.input_tokens": run.input_tokens,
            "gen_ai.usage.output_tokens": run.output_tokens,
            "gen_ai.usage.cost": float(run.cost),
            "user.id": str(run.owner_id),
            "agentsite.run.id": run.pk,
            "agentsite.run.status": run.status,
            "agentsite.run.source": run.source,
            "agentsite.run.is_test": run.is_test,
            "agentsite.run.url": f"{settings.PUBLIC_URL}/runs/{run.pk}/",
        }
        if run.version is not None:
            found["gen_ai.agent.version"] = str(run.version.number)
        if run.conversation_id is not None:
            found["gen_ai.conversation.id"] = str(run.conversation_id)
        if run.finish_reason:
            found["gen_ai.response.finish_reasons"] = [run.finish_reason]
        if run.stop_reason:
            found["agentsite.run.stop_reason"] = run.stop_reason
        error = None
        if run.status == Run.Status.FAILED:
            found["error.type"] = run.error_code or "_OTHER"
            error = self._mask_error(run.error_message)
        if self.with_content:
            found["gen_ai.input.messages"] = self._messages("user", run.inputs)
            if run.output is not None:
                found["gen_ai.output.messages"] = self._messages(
                    "assistant", run.output
                )
        return Span(
            trace_id=self.trace_id,
            span_id=self.root_id,
            parent_id=get_parent_span_id(run),
            name=f"invoke_agent {run.agent.name}",
            started_at=self.part.started_at,
            ended_at=run.ended_at or self.part.started_at,
            attributes=found,
            error=error,
        )

    def _build_call(self, call: ModelCall, failed: list[ModelAttempt]) -> Span:
        reply = call.reply
        settings = call.sent_settings
        model = str(settings.get("model") or call.model)
        found = self._model_attributes(model, settings.get("parameters") or {})
        found |= {
            "gen_ai.response.model": str(reply.get("model") or call.model or model),
            "gen_ai.usage.input_tokens": call.input_tokens,
            "gen_ai.usage.output_tokens": call.output_tokens,
            "gen_ai.usage.cost": float(call.cost),
            "agentsite.model_call.purpose": call.purpose,
            "agentsite.model_call.number": call.number,
        }
        if call.cached_tokens:
            found["gen_ai.usage.cache_read.input_tokens"] = call.cached_tokens
        if call.reasoning_tokens:
            found["gen_ai.usage.reasoning.output_tokens"] = call.reasoning_tokens
        if call.first_token is not None:
            found["gen_ai.response.time_to_first_chunk"] = call.first_token
        if reply.get("finish_reason"):
            found["gen_ai.response.finish_reasons"] = [str(reply["finish_reason"])]
        if self.with_content:
            found["gen_ai.output.messages"] = self._reply_message(reply)
        lost = sum(one.elapsed + (one.retry_in or 0) for one in failed)
        took = max(call.elapsed - lost, call.first_token or 0.0)
        return Span(
            trace_id=self.trace_id,
            span_id=build_call_span_id(self.run, call.number, attempt=len(failed) + 1),
            parent_id=self.root_id,
            name=f"chat {model}",
            kind="client",
            started_at=call.started_at,
            ended_at=call.started_at + timedelta(seconds=took),
            attributes=found,
        )

    def _build_attempt(self, attempt: ModelAttempt) -> Span:
        model = str(self.model.get("model") or "")
        found = self._model_attributes(model, self.model.get("parameters") or {})
        found |= {
            "error.type": attempt.code,
            "agentsite.model_call.number": attempt.number,
        }
        if attempt.status is not None:
            found["http.response.status_code"] = attempt.status
        return Span(
            trace_id=self.trace_id,
            span_id=build_call_span_id(
                self.run, attempt.number, attempt=attempt.attempt
            ),
            parent_id=self.root_id,
            name=f"chat {model}",
            kind="client",
            started_at=attempt.started_at,
            ended_at=attempt.started_at + timedelta(seconds=attempt.elapsed),
            attributes=found,
            error=self._mask_error(attempt.message),
        )

    def _model_attributes(self, model: str, parameters: dict[str, Any]) -> Found:
        found: Found = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": self.provider,
            "gen_ai.request.model": model,
        }
        for name, attribute in PARAMETERS.items():
            value = parameters.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                found[attribute] = value
        return found

    def _build_step(self, step: AgentStep) -> Span | None:
        started_at = step.started_at or step.ended_at
        if started_at is None:
            return None
        kind = step.tool_ref.kind if step.tool_ref is not None else ""
        found: Found = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": step.tool,
            "gen_ai.tool.type": "extension" if kind in ("http", "mcp") else "function",
            "agentsite.step.index": step.index,
            "agentsite.step.status": step.status,
        }
        if step.effect:
            found["agentsite.tool.effect"] = step.effect
        if step.call_id:
            found["gen_ai.tool.call.id"] = step.call_id
        if step.answered_by:
            found["agentsite.step.answered_by"] = step.answered_by
        error = None
        if step.status in FAILED_STEPS:
            found["error.type"] = step.status
            # An observation is content; that the call failed is not.
            error = self._mask_error(step.observation) if self.with_content else ""
        if self.with_content:
            found["gen_ai.tool.call.arguments"] = self._content(step.tool_input)
            found["gen_ai.tool.call.result"] = self._content(step.observation)
        return Span(
            trace_id=self.trace_id,
            span_id=build_tool_span_id(self.run, step.index),
            parent_id=self.root_id,
            name=f"execute_tool {step.tool}",
            started_at=started_at,
            ended_at=step.ended_at or started_at,
            attributes=found,
            error=error,
        )

    def _mask_error(self, message: str) -> str:
        return self.mask.text(message)[:MAX_ERROR_CHARS] if message else ""

    def _content(self, value: Any) -> str:
        """Return a value as text without secrets, cut if it is too long."""
        if isinstance(value, str):
            return self.mask.mask_text_or_json(value)[:MAX_CONTENT_CHARS]
        text = json.dumps(self.mask.json(value), ensure_ascii=False)
        return text[:MAX_CONTENT_CHARS]

    def _messages(self, role: str, value: Any) -> str:
        parts = [{"type": "text", "content": self._content(value)}]
        return json.dumps([{"role": role, "parts": parts}], ensure_ascii=False)

    def _reply_message(self, reply: dict[str, Any]) -> str:
        parts: list[dict[str, Any]] = []
        if reply.get("text"):
            parts.append({"type": "text", "content": self._content(reply["text"])})
        parts += [
            {
                "type": "tool_call",
                "id": call["id"],
                "name": call["name"],
                "arguments": self._content(call["arguments"]),
            }
            for call in reply.get("tool_calls") or ()
        ]
        message = {
            "role": "assistant",
            "parts": parts,
            "finish_reason": reply.get("finish_reason") or "",
        }
        return json.dumps([message], ensure_ascii=False)
