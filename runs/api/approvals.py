"""Approvals and other decisions in the API: list, read, approve, reject, settle."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple

from django.contrib.auth.models import User
from django.db.models import F, Q
from django.http import HttpRequest, HttpResponse
from pydantic import Field

from runs.api.bodies import StrictBody
from runs.api.dispatch import json_response
from runs.api.problems import ApiProblem, field_problem
from runs.api.queries import Id, Page, PageQuery, invalid_cursor
from runs.api.route import Route
from runs.api.shapes import Shape
from runs.models import Decision
from runs.models.decisions import DecisionQuerySet
from runs.serializers import Json, format_timestamp
from runs.services.approvals.answer import approve_step, reject_step, settle_outcome
from runs.services.errors import (
    AlreadyDecided,
    ArgumentsRefused,
    FieldError,
    NotAllowed,
    RunsError,
    ShownCallChanged,
)
from runs.whole_number import parse_whole_number

MAX_ANSWERS = 100
"""Approvals answered by one request."""


class ApprovalQuery(PageQuery):
    """Which approvals."""

    status: Literal["open", "answered"] = "open"
    """Open ones, the most urgent first, or answered ones, the latest first."""
    run: Id | None = None


class AnswerBody(StrictBody):
    """Fields common to all answers."""

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

    answer: Literal["happened", "retry", "skip", "fail"]
    result: str = ""
    """For the model, if the call happened or is skipped."""


class SeveralItem(StrictBody):
    """One of several approvals to answer."""

    id: Id
    digest: str | None = None


class SeveralBody(StrictBody):
    """The body of `POST /api/v1/approvals/answer`."""

    answer: Literal["approve", "reject"]
    approvals: Annotated[list[SeveralItem], Field(min_length=1, max_length=MAX_ANSWERS)]
    reason: str = ""


class ApprovalShape(Shape):
    """A call that awaits a person, or their answer."""

    id: int
    question: Literal["approval", "outcome"]
    run: int
    step: int
    agent: str
    asked_by: str
    """Owner of the run."""
    tool: str
    arguments: Any
    target: str
    effect: str
    digest: str
    """Identifies the exact call; send it with the answer."""
    approvers: str | None
    """The group that answers; null for the owner of the run."""
    asked_at: str
    expires_at: str | None
    at_expiry: str | None
    answer: str | None
    edited_arguments: Any
    reason: str
    for_the_whole_run: bool
    by: str | None
    """Who answered, or ended the run first."""
    at: str | None


class AnsweredShape(Shape):
    """What became of one of several approvals."""

    id: int
    approval: ApprovalShape | None
    error: str | None
    """Why it was not answered."""


class SeveralShape(Shape):
    """What became of several approvals."""

    data: list[AnsweredShape]


def list_approvals(
    request: HttpRequest, user: User, query: ApprovalQuery
) -> HttpResponse:
    """Approvals and unknown outcomes that you may see."""
    rows = visible_approvals(user)
    if query.run is not None:
        rows = rows.filter(step__run=query.run)
    place = parse_time_cursor(query.cursor) if query.cursor else None
    if query.status == "open":
        rows = rows.open().order_by(F("expires_at").asc(nulls_last=True), "pk")
        found = rows.filter(is_less_urgent(place)) if place else rows
    else:
        rows = rows.exclude(answer="").order_by("-at", "-pk")
        found = rows.filter(is_earlier(place)) if place else rows
    page = list(found[: query.limit + 1])
    shown = page[: query.limit]
    cursor = None
    if len(page) > query.limit:
        last = shown[-1]
        at = last.expires_at if query.status == "open" else last.at
        cursor = f"{format_timestamp(at) or ''}~{last.pk}"
    return json_response(
        {"data": [approval_json(one) for one in shown], "next": cursor}
    )


class TimeCursor(NamedTuple):
    """A row of a list that is sorted by a time, which may be missing."""

    at: datetime | None
    pk: int


def parse_time_cursor(text: str) -> TimeCursor:
    """Return the row that a cursor names; raise a 422."""
    written, _, pk = text.rpartition("~")
    number = parse_whole_number(pk)
    try:
        at = datetime.fromisoformat(written) if written else None
    except ValueError:
        raise invalid_cursor() from None
    if number is None or (at is not None and not is_storable_time(at)):
        raise invalid_cursor()
    return TimeCursor(at, number)


def is_storable_time(at: datetime) -> bool:
    """Whether a time is the same in UTC, where its year must exist, too."""
    return at.tzinfo is not None and 1 < at.year < 9999


def is_less_urgent(place: TimeCursor) -> Q:
    if place.at is None:
        return Q(expires_at=None, pk__gt=place.pk)
    later = Q(expires_at__gt=place.at) | Q(expires_at=None)
    return later | Q(expires_at=place.at, pk__gt=place.pk)


def is_earlier(place: TimeCursor) -> Q:
    if place.at is None:
        raise invalid_cursor()
    return Q(at__lt=place.at) | Q(at=place.at, pk__lt=place.pk)


def read_approval(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """The exact call, and its answer."""
    return json_response(approval_json(get_approval_for_user(user, int(pk))))


def approve_call(
    request: HttpRequest, user: User, pk: str, body: ApproveBody
) -> HttpResponse:
    """Run the call; 409 if it has been answered."""
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


def reject_call(
    request: HttpRequest, user: User, pk: str, body: AnswerBody
) -> HttpResponse:
    """Refuse the call; the model gets the reason."""
    question = get_approval_for_user(user, int(pk))
    return answer_approval(
        lambda: reject_step(question, by=user, reason=body.reason, shown=body.digest),
        user,
        question,
    )


def settle_call(
    request: HttpRequest, user: User, pk: str, body: SettleBody
) -> HttpResponse:
    """Resolve a call with an unknown outcome."""
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


def answer_several(request: HttpRequest, user: User, body: SeveralBody) -> HttpResponse:
    """Approve or reject several calls, each by itself: one error stops no other."""
    return json_response(
        {"data": [answer_one(user, body, one) for one in body.approvals]}
    )


def answer_one(user: User, body: SeveralBody, item: SeveralItem) -> Json:
    """Answer one of several approvals; return it, or why it was not answered."""
    rows = visible_approvals(user)
    question = rows.filter(pk=item.id).first()
    if question is None:
        message = f"Approval {item.id} not found."
        return {"id": item.id, "approval": None, "error": message}
    decide = approve_step if body.answer == "approve" else reject_step
    try:
        decide(question, by=user, reason=body.reason, shown=item.digest)
    except RunsError as error:
        return {"id": item.id, "approval": None, "error": str(error)}
    return {
        "id": item.id,
        "approval": approval_json(rows.get(pk=item.id)),
        "error": None,
    }


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


ROUTES = [
    Route(
        "GET",
        "approvals",
        list_approvals,
        "List approvals",
        Page[ApprovalShape],
        query=ApprovalQuery,
    ),
    Route(
        "POST",
        "approvals/answer",
        answer_several,
        "Answer several approvals",
        SeveralShape,
        scope="approve",
        body=SeveralBody,
    ),
    Route("GET", "approvals/{id}", read_approval, "Read an approval", ApprovalShape),
    Route(
        "POST",
        "approvals/{id}/approve",
        approve_call,
        "Approve a call",
        ApprovalShape,
        scope="approve",
        body=ApproveBody,
        errors=(409,),
    ),
    Route(
        "POST",
        "approvals/{id}/reject",
        reject_call,
        "Reject a call",
        ApprovalShape,
        scope="approve",
        body=AnswerBody,
        errors=(409,),
    ),
    Route(
        "POST",
        "approvals/{id}/settle",
        settle_call,
        "Settle an unknown outcome",
        ApprovalShape,
        scope="approve",
        body=SettleBody,
        errors=(409,),
    ),
]
