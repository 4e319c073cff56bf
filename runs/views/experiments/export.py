"""Download the runs of an experiment."""

from django.http import StreamingHttpResponse
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest
from runs.views.experiments.page import get_visible_experiment
from runs.views.experiments.results import iter_csv_results, iter_jsonl_results


@require_GET
def experiment_export(request: HtmxRequest, pk: int) -> StreamingHttpResponse:
    """Stream the runs as CSV, or with `as=jsonl` as JSONL."""
    experiment = get_visible_experiment(request, pk)
    kind = "jsonl" if request.GET.get("as") == "jsonl" else "csv"
    lines = iter_jsonl_results if kind == "jsonl" else iter_csv_results
    media_type = "application/jsonl" if kind == "jsonl" else "text/csv"
    response = StreamingHttpResponse(
        lines(experiment), content_type=f"{media_type}; charset=utf-8"
    )
    name = f"experiment-{experiment.pk}.{kind}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
