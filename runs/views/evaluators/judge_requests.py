"""What a judge asked a model about a run, and what the model replied."""

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest
from runs.models import Evaluator, EvaluatorRevision, Run


@require_GET
def run_judge(request: HtmxRequest, pk: int, revision_pk: int) -> HttpResponse:
    """Show the latest requests; 404 unless the user sees both run and evaluator."""
    run = get_object_or_404(Run.objects.visible_to(request.user), pk=pk)
    visible = Evaluator.objects.visible_to(request.user)
    rows = EvaluatorRevision.objects.filter(evaluator__in=visible)
    revision = get_object_or_404(rows.select_related("evaluator"), pk=revision_pk)
    exchanges = list(run.judge_requests.filter(revision=revision))
    if not exchanges:
        raise Http404
    context = {
        "run": run,
        "revision": revision,
        "evaluator": revision.evaluator,
        "exchanges": exchanges,
    }
    return render(request, "evaluators/judge_requests.html", context)
