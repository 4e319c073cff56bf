"""Whether a call may run: a yes there is, and that it is for just this call."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from django.db.models.functions import Now

from runs.models import AgentStep, Allowance, Decision, Run
from runs.services.ask_person import (
    Asking,
    approvers_of,
    call_of,
    digest_of_call,
    read_inputs,
)
from runs.services.commits import raise_seq
from runs.services.held import Held
from runs.services.move import announce

Status, Answer = AgentStep.Status, Decision.Answer

NOT_WHAT_WAS_APPROVED = (
    "The call that would run is not the one a person approved, so it was not run."
)


class Yes(NamedTuple):
    """A person's yes to one step."""

    is_for_this_call: bool
    edited: str = ""
    """What the model is told where the person changed the arguments."""


def allow_alike(run: Run, held: Held, asking: Sequence[Asking]) -> None:
    """Approve those steps whose tool a person has allowed for the whole run.

    Each gets an answered decision that names the allowance. In a transaction of the
    caller, which also holds off whoever takes the allowance back at this moment.
    """
    seq = raise_seq(held)
    allowed = {
        row.tool: row for row in Allowance.objects.filter(run=run, revoked_at=None)
    }
    steps = [one for one in asking if one.step.tool in allowed]
    asked = Decision.objects.open().filter(step__in=[one.step.pk for one in steps])
    has_question = set(asked.values_list("step_id", flat=True))
    steps = [one for one in steps if one.step.pk not in has_question]
    approvers = approvers_of(steps)
    read_inputs(steps)
    for one in steps:
        allowance = allowed[one.step.tool]
        shown = call_of(one.step.tool, one.step.tool_input, one.spec)
        digest = digest_of_call(shown)
        Decision.objects.create(
            step=one.step,
            question=Decision.Question.APPROVAL,
            shown=shown,
            shown_digest=digest,
            runs_digest=digest,
            approvers_id=approvers.get(one.step.tool_ref_id or 0),
            answer=Answer.APPROVED,
            reason=allowance.reason,
            allowance=allowance,
            by_id=allowance.by_id,
            at=Now(),
        )
        one.step.status, one.step.changed_seq = Status.PLANNED, seq
        one.step.save(update_fields=["status", "changed_seq"])
    if steps:
        announce(run.pk)


def yes_to(asking: Sequence[Asking]) -> dict[int, Yes]:
    """Return the yes to each step that has one, by the step's key."""
    rows = Decision.objects.filter(
        step__in=[one.step.pk for one in asking],
        question=Decision.Question.APPROVAL,
        answer=Answer.APPROVED,
    )
    newest = {row.step_id: row for row in rows.order_by("pk")}
    return {
        one.step.pk: _yes(one, newest[one.step.pk])
        for one in asking
        if one.step.pk in newest
    }


def _yes(one: Asking, decision: Decision) -> Yes:
    call = call_of(one.step.tool, one.step.tool_input, one.spec)
    is_same = digest_of_call(call) == decision.runs_digest
    if decision.edited_input is None:
        return Yes(is_same)
    ran = json.dumps(one.step.tool_input, ensure_ascii=False)
    told = f"A person changed the arguments of this call. It ran with {ran}."
    if decision.reason:
        told = f"{told} Their note: {decision.reason}"
    return Yes(is_same, told)
