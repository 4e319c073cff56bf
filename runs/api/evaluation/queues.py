"""Annotation queues in the API: what people are asked, their runs, and the scores."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from pydantic import Field

from runs.api.bodies import StrictBody
from runs.api.definitions.common import (
    Definition,
    DefinitionShape,
    Name,
    SharingBody,
    build_common_routes,
    definition_json,
    share_definition,
    shared_group_ids,
)
from runs.api.dispatch import json_response, no_content
from runs.api.evaluation.lookups import find_by_slug
from runs.api.problems import ApiProblem, field_problem, form_problem
from runs.api.queries import MAX_PAGE, Id, Page, PageQuery, paginate_by_id
from runs.api.route import Route
from runs.api.shapes import Shape
from runs.evaluation.types import RecordedMessage
from runs.forms.annotation.annotation import AnnotationForm
from runs.forms.annotation.queue import (
    AnnotationQueueForm,
    list_default_labels,
    list_default_marks,
)
from runs.models import Annotation, AnnotationQueue, Dataset, QueuedRun, Run
from runs.serializers import Json, format_timestamp
from runs.services.annotation.agreement import load_queue_agreement
from runs.services.annotation.annotate import (
    find_annotation,
    find_correction_dataset,
    skip_run,
    submit_annotation,
)
from runs.services.annotation.claim import AnnotationRefused, claim_next_run
from runs.services.annotation.queued_runs import (
    add_runs_to_queue,
    load_queue_progress,
    remove_queued_run,
)
from runs.services.datasets.from_run import format_run_answer
from runs.services.errors import FieldError, RunsError
from runs.services.evaluation.earlier_messages import load_earlier_messages
from runs.ui.evaluation.earlier_messages import MAX_SHOWN
from runs.views.annotation.page import QueuedRow, build_queued_rows, select_shown_items

FORM_FIELDS = {"scale_lines": "scale", "label_lines": "labels", "is_added": "add"}
"""Fields of the forms that have other names in bodies."""


class QueueFields(SharingBody):
    """What can be changed of a queue; what is left out stays."""

    question: Annotated[str, Field(min_length=1, max_length=200)] = ""
    guidelines: Annotated[str, Field(max_length=100_000)] = ""
    scale: Annotated[list[str], Field(max_length=20)] = []
    """Names of the scores from 1 on, the worst first; 2 to 9."""
    passing_mark: int = 4
    """The lowest score of a good answer."""
    labels: Annotated[list[str], Field(max_length=20)] = []
    """What may be wrong with an answer; at most 8."""
    people_per_run: int = 1
    dataset: str | None = None
    """Slug of a dataset that you may edit, for corrected answers; null for none."""


class NewQueueBody(QueueFields):
    """The body of `POST /api/v1/queues`; without a scale and labels, it has usual
    ones."""

    name: Name


class QueueBody(QueueFields):
    """The body of `PATCH /api/v1/queues/{id}`."""

    name: Name = ""


class QueuedRunsBody(StrictBody):
    """Runs to add."""

    runs: Annotated[list[Id], Field(min_length=1, max_length=MAX_PAGE)]
    """Their ids."""


class NextRunBody(StrictBody):
    """Which run to reserve."""

    with_skipped: bool = False
    """Whether to get runs again that you have skipped."""


class AnnotationBody(StrictBody):
    """What you say of a run; it replaces what you said before."""

    mark: int
    """From 1 on, in the order of the scale."""
    labels: list[str] = []
    """Labels of the queue."""
    comment: str = ""
    correction: str = ""
    """The answer as it should have been; empty to leave it."""
    add: bool = False
    """Whether the run becomes an example of the dataset of the queue."""


class QueueSummaryShape(DefinitionShape):
    """An annotation queue in a list."""

    question: str
    people_per_run: int


class ProgressShape(Shape):
    """How many scores a queue has."""

    runs: int
    total: int
    """Scores that it needs."""
    mine: int
    others: int
    skipped: int
    """Runs that you have skipped, and nobody has scored since."""


class AgreementShape(Shape):
    """How far two people agree, or an evaluator with people."""

    people: list[str]
    """Two user names; of an evaluator, none."""
    evaluator: str | None
    """Slug."""
    runs: int
    """That both have scored."""
    same: float
    """Part of the runs with the same score, from 0 to 1."""
    kappa: float | None
    """Cohen's kappa; null if it is not defined."""


