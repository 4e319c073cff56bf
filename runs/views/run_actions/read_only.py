"""A run as its approvers read it: what happened, without the actions of its owner."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest
from runs.models import Run
from runs.views.run_actions.document import build_document_page


@require_GET
@never_cache
def run_read_only(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show the run to an approver; whoever may see all of it gets the run page."""
    if Run.objects.visible_to(request.user).filter(pk=pk).exists():
        return redirect("run-detail", pk)
    run = get_object_or_404(Run.objects.asking_approver(request.user), pk=pk)
    context = {"run": run, **build_document_page(run, request.GET)}
    return render(request, "runs/read_only.html", context)
