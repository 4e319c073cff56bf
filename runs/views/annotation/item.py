"""One run of an annotation queue: read on the left, scored on the right."""

from typing import Any, NamedTuple

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from runs.forms.annotation.annotation import AnnotationForm
from runs.htmx import HtmxRequest, wants_part
from runs.models import AgentStep, Annotation, AnnotationQueue, QueuedRun, Run
from runs.services.annotation.agreement import find_own_agreement
from runs.services.annotation.annotate import (
    find_annotation,
    find_correction_dataset,
    skip_run,
    submit_annotation,
    undo_annotation,
)
from runs.services.annotation.claim import (
    CLAIM_SECONDS,
    AnnotationRefused,
    claim_next_run,
    explain_no_room,
    renew_claim,
)
from runs.services.annotation.queued_runs import load_queue_progress
from runs.services.errors import RunsError
from runs.services.evaluation.run_scores import (
    RunScoreEntry,
    load_evaluator_scores,
)
from runs.ui.evaluation.earlier_messages import build_earlier_messages
from runs.ui.evaluation.evaluator_labels import get_score_label
from runs.ui.evaluation.word_diff import mark_differences
from runs.ui.markdown import render_json, render_markdown
from runs.views.annotation.page import get_visible_queue
from tools.accounts.person_name import get_person_name

LABEL_KEYS = "QWRTYUIO"
"""Keys of the labels, in their order; E edits the answer."""
MAX_SHOWN_STEPS = 100
MAX_SHOWN_CHARS = 50_000
"""Of the answer, and of each input."""
OF_STEPS = ("tool", "tool_input", "observation", "status", "elapsed", "index")


