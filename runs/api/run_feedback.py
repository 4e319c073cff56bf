"""What people do with a run in the API: rate, tag, comment, share, re-run, delete."""

from typing import Annotated, Literal

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from pydantic import Field

from runs.api.bodies import StrictBody
from runs.api.dispatch import json_response, no_content
from runs.api.problems import ApiProblem, field_problem, not_found
from runs.api.queries import Page, PageQuery, paginate_by_id
from runs.api.route import Route
from runs.api.runs import get_run_for_user, new_run_json, prefix_field_errors
from runs.api.shapes import RunWithStepsShape, Shape
from runs.models import Run, RunComment, RunShare, RunTag
from runs.serializers import Json, format_timestamp
from runs.services.errors import (
    CannotShare,
    InputsRefused,
    NotAllowed,
    SpecRefused,
)
from runs.services.evaluation.run_scores import RunScoreEntry, load_run_scores
from runs.services.runs.delete import delete_runs
from runs.services.runs.feedback import (
    MAX_COMMENT_CHARACTERS,
    MAX_TAG_CHARACTERS,
    MAX_TAGS,
    FeedbackRefused,
    add_comment,
    add_tag,
    delete_comment,
    remove_tag,
)
from runs.services.runs.share import (
    MAX_HOURS,
    build_share_url,
    get_active_shares,
    revoke_share,
    share_run,
)
from runs.services.runs.start import load_frozen_agent, start_run
from runs.services.tool_modes.select_mode import get_tool_mode


class RatingBody(StrictBody):
    """What a person thinks of an answer."""

    rating: Literal[1, -1] | None
    """1 for a good answer, -1 for a bad one, null for none."""


class RatingShape(Shape):
    """The rating of a run."""

    rating: Literal[1, -1] | None


class TagsBody(StrictBody):
    """All tags of a run."""

    tags: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=MAX_TAG_CHARACTERS)]],
        Field(max_length=MAX_TAGS),
    ]


class TagsShape(Shape):
    """The tags of a run."""

    tags: list[str]


class CommentBody(StrictBody):
    """A comment on a run."""

    text: Annotated[str, Field(min_length=1, max_length=MAX_COMMENT_CHARACTERS)]


class CommentShape(Shape):
    """What a person wrote about a run."""

    id: int
    author: str | None
    text: str
    created_at: str


class RunScoreShape(Shape):
    """What an evaluator, a person or the user of the chat says of a run."""

    source: Literal["evaluator", "person", "chat_user"]
    name: str
    """Of the evaluator or the person."""
    value: float | None
    """From 0 to 1."""
    passed: bool | None
    label: str
    explanation: str
    problem: str
    """Why there is no score; empty if there is one."""
    at: str | None
    """Null for a rating."""


class RunScoresShape(Shape):
    """All scores of a run."""

    scores: list[RunScoreShape]


class ShareBody(StrictBody):
    """How long a link works."""

    hours: Annotated[int, Field(ge=1, le=MAX_HOURS)] = 24


class ShareShape(Shape):
    """A link that shows one run to anyone who has it."""

    id: int
    by: str
    created_at: str
    expires_at: str
    open_count: int
    url: str = ""
    """In the response that creates it."""


class RerunBody(StrictBody):
    """How to run an agent again."""

    inputs: dict[str, str] | None = None
    """Null for those of the run."""
    version: Literal["same", "newest"] = "newest"
    """The version that the run had, or the newest one."""


def rate_run_for_user(
    request: HttpRequest, user: User, pk: str, body: RatingBody
) -> HttpResponse:
    """Set or remove the rating."""
    run = get_run_for_user(user, int(pk))
    Run.objects.filter(pk=run.pk).update(rating=body.rating)
    return json_response({"rating": body.rating})


def set_run_tags(
    request: HttpRequest, user: User, pk: str, body: TagsBody
) -> HttpResponse:
    """Give the run exactly these tags."""
    run = get_run_for_user(user, int(pk))
    wanted = {" ".join(tag.split()) for tag in body.tags}
    if "" in wanted:
        raise field_problem("tags", "Enter a tag of 1 to 40 characters.")
    for tag in list_tags(run):
        if tag not in wanted:
            remove_tag(run, tag)
    for tag in sorted(wanted):
        add_tag(run, tag)
    return json_response({"tags": list_tags(run)})


