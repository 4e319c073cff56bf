"""Questions of runs by the API: list, read, approve, reject, settle."""

from collections.abc import Callable
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from pydantic import BaseModel, ConfigDict, ValidationError

from runs.api.door import answer
from runs.api.problems import Problem, refused, unreadable
from runs.api.shapes import Json, when
from runs.models import Decision
from runs.models.decisions import DecisionQuerySet
from runs.services.answer_decision import approve_step, reject_step, settle_outcome
from runs.services.errors import (
    AlreadyDecided,
    ArgumentsRefused,
    FieldError,
    NotAllowed,
    NotShown,
)
from runs.whole_number import whole_number

AT_MOST = 100
"""Questions in one answer."""

STATUSES = ("open", "answered")

B = TypeVar("B", bound=BaseModel)


class Body(BaseModel):
    """What every answer may say."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    reason: str = ""
    digest: str | None = None
    """The `digest` that was read; another call than that is not answered."""


class Approve(Body):
    """The body of `POST /api/v1/approvals/{id}/approve`."""

    arguments: Any = None
    """Other arguments, to run instead; null for those that were shown."""
    alike: bool = False
    """Approve every call of the tool in this run."""


class Settle(Body):
    """The body of `POST /api/v1/approvals/{id}/settle`."""

    answer: str
    """happened, retry, skip or fail."""
    result: str = ""
    """What the model reads where it happened or is skipped."""


def index(request: HttpRequest, user: User) -> HttpResponse:
    """`GET /approvals`: open questions, the most urgent first, or answered ones.

    `?status=answered` gives the newest answers, `?run=ID` those of one run.
    """
    unknown = sorted(set(request.GET) - {"status", "run"})
    if unknown:
        raise Problem(422, [FieldError(n, "This field is not known.") for n in unknown])
    status = request.GET.get("status", "open")
    if status not in STATUSES:
        raise refused("status", "It can be `open` or `answered`.")
    rows = visible(user)
    if asked := request.GET.get("run", ""):
        run = whole_number(asked)
        if run is None:
            raise refused("run", "It must be the number of a run.")
        rows = rows.filter(step__run=run)
    if status == "open":
        rows = rows.open().order_by(F("expires_at").asc(nulls_last=True), "pk")
    else:
        rows = rows.exclude(answer="").order_by("-at", "-pk")
    return answer({"approvals": [shape_of(one) for one in rows[:AT_MOST]]})


def read(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """`GET /approvals/{id}`: one question with the exact call, and its answer."""
    return answer(shape_of(question_for(user, int(pk))))


def approve(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """`POST /approvals/{id}/approve`: let the call run; 409 where it was answered."""
    body = body_of(request, Approve)
    question = question_for(user, int(pk))

    def do() -> None:
        approve_step(
            question,
            by=user,
            edited_input=body.arguments,
            reason=body.reason,
            alike=body.alike,
            shown=body.digest,
        )

    return answered(do, user, question)


def reject(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """`POST /approvals/{id}/reject`: refuse the call; the model reads the reason."""
    body = body_of(request, Body)
    question = question_for(user, int(pk))
    return answered(
        lambda: reject_step(question, by=user, reason=body.reason, shown=body.digest),
        user,
        question,
    )


def settle(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """`POST /approvals/{id}/settle`: say what became of a call nobody knows about."""
    body = body_of(request, Settle)
    question = question_for(user, int(pk))
    return answered(
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


def answered(do: Callable[[], None], user: User, question: Decision) -> HttpResponse:
    """Do it and return the question as it is then; or the problem."""
    try:
        do()
    except AlreadyDecided as error:
        raise refused("answer", str(error), 409) from None
    except NotShown as error:
        raise refused("digest", str(error), 409) from None
    except ArgumentsRefused as error:
        raise Problem(422, [within(one) for one in error.errors]) from None
    except NotAllowed as error:
        raise refused("answer", str(error), 403) from None
    return answer(shape_of(question_for(user, question.pk)))


def within(error: FieldError) -> FieldError:
    """Return the error under its place in the body."""
    name = f"arguments.{error.field}" if error.field else "arguments"
    return FieldError(name, error.message)


def body_of(request: HttpRequest, kind: type[B]) -> B:
    """Read the body; none is an empty object. Raise what is wrong with it."""
    try:
        return kind.model_validate_json(request.body or b"{}")
    except ValidationError as error:
        raise unreadable(error) from None


def visible(user: User) -> DecisionQuerySet:
    """Return the questions `user` may see, with the rows of their shape."""
    rows = Decision.objects.visible_to(user)
    return rows.select_related(
        "step__run__agent", "step__run__owner", "by", "approvers"
    )


def question_for(user: User, pk: int) -> Decision:
    """Return the question, if `user` may see it; raise a 404."""
    found = visible(user).filter(pk=pk).first()
    if found is None:
        raise refused("id", f"There is no question {pk} that you may see.", 404)
    return found


def shape_of(question: Decision) -> Json:
    """Return a question as JSON; `digest` names the exact call that is shown."""
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
        "asked_at": when(question.asked_at),
        "expires_at": when(question.expires_at),
        "at_expiry": question.at_expiry if question.expires_at else None,
        "answer": question.answer or None,
        "edited_arguments": question.edited_input,
        "reason": question.reason,
        "for_the_whole_run": question.allowance_id is not None,
        "by": question.by.get_username() if question.by else None,
        "at": when(question.at),
    }