class QueueShape(QueueSummaryShape):
    """An annotation queue: what people are asked, and how far they are."""

    guidelines: str
    scale: list[str]
    passing_mark: int
    labels: list[str]
    dataset: str | None
    progress: ProgressShape
    agreement: list[AgreementShape]


class AnnotationShape(Shape):
    """What one person says of a run."""

    by: str
    mark: int
    labels: list[str]
    comment: str
    correction: str
    at: str | None


class EarlierMessageShape(Shape):
    """A message of a conversation."""

    role: Literal["user", "assistant"]
    text: str


class QueuedRunShape(Shape):
    """A run of a queue."""

    run: int
    reason: str
    """Why a rule added it; empty if a person did."""
    added_at: str | None
    earlier_messages: list[EarlierMessageShape]
    """The last 20 that the model saw of the conversation before the run."""
    inputs: dict[str, Any]
    answer: Any
    scores: int
    """People who have scored it."""
    annotations: list[AnnotationShape]
    """Without those of others while you may still have to score the run."""


class NextRunShape(Shape):
    """The run that was reserved for you."""

    run: QueuedRunShape | None
    """Null if none is left for you."""


class AddedRunsShape(Shape):
    """What became of the runs."""

    added: int
    known: int
    """That were in the queue already."""
    unfinished: int
    """That have not ended, and were not added."""


def queue_summary(queue: AnnotationQueue) -> Json:
    return {
        **definition_json(queue),
        "question": queue.question,
        "people_per_run": queue.people_per_run,
    }


def queue_json(queue: AnnotationQueue, user: User) -> Json:
    progress = load_queue_progress(queue, by=user)
    return {
        **queue_summary(queue),
        "guidelines": queue.guidelines,
        "scale": queue.scale,
        "passing_mark": queue.passing_mark,
        "labels": queue.labels,
        "dataset": queue.dataset.slug if queue.dataset else None,
        "progress": progress._asdict(),
        "agreement": list_agreements(queue),
    }


def list_agreements(queue: AnnotationQueue) -> list[Json]:
    found = load_queue_agreement(queue)
    return [
        {
            "people": [one.one.get_username(), one.other.get_username()],
            "evaluator": None,
            **one.agreement._asdict(),
        }
        for one in found.people
    ] + [
        {
            "people": [],
            "evaluator": one.evaluator.slug,
            **one.agreement._asdict(),
        }
        for one in found.evaluators
    ]


def list_queued_runs(items: Sequence[QueuedRun], user: User) -> list[Json]:
    messages = load_earlier_messages([item.run for item in items])
    return [
        queued_run_json(row, messages[row.item.run_id], user)
        for row in build_queued_rows(items, viewer=user)
    ]


def queued_run_json(
    row: QueuedRow, messages: Sequence[RecordedMessage], user: User
) -> Json:
    run, said = row.item.run, row.annotations
    shown = [one for one in said if not row.is_hidden or one.by_id == user.pk]
    return {
        "run": row.item.run_id,
        "reason": row.item.reason,
        "added_at": format_timestamp(row.item.added_at),
        "earlier_messages": [one.model_dump() for one in messages[-MAX_SHOWN:]],
        "inputs": run.inputs,
        "answer": run.answer,
        "scores": row.item.done_count,
        "annotations": [annotation_json(one) for one in shown],
    }


def annotation_json(one: Annotation) -> Json:
    return {
        "by": one.by.get_username(),
        "mark": one.mark,
        "labels": one.labels,
        "comment": one.comment,
        "correction": one.correction,
        "at": format_timestamp(one.changed_at),
    }


QUEUES = Definition("queue", AnnotationQueue, queue_summary, queue_json)