def list_tags(run: Run) -> list[str]:
    return list(RunTag.objects.filter(run=run).values_list("name", flat=True))


def list_run_scores(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """Scores of experiments and rules, of annotation queues, and the rating.

    Marks of a queue that still asks you for yours are left out.
    """
    run = get_run_for_user(user, int(pk))
    found = load_run_scores(run, viewer=user)
    return json_response({"scores": [run_score_json(one) for one in found]})


def run_score_json(one: RunScoreEntry) -> Json:
    return {
        "source": one.source,
        "name": one.name,
        "value": one.value,
        "passed": one.passed,
        "label": one.label,
        "explanation": one.explanation,
        "problem": one.problem,
        "at": format_timestamp(one.at),
    }


def list_comments(
    request: HttpRequest, user: User, pk: str, query: PageQuery
) -> HttpResponse:
    """The comments of a run, the first ones first."""
    run = get_run_for_user(user, int(pk))
    rows = RunComment.objects.filter(run=run).select_related("author")
    return json_response(paginate_by_id(rows, query, comment_json, oldest_first=True))


def read_comment(
    request: HttpRequest, user: User, pk: str, number: str
) -> HttpResponse:
    """One comment; `number` is its id."""
    return json_response(comment_json(get_comment(user, pk, number)))


def create_comment(
    request: HttpRequest, user: User, pk: str, body: CommentBody
) -> HttpResponse:
    """Add a comment."""
    try:
        made = add_comment(get_run_for_user(user, int(pk)), body.text, by=user)
    except FeedbackRefused as error:
        raise field_problem("text", str(error)) from None
    location = reverse("api-run-comment", args=[pk, made.pk])
    return json_response(comment_json(made), 201, Location=location)


def delete_run_comment(
    request: HttpRequest, user: User, pk: str, number: str
) -> HttpResponse:
    """Delete a comment of your own; administrators may delete any."""
    try:
        delete_comment(get_comment(user, pk, number), by=user)
    except FeedbackRefused as error:
        raise field_problem("id", str(error), 403) from None
    return no_content()


def get_comment(user: User, pk: str, number: str) -> RunComment:
    rows = RunComment.objects.filter(run=get_run_for_user(user, int(pk)))
    found = rows.select_related("author").filter(pk=int(number)).first()
    if found is None:
        raise not_found("Comment", number)
    return found


def comment_json(comment: RunComment) -> Json:
    return {
        "id": comment.pk,
        "author": comment.author.get_username() if comment.author else None,
        "text": comment.text,
        "created_at": format_timestamp(comment.created_at),
    }


def list_shares(
    request: HttpRequest, user: User, pk: str, query: PageQuery
) -> HttpResponse:
    """The links to a run that still work."""
    shares = get_active_shares(get_run_for_user(user, int(pk)))
    return json_response(paginate_by_id(shares, query, share_json))


def read_share(request: HttpRequest, user: User, pk: str, number: str) -> HttpResponse:
    """One link, without its URL; `number` is its id."""
    return json_response(share_json(get_share(user, pk, number)))


def create_share(
    request: HttpRequest, user: User, pk: str, body: ShareBody
) -> HttpResponse:
    """Create a link that shows the run, secrets masked, to anyone who has it."""
    run = get_run_for_user(user, int(pk))
    try:
        token = share_run(run, by=user, hours=body.hours)
    except CannotShare as error:
        raise field_problem("hours", str(error)) from None
    made = get_active_shares(run)[0]
    return json_response(
        {**share_json(made), "url": build_share_url(token)},
        201,
        Location=reverse("api-run-share", args=[run.pk, made.pk]),
    )


def revoke_run_share(
    request: HttpRequest, user: User, pk: str, number: str
) -> HttpResponse:
    """Make a link stop working."""
    revoke_share(get_share(user, pk, number), by=user)
    return no_content()


def get_share(user: User, pk: str, number: str) -> RunShare:
    shares = get_active_shares(get_run_for_user(user, int(pk)))
    found = shares.filter(pk=int(number)).first()
    if found is None:
        raise not_found("Link", number)
    return found


def share_json(share: RunShare) -> Json:
    return {
        "id": share.pk,
        "by": share.by.get_username(),
        "created_at": format_timestamp(share.created_at),
        "expires_at": format_timestamp(share.expires_at),
        "open_count": share.open_count,
    }


def rerun_run(
    request: HttpRequest, user: User, pk: str, body: RerunBody
) -> HttpResponse:
    """Start a new run of the agent, by default with the same inputs."""
    run = get_run_for_user(user, int(pk))
    try:
        new = start_run(
            run.agent,
            by=user,
            inputs=dict(run.inputs if body.inputs is None else body.inputs),
            conversation=run.conversation if run.owner_id == user.pk else None,
            draft=run.version_id is None,
            is_test=run.is_test,
            frozen=load_frozen_agent(run) if body.version == "same" else None,
            tool_mode=get_tool_mode(run),
            source=Run.Source.API,
        )
    except InputsRefused as error:
        raise ApiProblem(422, prefix_field_errors("inputs", error.errors)) from None
    except SpecRefused as error:
        raise ApiProblem(422, prefix_field_errors("agent", error.errors)) from None
    except NotAllowed as error:
        raise field_problem("agent", str(error), 403) from None
    location = reverse("api-run", args=[new.pk])
    return json_response(new_run_json(new), 201, Location=location)


def delete_run(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """Delete an ended run with the runs that it started."""
    run = get_run_for_user(user, int(pk))
    if run.parent_step_id is not None:
        message = "A run that another run started is deleted with that run."
        raise field_problem("id", message, 409)
    if not delete_runs([run], by=user):
        raise field_problem("status", "The run has not ended. Cancel it first.", 409)
    return no_content()


ROUTES = [
    Route("DELETE", "runs/{id}", delete_run, "Delete a run", status=204, errors=(409,)),
    Route(
        "POST",
        "runs/{id}/rerun",
        rerun_run,
        "Run again",
        RunWithStepsShape,
        body=RerunBody,
        status=201,
        errors=(429,),
        is_idempotent=True,
    ),
    Route(
        "PUT",
        "runs/{id}/rating",
        rate_run_for_user,
        "Rate a run",
        RatingShape,
        body=RatingBody,
    ),
    Route("GET", "runs/{id}/scores", list_run_scores, "List scores", RunScoresShape),
    Route("PUT", "runs/{id}/tags", set_run_tags, "Tag a run", TagsShape, body=TagsBody),
    Route(
        "GET",
        "runs/{id}/comments",
        list_comments,
        "List comments",
        Page[CommentShape],
        query=PageQuery,
    ),
    Route(
        "POST",
        "runs/{id}/comments",
        create_comment,
        "Comment on a run",
        CommentShape,
        body=CommentBody,
        status=201,
        is_idempotent=True,
    ),
    Route(
        "GET",
        "runs/{id}/comments/{number}",
        read_comment,
        "Read a comment",
        CommentShape,
    ),
    Route(
        "DELETE",
        "runs/{id}/comments/{number}",
        delete_run_comment,
        "Delete a comment",
        status=204,
    ),
    Route(
        "GET",
        "runs/{id}/shares",
        list_shares,
        "List share links",
        Page[ShareShape],
        query=PageQuery,
    ),
    Route(
        "POST",
        "runs/{id}/shares",
        create_share,
        "Share a run",
        ShareShape,
        body=ShareBody,
        status=201,
        is_idempotent=True,
    ),
    Route(
        "GET", "runs/{id}/shares/{number}", read_share, "Read a share link", ShareShape
    ),
    Route(
        "DELETE",
        "runs/{id}/shares/{number}",
        revoke_run_share,
        "Revoke a share link",
        status=204,
    ),
]
