"""Suspend a run with all its open decisions at once."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q

from runs.models import AgentStep, Decision, Run
from runs.store.claims import ClaimedRun, LeaseLost
from runs.store.commits import increment_seq, raise_if_canceled
from runs.store.database_clock import db_time_from_now
from runs.store.mail.notifications import notify_of_decisions
from runs.store.transitions import transition
from tools.kinds.call_target import describe_call_target
from tools.models import Tool
from tools.spec import ToolSpec

Status = AgentStep.Status


class PendingCall(NamedTuple):
    """A step that needs a decision, and the tool it calls."""

    step: AgentStep
    spec: ToolSpec | None


def request_decisions(
    run: Run, claim: ClaimedRun, asking: Sequence[PendingCall]
) -> None:
    """Open a decision for each step and suspend the run, in the caller's transaction.

    A step still `started` is one whose worker died: its outcome is unknown. If
    there are such steps, only they need a decision: the others wait until the
    outcome is known.
    """
    seq = increment_seq(claim)
    raise_if_canceled(claim)
    unknown = [one for one in asking if one.step.status in OUTCOME_UNKNOWN_STATUSES]
    asked = unknown or asking
    reload_tool_inputs(asked)
    pks = [one.step.pk for one in asked]
    AgentStep.objects.filter(pk__in=pks).update(
        status=Status.UNKNOWN if unknown else Status.AWAITING_APPROVAL, changed_seq=seq
    )
    open_already = set(
        Decision.objects.open().filter(step__in=pks).values_list("step_id", flat=True)
    )
    approvers = find_approvers_by_tool(asked)
    opened = Decision.objects.bulk_create(
        _build_decision(one, is_unknown=bool(unknown), approvers=approvers)
        for one in asked
        if one.step.pk not in open_already
    )
    notify_of_decisions(run, opened)
    to = Run.Status.AWAITING_DECISION if unknown else Run.Status.AWAITING_APPROVAL
    if not transition(run, to=to, fence=claim.fence):
        raise LeaseLost


OUTCOME_UNKNOWN_STATUSES = (Status.STARTED, Status.UNKNOWN)


def reload_tool_inputs(asking: Sequence[PendingCall]) -> None:
    """Reload the inputs from the database, so that digests stay the same.

    A database may change the form of a number: 1e16 becomes an integer.
    """
    for one in asking:
        one.step.refresh_from_db(fields=["tool_input"])


def describe_call(
    step_tool: str, tool_input: Any, spec: ToolSpec | None
) -> dict[str, Any]:
    """Return a call as it is shown to people and compared before it runs."""
    target = describe_call_target(spec, tool_input) if spec else ""
    return {"tool": step_tool, "tool_input": tool_input, "target": target}


def digest_of_call(shown: Any) -> str:
    """Return the SHA-256 of a call as shown, so that only this call runs."""
    text = json.dumps(shown, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class Approvers(NamedTuple):
    """Who answers for a tool."""

    group: int | None = None
    """Number of the group; None for the owner of the run."""
    second_person: bool = False

    def includes(self, user: User | None, *, run: Run) -> bool:
        """Whether `Decision.objects.answerable_by` would let `user` decide."""
        if user is None or not user.is_active:
            return False
        if self.second_person and user.pk == run.owner_id:
            return False
        if user.is_superuser:
            return True
        if self.group is None:
            return user.pk == run.owner_id
        return user.groups.filter(pk=self.group).exists()


def find_approvers_by_tool(asking: Sequence[PendingCall]) -> dict[int, Approvers]:
    """Return who answers for the tools that say so, by tool."""
    pks = {one.step.tool_ref_id for one in asking if one.step.tool_ref_id}
    rows = Tool.objects.filter(pk__in=pks)
    named = rows.filter(Q(approvers__isnull=False) | Q(second_person=True))
    return {
        pk: Approvers(group, second_person)
        for pk, group, second_person in named.values_list(
            "pk", "approvers_id", "second_person"
        )
    }


def _build_decision(
    one: PendingCall, *, is_unknown: bool, approvers: dict[int, Approvers]
) -> Decision:
    shown = describe_call(one.step.tool, one.step.tool_input, one.spec)
    question = Decision.Question.OUTCOME if is_unknown else Decision.Question.APPROVAL
    people = approvers.get(one.step.tool_ref_id or 0, Approvers())
    spec = one.spec
    hours = spec.approval_hours if spec else None
    if hours is None:
        hours = settings.APPROVAL_HOURS
    return Decision(
        step=one.step,
        question=question,
        shown=shown,
        shown_digest=digest_of_call(shown),
        approvers_id=people.group,
        second_person=people.second_person,
        # An outcome does not become known by waiting.
        expires_at=None if is_unknown or hours <= 0 else db_time_from_now(hours * 3600),
        at_expiry=(spec.at_expiry if spec else None) or settings.APPROVAL_EXPIRY,
    )
