"""Continuing a stopped or failed run from its last step, with new limits."""

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from runs.engine.check import problems_of
from runs.engine.types import ExecutorOptions
from runs.models import AgentStep, Resume, Run
from runs.services.errors import CannotResume
from runs.services.freeze_agent import spec_of
from runs.services.move import move
from tools.audit.write import write_entry

LIMITS = frozenset(
    {
        "max_iterations",
        "max_execution_time",
        "budget",
        "loop_guard",
        "early_stopping_method",
        "handle_parsing_errors",
        "context_tokens",
    }
)


def resume_run(
    run: Run, *, by: User | None, limits: dict[str, Any] | None = None
) -> None:
    """Put `run` back into the queue; its steps are kept and cost nothing again.

    `limits` are fields of `ExecutorOptions` that count from here. Raises
    `CannotResume` where the run is not stopped or failed, or a limit makes no sense.
    """
    limits = limits or {}
    _refuse_wrong(run, limits)
    with transaction.atomic():
        resumed = move(
            run,
            to=Run.Status.QUEUED,
            only_from=(Run.Status.STOPPED, Run.Status.FAILED),
            rescues=0,
            output=None,
            output_log="",
            cancel_requested_at=None,
            filed=False,
        )
        if not resumed:
            raise CannotResume("Only a stopped or failed run can be resumed.")
        run.refresh_from_db()
        _reopen_steps(run)
        Resume.objects.create(
            run=run,
            at_index=run.next_index,
            at_number=run.next_number,
            limits=limits,
            by=by,
        )
        write_entry(
            "resumed",
            "run",
            f"run {run.pk}",
            number=run.pk,
            by=by,
            changes={name: [None, value] for name, value in limits.items()},
        )


def _refuse_wrong(run: Run, limits: dict[str, Any]) -> None:
    if run.status not in (Run.Status.STOPPED, Run.Status.FAILED):
        raise CannotResume("Only a stopped or failed run can be resumed.")
    if run.parent_step_id is not None:
        raise CannotResume(
            "The run that asked for this one has got its answer already. Run it "
            "again instead."
        )
    unknown = sorted(set(limits) - LIMITS)
    if unknown:
        raise CannotResume(f"{unknown[0]!r} is no limit that a resume can change.")
    spec = spec_of(run.spec)
    merged = spec.executor.model_dump() | limits
    try:
        options = ExecutorOptions.model_validate(merged)
    except ValueError as error:
        raise CannotResume(f"A limit has a wrong value: {error}") from None
    problems = problems_of(spec.model_copy(update={"executor": options}))
    if problems:
        raise CannotResume(problems[0].message)
    rounds = options.max_iterations
    if run.stop_reason == Run.StopReason.ITERATIONS and (
        rounds is not None and rounds <= run.rounds
    ):
        raise CannotResume(
            f"The run has used {run.rounds} round{'s' * (run.rounds != 1)}. "
            "Give it a limit above that."
        )


def _reopen_steps(run: Run) -> None:
    """Plan again, or ask again for, the calls that the run's end had cancelled."""
    asking = [tool.name for tool in spec_of(run.spec).tools if tool.asks]
    cancelled = AgentStep.objects.filter(run=run, status=AgentStep.Status.CANCELLED)
    cancelled.filter(tool__in=asking).update(
        status=AgentStep.Status.AWAITING_APPROVAL, changed_seq=run.seq
    )
    cancelled.update(status=AgentStep.Status.PLANNED, changed_seq=run.seq)
