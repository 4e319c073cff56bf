"""Approvals and other decisions in the API: list, read, approve, reject, settle."""

from collections.abc import Callable
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from pydantic import BaseModel, ConfigDict

from runs.api.bodies import parse_body
from runs.api.dispatch import json_response
from runs.api.problems import ApiProblem, field_problem
from runs.api.serializers import Json, format_timestamp
from runs.models import Decision
from runs.models.decisions import DecisionQuerySet
from runs.services.approvals.answer import approve_step, reject_step, settle_outcome
from runs.services.errors import (
    AlreadyDecided,
    ArgumentsRefused,
    FieldError,
    NotAllowed,
    ShownCallChanged,
)
from runs.whole_number import parse_whole_number

MAX_APPROVALS = 100
"""Decisions in one response."""

STATUSES = ("open", "answered")

B = TypeVar("B", bound=BaseModel)


class AnswerBody(BaseModel):
    """Fields common to all answers."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    reason: str = ""
    digest: str | None = None
    """The `digest` that the client read; the answer is refused if the call differs."""


class ApproveBody(AnswerBody):
    """The body of `POST /api/v1/approvals/{id}/approve`."""

    arguments: Any = None
    """Edited arguments to run instead; null for those that were shown."""
    alike: bool = False
    """Approve every call of the tool in this run."""


class SettleBody(AnswerBody):
    """The body of `POST /api/v1/approvals/{id}/settle`."""

    answer: str
    """happened, retry, skip or fail."""
    result: str = ""
    """For the model, if the call happened or is skipped."""


def list_approvals(request: HttpRequest, user: User) -> HttpResponse:
    """`GET /approvals`: open ones, most urgent first, or answered ones.

    `?status=answered` returns the newest answers, `?run=ID` those of one run.
    """
    unknown = sorted(set(request.GET) - {"status", "run"})
    if unknown:
        raise ApiProblem(422, [FieldError(n, "Unknown field.") for n in unknown])
    status = request.GET.get("status", "open")
    if status not in STATUSES:
        raise field_problem("status", "Must be `open` or `answered`.")
    rows = visible_approvals(user)
    if asked := request.GET.get("run", ""):
        run = parse_whole_number(asked)
        if run is None:
            raise field_problem("run", "Must be the number of a run.")
        rows = rows.filter(step__run=run)
    if status == "open":
        rows = rows.open().order_by(F("expires_at").asc(nulls_last=True), "pk")
    else:
        rows = rows.exclude(answer="").order_by("-at", "-pk")
    return json_response(
        {"approvals": [approval_json(one) for one in rows[:MAX_APPROVALS]]}
    )


def read_approval(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """`GET /approvals/{id}`: one decision with the exact call, and its answer."""
    return json_response(approval_json(get_approval_for_user(user, int(pk))))


def approve_call(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """`POST /approvals/{id}/approve`: run the call; 409 if already answered."""
    body = parse_answer_body(request, ApproveBody)
    question = get_approval_for_user(user, int(pk))

    def do() -> None:
        approve_step(
            question,
            by=user,
            edited_input=body.arguments,
            reason=body.reason,
            alike=body.alike,
            shown=body.digest,
        )

    return answer_approval(do, user, question)


def reject_call(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """`POST /approvals/{id}/reject`: refuse the call; the model gets the reason."""
    body = parse_answer_body(request, AnswerBody)
    question = get_approval_for_user(user, int(pk))
    return answer_approval(
        lambda: reject_step(question, by=user, reason=body.reason, shown=body.digest),
        user,
        question,
    )


def settle_call(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """`POST /approvals/{id}/settle`: resolve a call with an unknown outcome."""
    body = parse_answer_body(request, SettleBody)
    question = get_approval_for_user(user, int(pk))
    return answer_approval(
        lambda: settle_outcome(
            question,
            by=user,
            answer=body.answer,
            result=body.result or body.reason,
            shown=body.digest,
        ),
        user,
        question,
    )


def answer_approval(
    do: Callable[[], None], user: User, question: Decision
) -> HttpResponse:
    """Call `do`, and return the decision as it is then, or the problem."""
    try:
        do()
    except AlreadyDecided as error:
        raise field_problem("answer", str(error), 409) from None
    except ShownCallChanged as error:
        raise field_problem("digest", str(error), 409) from None
    except ArgumentsRefused as error:
        raise ApiProblem(
            422, [prefix_argument_error(one) for one in error.errors]
        ) from None
    except NotAllowed as error:
        raise field_problem("answer", str(error), 403) from None
    return json_response(approval_json(get_approval_for_user(user, question.pk)))


def prefix_argument_error(error: FieldError) -> FieldError:
    """Return the error under its path in the body."""
    name = f"arguments.{error.field}" if error.field else "arguments"
    return FieldError(name, error.message)


def parse_answer_body(request: HttpRequest, kind: type[B]) -> B:
    """Parse the body; empty counts as an empty object. Raise `ApiProblem`."""
    return parse_body(request.body or b"{}", kind)


def visible_approvals(user: User) -> DecisionQuerySet:
    """Return the decisions `user` may see, with the rows that `approval_json` needs."""
    rows = Decision.objects.visible_to(user)
    return rows.select_related(
        "step__run__agent", "step__run__owner", "by", "approvers"
    )


def get_approval_for_user(user: User, pk: int) -> Decision:
    """Return the decision, if `user` may see it; raise a 404."""
    found = visible_approvals(user).filter(pk=pk).first()
    if found is None:
        raise field_problem("id", f"Approval {pk} not found.", 404)
    return found


def approval_json(question: Decision) -> Json:
    """Return a decision as JSON; `digest` identifies the exact call that is shown."""
    step, run = question.step, question.step.run
    return {
        "id": question.pk,
        "question": question.question,
        "run": run.pk,
        "step": step.index,
        "agent": run.agent.slug,
        "asked_by": run.owner.get_username(),
        "tool": step.tool,
        "arguments": question.shown.get("tool_input"),
        "target": question.shown.get("target", ""),
        "effect": step.effect,
        "digest": question.shown_digest,
        "approvers": question.approvers.name if question.approvers else None,
        "asked_at": format_timestamp(question.asked_at),
        "expires_at": format_timestamp(question.expires_at),
        "at_expiry": question.at_expiry if question.expires_at else None,
        "answer": question.answer or None,
        "edited_arguments": question.edited_input,
        "reason": question.reason,
        "for_the_whole_run": question.allowance_id is not None,
        "by": question.by.get_username() if question.by else None,
        "at": format_timestamp(question.at),
    }
