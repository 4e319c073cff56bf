"""Rating, tags and comments of a run."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from runs.htmx import HtmxRequest, wants_part
from runs.models import Run, RunComment
from runs.services.runs.feedback import (
    MAX_COMMENT_CHARACTERS,
    MAX_TAG_CHARACTERS,
    FeedbackRefused,
    add_comment,
    add_tag,
    delete_comment,
    rate_run,
    remove_tag,
)


@require_GET
def run_feedback(request: HtmxRequest, pk: int) -> HttpResponse:
    """Render what people think of the run; without htmx, its page."""
    run = get_object_or_404(Run.objects.visible_to(request.user), pk=pk)
    return respond(request, run)


@require_POST
def run_rate(request: HtmxRequest, pk: int) -> HttpResponse:
    """Rate the run as good or bad; the same rating again removes it."""
    run = get_object_or_404(Run.objects.visible_to(request.user), pk=pk)
    rate_run(run, Run.RATINGS.get(request.POST.get("rating", "")))
    return respond(request, run)


@require_POST
def run_tag(request: HtmxRequest, pk: int) -> HttpResponse:
    """Add the tag `add`, or remove the tag `remove`."""
    run = get_object_or_404(Run.objects.visible_to(request.user), pk=pk)
    if "remove" in request.POST:
        remove_tag(run, request.POST["remove"])
        return respond(request, run)
    try:
        add_tag(run, request.POST.get("add", ""))
    except FeedbackRefused as refused:
        return respond(request, run, tag_error=str(refused))
    return respond(request, run)


@require_POST
def run_comment(request: HtmxRequest, pk: int) -> HttpResponse:
    """Add a comment; one that is refused stays in its field."""
    run = get_object_or_404(Run.objects.visible_to(request.user), pk=pk)
    text = request.POST.get("text", "")
    try:
        add_comment(run, text, by=request.user)
    except FeedbackRefused as refused:
        return respond(request, run, comment_error=str(refused), typed=text)
    return respond(request, run)


@require_POST
def run_comment_delete(request: HtmxRequest, pk: int, comment_pk: int) -> HttpResponse:
    """Delete a comment."""
    run = get_object_or_404(Run.objects.visible_to(request.user), pk=pk)
    comment = get_object_or_404(RunComment, pk=comment_pk, run=run)
    try:
        delete_comment(comment, by=request.user)
    except FeedbackRefused as refused:
        return respond(request, run, comment_error=str(refused))
    return respond(request, run)


def respond(request: HtmxRequest, run: Run, **entered: str) -> HttpResponse:
    """Render the part; without htmx return to the run, or show what was refused."""
    context = feedback_context(run)
    context["feedback"] |= entered
    if wants_part(request):
        return render(request, "runs/_feedback.html", context)
    if entered:
        return render(request, "runs/feedback.html", context)
    return redirect(f"{reverse('run-detail', args=[run.pk])}?step=0#run-feedback")


def feedback_context(run: Run) -> dict[str, Any]:
    """Return what `runs/_feedback.html` shows."""
    feedback = {
        "tags": [tag.name for tag in run.tags.all()],
        "comments": list(run.comments.select_related("author")),
        "max_tag": MAX_TAG_CHARACTERS,
        "max_comment": MAX_COMMENT_CHARACTERS,
    }
    return {"run": run, "feedback": feedback}
