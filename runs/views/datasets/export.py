"""Download the examples of a dataset."""

from django.http import HttpResponse, StreamingHttpResponse
from django.views.decorators.http import require_GET

from runs.htmx import HtmxRequest
from runs.services.datasets.export import iter_csv_export, iter_jsonl_export
from runs.views.datasets.page import find_shown_version, get_visible_dataset


@require_GET
def dataset_export(
    request: HtmxRequest, pk: int
) -> HttpResponse | StreamingHttpResponse:
    """Stream the shown version as CSV, or with `as=jsonl` as JSONL."""
    dataset = get_visible_dataset(request, pk)
    version = find_shown_version(request, dataset)
    kind = "jsonl" if request.GET.get("as") == "jsonl" else "csv"
    lines = iter_jsonl_export if kind == "jsonl" else iter_csv_export
    media_type = "application/jsonl" if kind == "jsonl" else "text/csv"
    answer = StreamingHttpResponse(
        lines(dataset, version), content_type=f"{media_type}; charset=utf-8"
    )
    number = version or dataset.version
    name = f"{dataset.slug}-v{number}.{kind}"
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer
