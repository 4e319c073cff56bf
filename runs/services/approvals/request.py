"""Parking a run with all its questions at once."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.conf import settings

from runs.models import AgentStep, Decision, Run
from runs.services.clock import from_now
from runs.services.commits import raise_seq, refuse_if_cancelled
from runs.services.held import Held, LeaseLost
from runs.services.move import move
from tools.models import Tool
from tools.spec import ToolSpec
from tools.target import target_of

Status = AgentStep.Status


class Asking(NamedTuple):
    """A step a person is asked about, and the tool it calls."""

    step: AgentStep
    spec: ToolSpec | None


def ask_person(run: Run, held: Held, asking: Sequence[Asking]) -> None:
    """Open a question for each step and park the run; in a transaction of the caller.

    A step still `started` is one whose worker died: its outcome is unknown. Where
    there are such steps, only they are asked about: the others wait until it is known
    what happened.
    """
    seq = raise_seq(held)
    refuse_if_cancelled(held)
    unknown = [one for one in asking if one.step.status in NOBODY_KNOWS]
    asked = unknown or asking
    read_inputs(asked)
    pks = [one.step.pk for one in asked]
    AgentStep.objects.filter(pk__in=pks).update(
        status=Status.UNKNOWN if unknown else Status.AWAITING_APPROVAL, changed_seq=seq
    )
    open_already = set(
        Decision.objects.open().filter(step__in=pks).values_list("step_id", flat=True)
    )
    approvers = approvers_of(asked)
    Decision.objects.bulk_create(
        _question(one, is_unknown=bool(unknown), approvers=approvers)
        for one in asked
        if one.step.pk not in open_already
    )
    to = Run.Status.AWAITING_DECISION if unknown else Run.Status.AWAITING_APPROVAL
    if not move(run, to=to, fence=held.fence):
        raise LeaseLost


NOBODY_KNOWS = (Status.STARTED, Status.UNKNOWN)


def read_inputs(asking: Sequence[Asking]) -> None:
    """Take the inputs as the database gives them back, so that digests stay the same.

    A database may write a number otherwise than it was told: 1e16 as an integer.
    """
    for one in asking:
        one.step.refresh_from_db(fields=["tool_input"])


def call_of(step_tool: str, tool_input: Any, spec: ToolSpec | None) -> dict[str, Any]:
    """Return a call as people are shown it, and as it is compared before it runs."""
    target = target_of(spec, tool_input) if spec else ""
    return {"tool": step_tool, "tool_input": tool_input, "target": target}


def digest_of_call(shown: Any) -> str:
    """Return the SHA-256 of a call as it is shown, so that just this one is run."""
    text = json.dumps(shown, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def approvers_of(asking: Sequence[Asking]) -> dict[int, int | None]:
    """Return the group that answers for each tool; none where the run's owner does."""
    pks = {one.step.tool_ref_id for one in asking if one.step.tool_ref_id}
    rows = Tool.objects.filter(pk__in=pks, approvers__isnull=False)
    return dict(rows.values_list("pk", "approvers_id"))


def _question(
    one: Asking, *, is_unknown: bool, approvers: dict[int, int | None]
) -> Decision:
    shown = call_of(one.step.tool, one.step.tool_input, one.spec)
    question = Decision.Question.OUTCOME if is_unknown else Decision.Question.APPROVAL
    spec = one.spec
    hours = spec.approval_hours if spec else None
    if hours is None:
        hours = settings.APPROVAL_HOURS
    return Decision(
        step=one.step,
        question=question,
        shown=shown,
        shown_digest=digest_of_call(shown),
        approvers_id=approvers.get(one.step.tool_ref_id or 0),
        # An outcome does not become known by waiting.
        expires_at=None if is_unknown or hours <= 0 else from_now(hours * 3600),
        at_expiry=(spec.at_expiry if spec else None) or settings.APPROVAL_EXPIRY,
    )
