"""Whether a call may run: it has an approval, and for exactly this call."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from django.db.models.functions import Now

from runs.models import AgentStep, Allowance, Decision, Run
from runs.services.approvals.request import (
    Approvers,
    PendingCall,
    describe_call,
    digest_of_call,
    find_approvers_by_tool,
    reload_tool_inputs,
)
from runs.store.claims import ClaimedRun
from runs.store.commits import increment_seq
from runs.store.transitions import notify_run_changed

Status, Answer = AgentStep.Status, Decision.Answer

APPROVED_CALL_CHANGED = (
    "The call differs from the one a person approved, so it was not made."
)


class GrantedApproval(NamedTuple):
    """A person's approval of one step."""

    matches_approved_call: bool
    edit_note: str = ""
    """What the model reads if a person edited the arguments."""


def apply_allowances(
    run: Run, claim: ClaimedRun, asking: Sequence[PendingCall]
) -> None:
    """Approve the steps whose tool a person has allowed for the whole run.

    Each gets an answered decision that names the allowance. A call asks again if the
    person may not approve it now: they left the group, or the tool names other people.
    In a transaction of the caller, which also blocks a concurrent revocation.
    """
    seq = increment_seq(claim)
    rows = Allowance.objects.filter(run=run, revoked_at=None).select_related("by")
    allowed = {row.tool: row for row in rows}
    steps = [one for one in asking if one.step.tool in allowed]
    asked = Decision.objects.open().filter(step__in=[one.step.pk for one in steps])
    has_question = set(asked.values_list("step_id", flat=True))
    steps = [one for one in steps if one.step.pk not in has_question]
    approvers = find_approvers_by_tool(steps)
    reload_tool_inputs(steps)
    is_changed = False
    for one in steps:
        allowance = allowed[one.step.tool]
        people = approvers.get(one.step.tool_ref_id or 0, Approvers())
        if not people.includes(allowance.by, run=run):
            continue
        shown = describe_call(one.step.tool, one.step.tool_input, one.spec)
        digest = digest_of_call(shown)
        Decision.objects.create(
            step=one.step,
            question=Decision.Question.APPROVAL,
            shown=shown,
            shown_digest=digest,
            runs_digest=digest,
            approvers_id=people.group,
            second_person=people.second_person,
            answer=Answer.APPROVED,
            reason=allowance.reason,
            allowance=allowance,
            by_id=allowance.by_id,
            at=Now(),
        )
        one.step.status, one.step.changed_seq = Status.PLANNED, seq
        one.step.save(update_fields=["status", "changed_seq"])
        is_changed = True
    if is_changed:
        notify_run_changed(run.pk)


def find_granted_approvals(asking: Sequence[PendingCall]) -> dict[int, GrantedApproval]:
    """Return the approval of each approved step, by the step's key."""
    rows = Decision.objects.filter(
        step__in=[one.step.pk for one in asking],
        question=Decision.Question.APPROVAL,
        answer=Answer.APPROVED,
    )
    newest = {row.step_id: row for row in rows.order_by("pk")}
    return {
        one.step.pk: _build_granted_approval(one, newest[one.step.pk])
        for one in asking
        if one.step.pk in newest
    }


def _build_granted_approval(one: PendingCall, decision: Decision) -> GrantedApproval:
    call = describe_call(one.step.tool, one.step.tool_input, one.spec)
    is_same = digest_of_call(call) == decision.runs_digest
    if decision.edited_input is None:
        return GrantedApproval(is_same)
    ran = json.dumps(one.step.tool_input, ensure_ascii=False)
    message = f"A person changed the arguments of this call. It ran with {ran}."
    if decision.reason:
        message = f"{message} Their note: {decision.reason}"
    return GrantedApproval(is_same, message)
