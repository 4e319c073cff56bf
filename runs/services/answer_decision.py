"""Answering what a run asks a person: once, and only what was shown."""

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from runs.engine.clean import clean_json, clean_text
from runs.models import AgentStep, Allowance, Decision, Run
from runs.services.ask_person import call_of, digest_of_call
from runs.services.check_arguments import refuse_misfit, tool_of_step
from runs.services.close_question import close_question, go_on, lock_run
from runs.services.end_run import close_steps
from runs.services.errors import NotAllowed, NotShown
from runs.services.move import move
from tools.audit.write import write_entry

Answer, Question, Status = Decision.Answer, Decision.Question, AgentStep.Status

REJECTED = "A person rejected this call."
SKIPPED = (
    "The worker died while this call ran, so its outcome is unknown. A person decided "
    "to skip it."
)


def approve_step(
    decision: Decision,
    *,
    by: User,
    edited_input: Any = None,
    reason: str = "",
    alike: bool = False,
    shown: str | None = None,
) -> None:
    """Let the shown call run, with other arguments if `edited_input` is given.

    With `alike` the yes counts for every call of the tool in this run: those asked
    about now and those to come, whatever their arguments, until it is taken back.
    `shown` is the digest of what the person saw; another call is not approved.
    Raises `ArgumentsRefused` where the edited input does not fit the tool.
    """
    _refuse_wrong(decision, Question.APPROVAL, by=by, shown=shown)
    spec = tool_of_step(decision.step)
    edited = None
    if edited_input is not None:
        edited = clean_json(edited_input)
        refuse_misfit(edited, spec)
    with transaction.atomic():
        lock_run(decision.step.run)
        allowance = _allow(decision, by=by, reason=reason) if alike else None
        _approve(decision, by=by, reason=reason, allowance=allowance, edited=edited)
        if allowance is not None:
            others = Decision.objects.open().filter(
                step__run=decision.step.run_id,
                step__tool=decision.step.tool,
                question=Question.APPROVAL,
            )
            for other in others.select_related("step__run__spec"):
                _approve(other, by=by, reason=reason, allowance=allowance)


def reject_step(
    decision: Decision, *, by: User, reason: str = "", shown: str | None = None
) -> None:
    """Refuse the shown call; the model reads the reason and goes on."""
    _refuse_wrong(decision, Question.APPROVAL, by=by, shown=shown)
    text = f"{REJECTED} Reason: {clean_text(reason)}" if reason else REJECTED
    changes = {"status": Status.REJECTED, "observation": text, "elapsed": 0.0}
    with transaction.atomic():
        lock_run(decision.step.run)
        close_question(decision, Answer.REJECTED, by=by, reason=reason)
        go_on(decision, changes)


def settle_outcome(
    decision: Decision,
    *,
    by: User,
    answer: str,
    result: str = "",
    shown: str | None = None,
) -> None:
    """Say what became of a call whose worker died: happened, retry, skip or fail."""
    _refuse_wrong(decision, Question.OUTCOME, by=by, shown=shown)
    if answer == Answer.FAIL:
        _fail(decision, by=by, reason=result)
        return
    steps: dict[str, dict[str, Any]] = {
        Answer.HAPPENED: {
            "status": Status.SUCCEEDED,
            "observation": clean_text(result),
            "elapsed": 0.0,
        },
        Answer.RETRY: {"status": Status.PLANNED},
        Answer.SKIP: {
            "status": Status.SKIPPED,
            "observation": f"{SKIPPED} Their note: {clean_text(result)}"
            if result
            else SKIPPED,
            "elapsed": 0.0,
        },
    }
    if answer not in steps:
        raise NotAllowed(f"{answer!r} is no answer to this question.")
    with transaction.atomic():
        lock_run(decision.step.run)
        close_question(decision, answer, by=by, reason=result)
        go_on(decision, steps[answer])


def _refuse_wrong(
    decision: Decision, question: str, *, by: User, shown: str | None
) -> None:
    """Raise where the answer is of another kind, by a stranger, or to another call."""
    if decision.question != question:
        raise NotAllowed("This answer belongs to another kind of question.")
    if not Decision.objects.answerable_by(by).filter(pk=decision.pk).exists():
        raise NotAllowed("Somebody else has to answer this question.")
    if shown is not None and shown != decision.shown_digest:
        raise NotShown


def _allow(decision: Decision, *, by: User, reason: str) -> Allowance:
    """Return the yes for the whole run; one that is there stays."""
    run, tool = decision.step.run, decision.step.tool
    known = Allowance.objects.filter(run=run, tool=tool, revoked_at=None).first()
    if known is not None:
        return known
    thing = f"every call of {tool} in run {run.pk}"
    write_entry("allowed", "allowance", thing, by=by, note=reason)
    return Allowance.objects.create(
        run=run, tool=tool, by=by, reason=clean_text(reason)
    )


def _approve(
    decision: Decision,
    *,
    by: User,
    reason: str,
    allowance: Allowance | None,
    edited: Any = None,
) -> None:
    step, digest = decision.step, decision.shown_digest
    changes: dict[str, Any] = {"status": Status.PLANNED}
    if edited is not None:
        AgentStep.objects.filter(pk=step.pk).update(tool_input=edited)
        step.refresh_from_db(fields=["tool_input"])  # as the worker will read it
        call = call_of(step.tool, step.tool_input, tool_of_step(step))
        digest = digest_of_call(call)
    close_question(
        decision,
        Answer.APPROVED,
        by=by,
        reason=reason,
        edited_input=edited,
        runs_digest=digest,
        allowance=allowance,
    )
    go_on(decision, changes)


def _fail(decision: Decision, *, by: User, reason: str) -> None:
    run = decision.step.run
    with transaction.atomic():
        lock_run(run)
        close_question(decision, Answer.FAIL, by=by, reason=reason)
        moved = move(
            run,
            to=Run.Status.FAILED,
            error_code="outcome_unknown",
            error_message=(
                f"The outcome of {decision.step.tool!r} is unknown, and "
                f"{by.get_username()} ended the run."
            ),
        )
        if moved:
            close_steps(run)