CLAIM_TIMES = {"minutes": int(CLAIM_SECONDS // 60)}


class EvaluatorScore(NamedTuple):
    """What an evaluator says of a run, and its label in the viewer's language."""

    entry: RunScoreEntry
    label: str


class OtherScores(NamedTuple):
    """What other people and evaluators say of a run."""

    people: list[Annotation]
    evaluators: list[EvaluatorScore]
    agree: bool | None
    """Whether all find it as good or as bad as the viewer; None if nobody says."""

    @property
    def brief(self) -> list[str]:
        """Each name with its score."""
        scores = [(one.entry.name, one.entry.value) for one in self.evaluators]
        people = [f"{get_person_name(one.by)} {one.mark}" for one in self.people]
        return people + [
            f"{name} {number_format(value, 2)}"
            for name, value in scores
            if value is not None
        ]


class LastDone(NamedTuple):
    """The run that the person scored last, with what others say of it."""

    annotation: Annotation
    others: OtherScores


@require_POST
def queue_next(request: HtmxRequest, pk: int) -> HttpResponse:
    """Reserve the next run and open it."""
    queue = get_usable_queue(request, pk)
    with_skipped = request.POST.get("skipped") == "1"
    return open_next(request, queue, with_skipped=with_skipped)


@require_http_methods(["GET", "POST"])
def queue_item(request: HtmxRequest, pk: int, item_pk: int) -> HttpResponse:
    """Show a run and its form; POST stores the scores and opens the next run."""
    queue = get_visible_queue(request, pk)
    item = get_item(queue, item_pk)
    mine = find_annotation(item, by=request.user)
    form = AnnotationForm(item, mine, request.POST or None)
    if form.is_valid():
        try:
            require_open(queue)
            submit_annotation(item, form.build_content(), by=request.user)
        except RunsError as refused:
            form.add_error(None, str(refused))
        else:
            return open_next(request, queue)
    context = build_item_context(request, item, mine, form)
    return render(request, "queues/item.html", context)


@require_POST
def queue_skip(request: HtmxRequest, pk: int, item_pk: int) -> HttpResponse:
    """Leave the run to others and open the next one."""
    queue = get_usable_queue(request, pk)
    try:
        skip_run(get_item(queue, item_pk), by=request.user)
    except AnnotationRefused as refused:
        messages.error(request, str(refused))
    return open_next(request, queue)


@require_POST
def queue_undo(request: HtmxRequest, pk: int) -> HttpResponse:
    """Open the last run again, as it was before it was scored or skipped."""
    queue = get_usable_queue(request, pk)
    try:
        item = undo_annotation(queue, by=request.user)
    except AnnotationRefused as refused:
        messages.error(request, str(refused))
        return open_next(request, queue)
    return redirect("queue-item", pk=pk, item_pk=item.pk)


@require_POST
def queue_keep(request: HtmxRequest, pk: int, item_pk: int) -> HttpResponse:
    """Keep the run reserved while its page is open, or say who has it."""
    item = get_item(get_usable_queue(request, pk), item_pk)
    problem = ""
    try:
        renew_claim(item, by=request.user)
    except AnnotationRefused as refused:
        problem = str(refused)
    mine = find_annotation(item, by=request.user)
    if not wants_part(request):
        return redirect("queue-item", pk=pk, item_pk=item_pk)
    context = {"item": item, "mine": mine, "problem": problem, **CLAIM_TIMES}
    return render(request, "queues/_reserved.html", context)


@require_POST
def queue_difference(request: HtmxRequest, pk: int, item_pk: int) -> HttpResponse:
    """Show what a correction that is being written changes in the answer."""
    item = get_item(get_visible_queue(request, pk), item_pk)
    if not wants_part(request):
        return redirect("queue-item", pk=pk, item_pk=item_pk)
    answer, text = item.run.answer, request.POST.get("correction", "")
    before = answer if isinstance(answer, str) else ""
    difference = mark_differences(before, text.replace("\r\n", "\n"))
    return render(request, "queues/_difference.html", {"difference": difference})


def get_usable_queue(request: HtmxRequest, pk: int) -> AnnotationQueue:
    """Return a queue that the user may work on; otherwise raise 404."""
    rows = AnnotationQueue.objects.usable_by(request.user).select_related("dataset")
    return get_object_or_404(rows, pk=pk)


def require_open(queue: AnnotationQueue) -> None:
    """Raise `AnnotationRefused` if the queue is archived."""
    if queue.archived_at is not None:
        raise AnnotationRefused(_("The queue is archived. Restore it to score runs."))


def get_item(queue: AnnotationQueue, item_pk: int) -> QueuedRun:
    """Return a run of the queue; otherwise raise 404."""
    rows = queue.items.select_related(
        "run__agent", "run__version", "queue__dataset", "run__owner"
    )
    return get_object_or_404(rows, pk=item_pk)


def open_next(
    request: HtmxRequest, queue: AnnotationQueue, *, with_skipped: bool = False
) -> HttpResponse:
    """Reserve the next run and redirect to it; without one, to the queue."""
    item = claim_next_run(queue, by=request.user, with_skipped=with_skipped)
    if item is None:
        messages.info(request, _("No runs are left for you in this queue."))
        return redirect("queue-detail", pk=queue.pk)
    return redirect("queue-item", pk=queue.pk, item_pk=item.pk)


def build_item_context(
    request: HtmxRequest, item: QueuedRun, mine: Annotation, form: AnnotationForm
) -> dict[str, Any]:
    run, queue = item.run, item.queue
    steps = AgentStep.objects.filter(run=run).only(*OF_STEPS).order_by("index")
    shown, count = list(steps[:MAX_SHOWN_STEPS]), steps.count()
    others = load_other_scores(item, mine)
    is_done = mine.state == Annotation.State.DONE
    is_claimed = mine.state == Annotation.State.CLAIMED
    problem = explain_no_room(queue, item, by=request.user) if is_claimed else ""
    return {
        "item": item,
        "queue": queue,
        "run": run,
        "mine": mine,
        "form": form,
        "marks": list(zip(form["mark"], queue.scale, strict=True)),
        "labels": [
            (box, LABEL_KEYS[place] if place < len(LABEL_KEYS) else "")
            for place, box in enumerate(form["labels"])
        ],
        "is_done": is_done,
        "is_reserved": is_claimed and mine.pk is not None and not problem,
        "problem": problem,
        "hides_scores": not is_done and bool(others.people or others.evaluators),
        "others": others if is_done else None,
        "progress": load_queue_progress(queue, by=request.user),
        "own_agreement": find_own_agreement(queue, request.user),
        "inputs": {
            name: str(text)[:MAX_SHOWN_CHARS] for name, text in run.inputs.items()
        },
        "earlier": build_earlier_messages(run),
        "steps": shown,
        "step_count": count,
        "more_steps": count - len(shown),
        "answer": render_answer_of(run),
        "is_text": isinstance(run.answer, str),
        "is_run_visible": Run.objects.visible_to(request.user)
        .filter(pk=run.pk)
        .exists(),
        "dataset": find_correction_dataset(queue),
        "may_undo": queue.archived_at is None,
        "last": find_last_done(queue, item, request),
        **CLAIM_TIMES,
    }


def render_answer_of(run: Run) -> str:
    """Return the answer as HTML; empty without one."""
    if run.answer in (None, ""):
        return ""
    if isinstance(run.answer, str):
        return render_markdown(run.answer[:MAX_SHOWN_CHARS])
    return render_json(run.answer)


def load_other_scores(item: QueuedRun, mine: Annotation) -> OtherScores:
    """Return what others say of a run; show it only to those who have scored it."""
    done = item.annotations.filter(state=Annotation.State.DONE)
    people = list(done.exclude(by=mine.by).select_related("by"))
    evaluators = [
        EvaluatorScore(
            one, get_score_label(one.revision, one.label) if one.revision else ""
        )
        for one in load_evaluator_scores(item.run)
        if not one.problem
    ]
    passing = item.queue.passing_mark
    verdicts = [(one.mark or 0) >= passing for one in people]
    verdicts += [one.entry.passed for one in evaluators if one.entry.passed is not None]
    is_good = (mine.mark or 0) >= passing
    agree = all(one == is_good for one in verdicts) if verdicts else None
    return OtherScores(people, evaluators, agree)


def find_last_done(
    queue: AnnotationQueue, item: QueuedRun, request: HtmxRequest
) -> LastDone | None:
    """Return the run that the user scored last, unless it is the one shown."""
    done = Annotation.objects.filter(item__queue=queue, state=Annotation.State.DONE)
    mine = done.filter(by=request.user).exclude(item=item)
    rows = mine.select_related("item__run", "item__queue", "by")
    last = rows.order_by("-changed_at", "-pk").first()
    return None if last is None else LastDone(last, load_other_scores(last.item, last))
