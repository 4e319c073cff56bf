"""Closing one question, and letting the run go on after the last one.

Everything here happens in a transaction of the caller that began with `lock_run`.
"""

from typing import Any

from django.contrib.auth.models import User
from django.db.models import F
from django.db.models.functions import Now

from runs.engine.clean import clean_text
from runs.models import AgentStep, Decision, Run
from runs.services.errors import AlreadyDecided
from runs.services.move import announce, lock_ancestors, move
from tools.audit.write import write_entry

Answer, Status = Decision.Answer, AgentStep.Status

WORDS: dict[str, str] = {
    Answer.HAPPENED: "settled as happened",
    Answer.RETRY: "settled: retry",
    Answer.SKIP: "settled: skip",
    Answer.FAIL: "settled: fail",
}
"""What the audit log says of an answer that is no verb."""


def lock_run(run: Run) -> None:
    """Begin with the run's row, so that all who change the run wait for one another."""
    if run.parent_step_id is not None:
        lock_ancestors(run)
    Run.objects.filter(pk=run.pk).update(seq=F("seq") + 1)


def go_on(decision: Decision, changes: dict[str, Any]) -> None:
    """Write what became of the step; with the last answer the run is queued again."""
    run = decision.step.run
    seq = Run.objects.values_list("seq", flat=True).get(pk=run.pk)
    waiting = (Status.AWAITING_APPROVAL, Status.UNKNOWN)
    changed = AgentStep.objects.filter(pk=decision.step_id, status__in=waiting).update(
        **changes, changed_seq=seq
    )
    if not changed:
        raise AlreadyDecided(decision)
    announce(run.pk)
    if not Decision.objects.open().filter(step__run=run).exists():
        waits = (Run.Status.AWAITING_APPROVAL, Run.Status.AWAITING_DECISION)
        move(run, to=Run.Status.QUEUED, only_from=waits)


def close_question(
    decision: Decision, answer: str, *, by: User | None, reason: str, **more: Any
) -> None:
    """Write one answer, also into the audit log; raise where there is one already.

    `more` are further columns of the decision, written with the answer.
    """
    closed = (
        Decision.objects.open()
        .filter(pk=decision.pk)
        .update(answer=answer, reason=clean_text(reason), by=by, at=Now(), **more)
    )
    if not closed:
        raise AlreadyDecided(decision)
    step, edited = decision.step, more.get("edited_input")
    before = decision.shown.get("tool_input")
    write_entry(
        WORDS.get(answer, answer),
        "tool call",
        f"{step.tool}, call {step.index} of run {step.run_id}",
        number=step.pk,
        by=by,
        changes={} if edited is None else {"arguments": [before, edited]},
        note=reason,
    )