def create_queue(request: HttpRequest, user: User, body: NewQueueBody) -> HttpResponse:
    """Create an annotation queue."""
    queue = AnnotationQueue(
        owner=user,
        question=_("How good is the answer?"),
        scale=list_default_marks(),
        labels=list_default_labels(),
    )
    with transaction.atomic():
        queue = save_queue(queue, body)
    return QUEUES.respond(user, queue.pk, 201)


def change_queue(
    request: HttpRequest, user: User, pk: str, body: QueueBody
) -> HttpResponse:
    """Change what people are asked; scores that were given stay."""
    with QUEUES.edit(request, user, pk) as queue:
        save_queue(queue, body)
    return QUEUES.respond(user, queue.pk)


def save_queue(
    queue: AnnotationQueue, body: NewQueueBody | QueueBody
) -> AnnotationQueue:
    """Check the body as the form of the page does, and save it; raise a 422."""
    share_definition(queue, body)
    sent = body.model_dump(exclude_unset=True)
    names = ("name", "question", "guidelines", "passing_mark", "people_per_run")
    given = {name: sent.get(name, getattr(queue, name)) for name in names}
    given["scale_lines"] = join_lines("scale", sent.get("scale", queue.scale))
    given["label_lines"] = join_lines("labels", sent.get("labels", queue.labels))
    given["visibility"] = queue.visibility
    given["groups"] = shared_group_ids(queue, body)
    given["dataset"] = queue.dataset_id
    if "dataset" in sent:
        slug = sent["dataset"]
        mine = Dataset.objects.editable_by(queue.owner).filter(archived_at=None)
        given["dataset"] = (
            None if slug is None else find_by_slug(mine, "dataset", slug).pk
        )
    form = AnnotationQueueForm(given, instance=queue)
    if not form.is_valid():
        raise name_fields(form_problem(form))
    return form.save()


def join_lines(field: str, names: list[str]) -> str:
    """Return the names one per line, as the form takes them; raise a 422."""
    for name in names:
        if len(name.strip().splitlines()) != 1:
            raise field_problem(field, "Enter a name of one line each.")
    return "\n".join(names)


def name_fields(problem: ApiProblem) -> ApiProblem:
    """Return the problem with the names that fields have in bodies."""
    errors = [
        FieldError(FORM_FIELDS.get(one.field, one.field), one.message)
        for one in problem.errors
    ]
    return ApiProblem(problem.status, errors)


def list_queue_runs(
    request: HttpRequest, user: User, pk: str, query: PageQuery
) -> HttpResponse:
    """The runs of a queue, those first that were added first."""
    queue = QUEUES.find(user, pk)
    items = select_shown_items(queue.items.all())
    page = paginate_by_id(items, query, lambda item: item, oldest_first=True)
    return json_response({**page, "data": list_queued_runs(page["data"], user)})


def add_queue_runs(
    request: HttpRequest, user: User, pk: str, body: QueuedRunsBody
) -> HttpResponse:
    """Add ended runs that you may see, each once."""
    queue = get_open_queue(user, pk)
    runs = Run.objects.visible_to(user).filter(pk__in=body.runs)
    found = {run.pk: run for run in runs.only("status")}
    missing = [str(one) for one in body.runs if one not in found]
    if missing:
        raise field_problem("runs", f"Not found: {', '.join(missing)}.")
    result = add_runs_to_queue(queue, list(found.values()), by=user)
    return json_response(result._asdict())


def get_open_queue(user: User, pk: str) -> AnnotationQueue:
    """Return a queue that runs can be scored in; raise a 404 or 409."""
    queue: AnnotationQueue = QUEUES.find(user, pk)
    if queue.archived_at is not None:
        message = "The queue is archived. Restore it to score runs."
        raise field_problem("id", message, 409)
    return queue


def get_queued_run(queue: AnnotationQueue, run: str) -> QueuedRun:
    """Return the run of the queue; raise a 404."""
    items = select_shown_items(queue.items.filter(run=int(run)))
    found = items.select_related("queue__dataset", "queue__owner").first()
    if found is None:
        raise field_problem("run", f"Run {run} is not in this queue.", 404)
    return found


