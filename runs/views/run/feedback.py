"""Rating, scores, tags and comments of a run."""

from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from runs.htmx import HtmxRequest, get_return_url, wants_part
from runs.models import Run, RunComment
from runs.services.evaluation.judge_requests import list_judges_with_requests
from runs.services.evaluation.run_scores import RunScoreEntry, load_run_scores
from runs.services.runs.feedback import (
    MAX_COMMENT_CHARACTERS,
    MAX_TAG_CHARACTERS,
    FeedbackRefused,
    add_comment,
    add_tag,
    delete_comment,
    dump_comment,
    rate_run,
    remove_tag,
    restore_comment,
)
from runs.ui.evaluation.evaluator_labels import get_score_label, get_score_source_label
from runs.ui.frame.undo import add_message_with_undo
from runs.ui.list_of_run import keep_list


@require_GET
def run_feedback(request: HtmxRequest, pk: int) -> HttpResponse:
    """Render what people think of the run; without htmx, its page."""
    run = get_object_or_404(Run.objects.visible_to(request.user), pk=pk)
    return respond_with_feedback(request, run)


@require_POST
def run_rate(request: HtmxRequest, pk: int) -> HttpResponse:
    """Rate the run as good or bad; the same rating again removes it.

    With `here`, such as the page of an experiment, return to that address.
    """
    run = get_object_or_404(Run.objects.visible_to(request.user), pk=pk)
    rate_run(run, Run.RATINGS.get(request.POST.get("rating", "")))
    if here := get_return_url(request, ""):
        return redirect(here)
    return respond_with_feedback(request, run)


@require_POST
def run_tag(request: HtmxRequest, pk: int) -> HttpResponse:
    """Add the tag `add`, or remove the tag `remove`."""
    run = get_object_or_404(Run.objects.visible_to(request.user), pk=pk)
    if "remove" in request.POST:
        remove_tag(run, request.POST["remove"])
        return respond_with_feedback(request, run)
    try:
        add_tag(run, request.POST.get("add", ""))
    except FeedbackRefused as refused:
        return respond_with_feedback(request, run, tag_error=str(refused))
    return respond_with_feedback(request, run)


@require_POST
def run_comment(request: HtmxRequest, pk: int) -> HttpResponse:
    """Add a comment, or `restore` a deleted one; one that is refused stays."""
    run = get_object_or_404(Run.objects.visible_to(request.user), pk=pk)
    text = request.POST.get("text", "")
    try:
        if "restore" in request.POST:
            restore_comment(run, request.POST["restore"])
            return respond_with_feedback(request, run)
        add_comment(run, text, by=request.user)
    except FeedbackRefused as refused:
        return respond_with_feedback(
            request, run, comment_error=str(refused), typed=text
        )
    return respond_with_feedback(request, run)


@require_POST
def run_comment_delete(request: HtmxRequest, pk: int, comment_pk: int) -> HttpResponse:
    run = get_object_or_404(Run.objects.visible_to(request.user), pk=pk)
    comment = get_object_or_404(RunComment, pk=comment_pk, run=run)
    try:
        delete_comment(comment, by=request.user)
    except FeedbackRefused as refused:
        return respond_with_feedback(request, run, comment_error=str(refused))
    deleted = dump_comment(comment)
    if wants_part(request):
        return respond_with_feedback(request, run, deleted=deleted)
    url = reverse("run-comment", args=[pk])
    add_message_with_undo(request, _("Comment deleted."), url, restore=deleted)
    return respond_with_feedback(request, run)


def respond_with_feedback(
    request: HtmxRequest, run: Run, **entered: str
) -> HttpResponse:
    """Render the part; without htmx return to the run, or show what was refused."""
    context = feedback_context(run, request.user)
    context["feedback"] |= entered
    if wants_part(request):
        return render(request, "runs/_feedback.html", context)
    if entered:
        return render(request, "runs/feedback.html", context)
    url = keep_list(request, f"{reverse('run-detail', args=[run.pk])}?step=0")
    return redirect(f"{url}#run-feedback")


def feedback_context(run: Run, viewer: User) -> dict[str, Any]:
    feedback = {
        "tags": [tag.name for tag in run.tags.all()],
        "comments": list(run.comments.select_related("author")),
        "scores": list_score_lines(run, viewer),
        "max_tag": MAX_TAG_CHARACTERS,
        "max_comment": MAX_COMMENT_CHARACTERS,
    }
    return {"run": run, "feedback": feedback}


class ScoreLine(NamedTuple):
    """A score with its texts."""

    entry: RunScoreEntry
    source: str
    label: str
    judge: int | None
    """The revision of a judge whose requests the viewer may read."""


def list_score_lines(run: Run, viewer: User) -> list[ScoreLine]:
    judges = list_judges_with_requests(run, by=viewer)
    return [
        ScoreLine(
            one,
            get_score_source_label(one.source),
            get_score_label(one.revision, one.label) if one.revision else one.label,
            one.revision.pk if one.revision and one.revision.pk in judges else None,
        )
        for one in load_run_scores(run, viewer=viewer)
    ]
