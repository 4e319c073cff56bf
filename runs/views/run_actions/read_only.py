"""A run as its approvers read it: what happened, without the actions of its owner."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest
from runs.models import Run
from runs.views.run_actions.document import WINDOW, build_run_document
from runs.whole_number import parse_whole_number


@require_GET
@never_cache
def run_read_only(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the run to an approver; whoever may see all of it gets the run page."""
    if Run.objects.visible_to(request.user).filter(pk=pk).exists():
        return redirect("run-detail", pk)
    run = get_object_or_404(Run.objects.asking_approver(request.user), pk=pk)
    after = parse_whole_number(request.GET.get("after", "")) or 0
    document = build_run_document(run, after=after)
    context = {"document": document, "before": max(after - WINDOW, 0), "run": run}
    return render(request, "runs/read_only.html", context)
