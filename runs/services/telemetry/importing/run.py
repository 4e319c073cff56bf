"""Write the run of an imported trace, again whenever spans of it have arrived.

It has ended from the beginning, so that nothing ever executes it.
"""

from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from runs.engine.digest import digest_request
from runs.engine.types import (
    AgentSpec,
    ExecutorOptions,
    ModelRequest,
    ModelSettings,
    Reply,
)
from runs.models import (
    Agent,
    AgentStep,
    ImportedSpan,
    ImportedTrace,
    ModelAttempt,
    ModelCall,
    Provider,
    Run,
    RunSearchRow,
    RunTool,
)
from runs.services.runs.start import build_run_title
from runs.services.search.daily_stats import update_daily_stats
from runs.services.telemetry.importing.conventions import SeenModelCall, read_model_call
from runs.services.telemetry.importing.rows import (
    PlannedCall,
    PlannedRun,
    ToolCallSpan,
    get_error_code,
    get_seconds,
    sum_cost,
    to_datetime,
)
from runs.services.telemetry.importing.spans import ReceivedSpan
from runs.store.fast_insert import insert_row
from runs.store.specs import get_or_create_spec
from runs.store.transitions import notify_run_changed

BATCH_SIZE = 200
MAX_AGENTS = 200
"""Imported agents of one person; the runs of others come under one name."""
OTHER_AGENTS = "Other imported agents"
PROVIDER_NAME = "Imported traces"


def build_imported_run(trace: ImportedTrace, spans: list[ReceivedSpan]) -> Run:
    """Create or replace the run of a trace, in the transaction that stores spans."""
    plan = PlannedRun(spans)
    agent = get_imported_agent(trace.owner, plan.name)
    old = trace.run
    if old is not None:
        old = Run.objects.select_for_update(of=("self",)).get(pk=old.pk)
        _forget_rows(old)
    columns = _build_columns(plan, agent, seq=old.seq + 1 if old is not None else 1)
    if old is None:
        run = Run(owner=trace.owner, source=Run.Source.IMPORT, **columns)
        insert_row(run)
        trace.run = run
        trace.save(update_fields=["run"])
    else:
        run = old
        Run.objects.filter(pk=run.pk).update(**columns)
        run.refresh_from_db()
    _write_rows(run, trace, plan)
    notify_run_changed(run.pk)
    return run


def get_imported_agent(owner: User, name: str) -> Agent:
    """Return the agent that stands for one of another program; nobody can run it."""
    own = Agent.objects.filter(owner=owner, is_imported=True)
    found = own.filter(name=name).first()
    if found is not None:
        return found
    if own.count() >= MAX_AGENTS and name != OTHER_AGENTS:
        return get_imported_agent(owner, OTHER_AGENTS)
    now, known = timezone.now(), own.select_related("provider").first()
    provider = (
        known.provider
        if known is not None
        else Provider.objects.create(owner=owner, name=PROVIDER_NAME, archived_at=now)
    )
    return Agent.objects.create(
        owner=owner,
        name=name,
        is_imported=True,
        provider=provider,
        model="",
        archived_at=now,
    )


def build_traced_request(seen: SeenModelCall) -> ModelRequest:
    """Return what a model was sent, as far as the trace has it."""
    settings = ModelSettings(model=seen.model, provider=seen.provider)
    return ModelRequest(messages=seen.messages, settings=settings)


def load_sent_requests(call: ModelCall) -> list[ModelRequest]:
    """Return the requests of an imported run up to a call, this one last."""
    rows = ImportedSpan.objects.filter(
        trace__run=call.run_id, number__isnull=False, number__lte=call.number
    )
    bodies = rows.order_by("-number").values_list("body", flat=True)[:2]
    spans = [ReceivedSpan.model_validate(body) for body in bodies]
    return [build_traced_request(read_model_call(one)) for one in reversed(spans)]


def _forget_rows(run: Run) -> None:
    """Delete what is written again, and take the run out of the figures."""
    cards = RunSearchRow.objects.filter(run=run).select_related("run")
    update_daily_stats([], removed=list(cards))
    cards.delete()
    RunTool.objects.filter(run=run).delete()
    AgentStep.objects.filter(run=run).delete()
    ModelCall.objects.filter(run=run).delete()
    ModelAttempt.objects.filter(run=run).delete()


