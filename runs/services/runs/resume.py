"""Resume a run that failed or reached a limit, with new limits."""

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.engine.spec_validation import find_spec_problems
from runs.engine.types import ExecutorOptions
from runs.models import AgentStep, Resume, Run
from runs.services.errors import CannotResume, NotResumable
from runs.services.runs.limit import check_run_limit
from runs.services.runs.start import require_agent_access
from runs.store.specs import load_spec
from runs.store.transitions import transition
from tools.audit.write import write_entry

RESUMABLE_LIMITS = frozenset(
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
    """Queue `run` again; its steps are kept and cost nothing again.

    `limits` are fields of `ExecutorOptions` that apply from here. Raises
    `NotAllowed` if `by` may no longer use the agent (administrators always may),
    `NotResumable`, `CannotResume` if a limit is not valid, and `TooManyRuns`.
    """
    limits = limits or {}
    if run.is_imported:
        raise NotResumable(
            _("Another program executed this run. It cannot be resumed.")
        )
    if by is not None and not by.is_superuser:
        require_agent_access(run.agent, by=by)
    _validate_resume(run, limits)
    if by is not None and by.pk == run.owner_id:
        check_run_limit(by)
    with transaction.atomic():
        resumed = transition(
            run,
            to=Run.Status.QUEUED,
            only_from=(Run.Status.LIMIT_REACHED, Run.Status.FAILED),
            recoveries=0,
            output=None,
            output_log="",
            cancel_requested_at=None,
            canceled_by=None,
            indexed=False,
        )
        if not resumed:
            raise NotResumable(
                _("Only a run that failed or reached a limit can be resumed.")
            )
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


def _validate_resume(run: Run, limits: dict[str, Any]) -> None:
    if run.status not in (Run.Status.LIMIT_REACHED, Run.Status.FAILED):
        raise NotResumable(
            _("Only a run that failed or reached a limit can be resumed.")
        )
    if run.parent_step_id is not None:
        raise NotResumable(
            _(
                "The parent run already has the result of this run. Run the agent "
                "again instead."
            )
        )
    unknown = sorted(set(limits) - RESUMABLE_LIMITS)
    if unknown:
        raise CannotResume(
            _('A resume cannot change "%(name)s".') % {"name": unknown[0]}
        )
    spec = load_spec(run.spec)
    merged = spec.executor.model_dump() | limits
    try:
        options = ExecutorOptions.model_validate(merged)
    except ValueError as error:
        raise CannotResume(
            _("A limit is not valid: %(error)s") % {"error": error}
        ) from None
    problems = find_spec_problems(spec.model_copy(update={"executor": options}))
    if problems:
        raise CannotResume(problems[0].message)
    rounds = options.max_iterations
    if run.stop_reason == Run.StopReason.ITERATIONS and (
        rounds is not None and rounds <= run.rounds
    ):
        raise CannotResume(
            ngettext(
                "The run has used %(count)s round. Enter a higher limit.",
                "The run has used %(count)s rounds. Enter a higher limit.",
                run.rounds,
            )
            % {"count": run.rounds}
        )


def _reopen_steps(run: Run) -> None:
    """Plan, or request approval for, the calls that the run's end canceled."""
    asking = [tool.name for tool in load_spec(run.spec).tools if tool.asks]
    canceled = AgentStep.objects.filter(run=run, status=AgentStep.Status.CANCELED)
    canceled.filter(tool__in=asking).update(
        status=AgentStep.Status.AWAITING_APPROVAL, changed_seq=run.seq
    )
    canceled.update(status=AgentStep.Status.PLANNED, changed_seq=run.seq)