def describe_queued_run(item: QueuedRun, user: User) -> Json:
    item = select_shown_items(QueuedRun.objects.filter(pk=item.pk)).get()
    return list_queued_runs([item], user)[0]


def remove_queue_run(
    request: HttpRequest, user: User, pk: str, run: str
) -> HttpResponse:
    """Remove a run from the queue with all that people said of it there."""
    queue = QUEUES.require_editable(user, pk)
    remove_queued_run(get_queued_run(queue, run))
    return no_content()


def reserve_next_run(
    request: HttpRequest, user: User, pk: str, body: NextRunBody
) -> HttpResponse:
    """Reserve the next run for a quarter of an hour, so that nobody else gets it."""
    queue = get_open_queue(user, pk)
    item = claim_next_run(queue, by=user, with_skipped=body.with_skipped)
    return json_response({"run": describe_queued_run(item, user) if item else None})


def annotate_run(
    request: HttpRequest, user: User, pk: str, run: str, body: AnnotationBody
) -> HttpResponse:
    """Score a run; what you said of it before is replaced."""
    queue = get_open_queue(user, pk)
    item = get_queued_run(queue, run)
    if body.add and find_correction_dataset(queue) is None:
        raise field_problem("add", "The queue has no dataset for corrections.")
    mine = find_annotation(item, by=user)
    given = body.model_dump(exclude={"add"}) | {
        "correction": body.correction or format_run_answer(item.run),
        "is_added": body.add,
    }
    form = AnnotationForm(item, mine, given)
    if not form.is_valid():
        raise name_fields(form_problem(form))
    try:
        submit_annotation(item, form.build_content(), by=user)
    except AnnotationRefused as refused:
        raise field_problem("run", str(refused), 409) from None
    except RunsError as refused:
        raise field_problem("add", str(refused)) from None
    return json_response(describe_queued_run(item, user))


def skip_queue_run(request: HttpRequest, user: User, pk: str, run: str) -> HttpResponse:
    """Leave a run to others."""
    item = get_queued_run(get_open_queue(user, pk), run)
    try:
        skip_run(item, by=user)
    except AnnotationRefused as refused:
        raise field_problem("run", str(refused), 409) from None
    return json_response(describe_queued_run(item, user))


ONE = "queues/{id}"
ROUTES = [
    *build_common_routes(QUEUES, QueueShape, QueueSummaryShape),
    Route(
        *("POST", "queues", create_queue, "Create an annotation queue"),
        QueueShape,
        scope="build",
        body=NewQueueBody,
        status=201,
        is_idempotent=True,
        has_etag=True,
    ),
    Route(
        *("PATCH", ONE, change_queue, "Change an annotation queue"),
        QueueShape,
        scope="build",
        body=QueueBody,
        has_etag=True,
    ),
    Route(
        "GET",
        f"{ONE}/runs",
        list_queue_runs,
        "List runs of a queue",
        Page[QueuedRunShape],
        query=PageQuery,
    ),
    Route(
        "POST",
        f"{ONE}/runs",
        add_queue_runs,
        "Add runs to a queue",
        AddedRunsShape,
        body=QueuedRunsBody,
        errors=(409,),
    ),
    Route(
        "DELETE",
        f"{ONE}/runs/{{run}}",
        remove_queue_run,
        "Remove a run from a queue",
        status=204,
    ),
    Route(
        "POST",
        f"{ONE}/next",
        reserve_next_run,
        "Reserve the next run of a queue",
        NextRunShape,
        body=NextRunBody,
        errors=(409,),
    ),
    Route(
        "PUT",
        f"{ONE}/runs/{{run}}/annotation",
        annotate_run,
        "Score a run of a queue",
        QueuedRunShape,
        body=AnnotationBody,
        errors=(409,),
    ),
    Route(
        "POST",
        f"{ONE}/runs/{{run}}/skip",
        skip_queue_run,
        "Skip a run of a queue",
        QueuedRunShape,
        errors=(409,),
    ),
]
