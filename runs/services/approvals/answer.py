"""Answer decisions that a run waits for: once, and only for the shown call."""

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from runs.engine.parsing.clean import clean_json, clean_text
from runs.engine.parsing.json_schema import find_schema_violations
from runs.models import AgentStep, Allowance, Decision, Run
from runs.services.approvals.request import describe_call, digest_of_call
from runs.services.errors import (
    AlreadyDecided,
    ArgumentsRefused,
    FieldError,
    NotAllowed,
    ShownCallChanged,
)
from runs.services.runs.end import close_open_steps
from runs.store.specs import load_spec
from runs.store.transitions import lock_ancestors, notify_run_changed, transition
from tools.audit.write import write_entry
from tools.spec import ToolSpec
from tools.text.translatable import translatable

Answer, Question, Status = Decision.Answer, Decision.Question, AgentStep.Status

AUDIT_VERBS: dict[str, str] = {
    Answer.HAPPENED: "settled as happened",
    Answer.RETRY: "settled: retry",
    Answer.SKIP: "settled: skip",
    Answer.FAIL: "settled: fail",
}
"""Audit actions of answers that are not verbs."""

REJECTED_OBSERVATION = "A person rejected this call."
SKIPPED_OBSERVATION = (
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

    With `alike` the approval covers every call of the tool in this run that `by` may
    approve, pending or later, whatever its arguments, until it is revoked. `shown` is
    the digest of what the person saw; another call is not approved. Raises
    `ArgumentsRefused` if the edited input does not fit the tool.
    """
    _validate_answer(decision, Question.APPROVAL, by=by, shown=shown)
    spec = tool_of_step(decision.step)
    edited = None
    if edited_input is not None:
        edited = clean_json(edited_input)
        validate_edited_arguments(edited, spec)
    with transaction.atomic():
        lock_run(decision.step.run)
        allowance = (
            _get_or_create_allowance(decision, by=by, reason=reason) if alike else None
        )
        _approve_decision(
            decision, by=by, reason=reason, allowance=allowance, edited=edited
        )
        if allowance is not None:
            others = (
                Decision.objects.answerable_by(by)
                .open()
                .filter(
                    step__run=decision.step.run_id,
                    step__tool=decision.step.tool,
                    question=Question.APPROVAL,
                )
            )
            for other in others.select_related("step__run__spec"):
                _approve_decision(other, by=by, reason=reason, allowance=allowance)


def reject_step(
    decision: Decision, *, by: User, reason: str = "", shown: str | None = None
) -> None:
    """Reject the shown call; the model reads the reason and continues."""
    _validate_answer(decision, Question.APPROVAL, by=by, shown=shown)
    text = (
        f"{REJECTED_OBSERVATION} Reason: {clean_text(reason)}"
        if reason
        else REJECTED_OBSERVATION
    )
    changes = {"status": Status.REJECTED, "observation": text, "elapsed": 0.0}
    with transaction.atomic():
        lock_run(decision.step.run)
        close_decision(decision, Answer.REJECTED, by=by, reason=reason)
        apply_decision(decision, changes)


def settle_outcome(
    decision: Decision,
    *,
    by: User,
    answer: str,
    result: str = "",
    shown: str | None = None,
) -> None:
    """Settle an unknown outcome: happened, retry, skip or fail."""
    _validate_answer(decision, Question.OUTCOME, by=by, shown=shown)
    if answer == Answer.FAIL:
        _fail_run(decision, by=by, reason=result)
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
            "observation": f"{SKIPPED_OBSERVATION} Their note: {clean_text(result)}"
            if result
            else SKIPPED_OBSERVATION,
            "elapsed": 0.0,
        },
    }
    if answer not in steps:
        raise NotAllowed(_("Choose one of the answers shown."))
    with transaction.atomic():
        lock_run(decision.step.run)
        close_decision(decision, answer, by=by, reason=result)
        apply_decision(decision, steps[answer])


def _validate_answer(
    decision: Decision, question: str, *, by: User, shown: str | None
) -> None:
    """Raise if the answer is of another kind, not allowed, or to another call."""
    if decision.question != question:
        raise NotAllowed(
            _("This decision does not accept that kind of answer. Reload the page.")
        )
    if not Decision.objects.answerable_by(by).filter(pk=decision.pk).exists():
        raise NotAllowed(_("You are not an approver of this call."))
    if shown is not None and shown != decision.shown_digest:
        raise ShownCallChanged


def _get_or_create_allowance(decision: Decision, *, by: User, reason: str) -> Allowance:
    """Return the allowance of the tool in this run; an existing one stays."""
    run, tool = decision.step.run, decision.step.tool
    known = Allowance.objects.filter(run=run, tool=tool, revoked_at=None).first()
    if known is not None:
        return known
    thing = f"every call of {tool} in run {run.pk}"
    write_entry("allowed", "allowance", thing, by=by, note=reason)
    return Allowance.objects.create(
        run=run, tool=tool, by=by, reason=clean_text(reason)
    )


def _approve_decision(
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
        call = describe_call(step.tool, step.tool_input, tool_of_step(step))
        digest = digest_of_call(call)
    close_decision(
        decision,
        Answer.APPROVED,
        by=by,
        reason=reason,
        edited_input=edited,
        runs_digest=digest,
        allowance=allowance,
    )
    apply_decision(decision, changes)


def _fail_run(decision: Decision, *, by: User, reason: str) -> None:
    run = decision.step.run
    with transaction.atomic():
        lock_run(run)
        close_decision(decision, Answer.FAIL, by=by, reason=reason)
        moved = transition(
            run,
            to=Run.Status.FAILED,
            error_code="outcome_unknown",
            error_message=translatable(
                "The outcome of %(tool)s is unknown, and %(person)s ended the run.",
                tool=repr(decision.step.tool),
                person=by.get_username(),
            ),
        )
        if moved:
            close_open_steps(run, by=by.pk)


def revoke_allowance(allowance: Allowance, *, by: User) -> bool:
    """Ask again before each later call; False if it was revoked before."""
    with transaction.atomic():
        lock_run(allowance.run)
        rows = Allowance.objects.filter(pk=allowance.pk, revoked_at=None)
        revoked = rows.update(revoked_at=Now(), revoked_by=by)
        notify_run_changed(allowance.run_id)
        if revoked:
            thing = f"every call of {allowance.tool} in run {allowance.run_id}"
            write_entry("revoked", "allowance", thing, by=by)
        return bool(revoked)


def lock_run(run: Run) -> None:
    """Update the run's row first, so that writers of the run wait for each other."""
    if run.parent_step_id is not None:
        lock_ancestors(run)
    Run.objects.filter(pk=run.pk).update(seq=F("seq") + 1)


def apply_decision(decision: Decision, changes: dict[str, Any]) -> None:
    """Write the result to the step; the last answer queues the run again."""
    run = decision.step.run
    seq = Run.objects.values_list("seq", flat=True).get(pk=run.pk)
    waiting = (Status.AWAITING_APPROVAL, Status.UNKNOWN)
    changed = AgentStep.objects.filter(pk=decision.step_id, status__in=waiting).update(
        **changes, changed_seq=seq
    )
    if not changed:
        raise AlreadyDecided(decision)
    notify_run_changed(run.pk)
    if not Decision.objects.open().filter(step__run=run).exists():
        waits = (Run.Status.AWAITING_APPROVAL, Run.Status.AWAITING_DECISION)
        transition(run, to=Run.Status.QUEUED, only_from=waits)


def close_decision(
    decision: Decision, answer: str, *, by: User | None, reason: str, **more: Any
) -> None:
    """Write one answer and its audit entry; raise if there is an answer already.

    `more` are other columns of the decision, written with the answer.
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
        AUDIT_VERBS.get(answer, answer),
        "tool call",
        f"{step.tool}, call {step.index} of run {step.run_id}",
        number=step.pk,
        by=by,
        changes={} if edited is None else {"arguments": [before, edited]},
        note=reason,
    )


def tool_of_step(step: AgentStep) -> ToolSpec | None:
    """Return the tool as the run froze it; None if the run has no such tool."""
    tools = load_spec(step.run.spec).tools
    return next((tool for tool in tools if tool.name == step.tool), None)


def validate_edited_arguments(arguments: Any, spec: ToolSpec | None) -> None:
    """Raise `ArgumentsRefused` if the tool cannot be called with `arguments`."""
    if spec is None:
        return
    schema = spec.args_schema
    if schema is None:
        if not isinstance(arguments, str):
            raise ArgumentsRefused(
                [FieldError("", _("Enter a string: this tool takes plain text."))]
            )
        return
    if not isinstance(arguments, dict):
        raise ArgumentsRefused([FieldError("", _("Enter a JSON object."))])
    unknown = find_unknown_arguments(arguments, schema)
    rest = {name: v for name, v in arguments.items() if name not in unknown}
    wrong = [
        FieldError(f.field, f"{f.problem}.")
        for f in find_schema_violations(rest, schema)
    ]
    wrong += [
        FieldError(name, _("The tool does not have this argument.")) for name in unknown
    ]
    if wrong:
        raise ArgumentsRefused(wrong)


def find_unknown_arguments(
    arguments: dict[str, Any], schema: dict[str, Any]
) -> list[str]:
    """Return names the tool does not accept, unless its schema allows any."""
    if schema.get("additionalProperties") or schema.get("patternProperties"):
        return []
    known = schema.get("properties") or {}
    return [name for name in arguments if name not in known]