def _build_columns(plan: PlannedRun, agent: Agent, *, seq: int) -> dict[str, Any]:
    seen = [one.seen for one in plan.calls if one.seen is not None]
    failure = plan.failure
    usages = [one.reply.usage for one in seen if one.reply.usage is not None]
    inputs = {"input": plan.question} if plan.question else {}
    first = seen[0] if seen else None
    spec = AgentSpec(
        kind="tool-calling",
        name=agent.name,
        slug=agent.slug,
        model=ModelSettings(
            model=first.model if first else "", provider=first.provider if first else ""
        ),
        executor=ExecutorOptions(max_iterations=None, loop_guard=None),
    )
    return {
        "agent": agent,
        "spec": get_or_create_spec(spec),
        "title": build_run_title(inputs),
        "inputs": inputs,
        "status": Run.Status.FAILED if failure is not None else Run.Status.SUCCEEDED,
        "error_code": get_error_code(failure) if failure is not None else "",
        "error_message": failure.error if failure is not None else "",
        "output": None if failure is not None else plan.answer,
        "finish_reason": seen[-1].reply.finish_reason if seen else "",
        "seq": seq,
        "next_index": sum(len(one.steps) for one in plan.calls),
        "next_number": len(plan.calls),
        "created_at": plan.started_at,
        "queued_at": plan.started_at,
        "started_at": plan.started_at,
        "ended_at": plan.ended_at,
        "rounds": len(plan.calls),
        "model_calls": len(plan.calls),
        "input_tokens": sum(one.input_tokens for one in usages),
        "output_tokens": sum(one.output_tokens for one in usages),
        "cost": sum_cost(plan.calls),
        "indexed": False,
    }


def _write_rows(run: Run, trace: ImportedTrace, plan: PlannedRun) -> None:
    calls, steps, attempts = list[ModelCall](), list[AgentStep](), list[ModelAttempt]()
    for number, planned in enumerate(plan.calls):
        call = _build_call(run, planned, number=number, at_index=len(steps))
        calls.append(call)
        attempts += _build_attempts(run, planned.failed, number=number)
        steps += [
            _build_step(run, call, one, index=len(steps) + place)
            for place, one in enumerate(planned.steps)
        ]
    attempts += _build_attempts(run, plan.failed, number=len(calls))
    ModelCall.objects.bulk_create(calls, batch_size=BATCH_SIZE)
    AgentStep.objects.bulk_create(steps, batch_size=BATCH_SIZE)
    ModelAttempt.objects.bulk_create(attempts, batch_size=BATCH_SIZE)
    numbers = {
        one.span.span_id: number
        for number, one in enumerate(plan.calls)
        if one.seen is not None
    }
    rows = list(ImportedSpan.objects.filter(trace=trace).only("span_id", "number"))
    moved = [row for row in rows if row.number != numbers.get(row.span_id)]
    for row in moved:
        row.number = numbers.get(row.span_id)
    ImportedSpan.objects.bulk_update(moved, ["number"], batch_size=BATCH_SIZE)


def _build_call(
    run: Run, planned: PlannedCall, *, number: int, at_index: int
) -> ModelCall:
    seen, span = planned.seen, planned.span
    reply = seen.reply if seen is not None else Reply()
    reply = reply.model_copy(update={"tool_calls": planned.tool_calls})
    request = (
        build_traced_request(seen) if seen is not None else ModelRequest(messages=())
    )
    usage = reply.usage
    return ModelCall(
        run=run,
        number=number,
        at_index=at_index,
        round=number + 1,
        reply=reply.model_dump(mode="json", exclude_defaults=True),
        settings=request.settings.model_dump(mode="json"),
        model=reply.model,
        digest=digest_request(request),
        input_tokens=usage.input_tokens if usage else 0,
        cached_tokens=usage.cached_tokens if usage else 0,
        output_tokens=usage.output_tokens if usage else 0,
        reasoning_tokens=usage.reasoning_tokens if usage else 0,
        cost=seen.cost if seen is not None else 0,
        started_at=to_datetime(span.started_at),
        elapsed=get_seconds(span) if seen is not None else 0.0,
        created_seq=run.seq,
        changed_seq=run.seq,
    )


def _build_step(
    run: Run, call: ModelCall, planned: ToolCallSpan, *, index: int
) -> AgentStep:
    span, seen = planned.span, planned.seen
    failed, succeeded = AgentStep.Status.FAILED, AgentStep.Status.SUCCEEDED
    return AgentStep(
        run=run,
        index=index,
        model_call=call,
        round=call.round,
        tool=seen.name,
        tool_input=seen.arguments,
        call_id=seen.call_id,
        status=failed if span.has_failed else succeeded,
        observation=(span.error or seen.result) if span.has_failed else seen.result,
        attempts=1,
        started_at=to_datetime(span.started_at),
        ended_at=to_datetime(span.ended_at),
        elapsed=get_seconds(span),
        duration=get_seconds(span),
        created_seq=run.seq,
        changed_seq=run.seq,
    )


def _build_attempts(
    run: Run, failed: list[ReceivedSpan], *, number: int
) -> list[ModelAttempt]:
    return [
        ModelAttempt(
            run=run,
            number=number,
            attempt=attempt,
            code=get_error_code(span),
            message=span.error,
            started_at=to_datetime(span.started_at),
            elapsed=get_seconds(span),
            created_seq=run.seq,
        )
        for attempt, span in enumerate(failed, start=1)
    ]
