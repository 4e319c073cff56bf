"""The runs that a page adds somewhere, as its address or its form names them."""

from django.contrib import messages
from django.utils.functional import Promise
from django.utils.translation import ngettext_lazy

from runs.htmx import HtmxRequest
from runs.models import Run
from runs.whole_number import parse_whole_number

MAX_GIVEN_RUNS = 500
UNFINISHED = ngettext_lazy(
    "%(count)s run not added: it has not ended.",
    "%(count)s runs not added: they have not ended.",
    "count",
)


def load_selected_runs(request: HtmxRequest) -> list[Run]:
    """Return the runs of the request that the user sees, the oldest first."""
    given = request.POST if request.method == "POST" else request.GET
    keys = {parse_whole_number(text) for text in given.getlist("run")}
    known = [key for key in keys if key is not None][:MAX_GIVEN_RUNS]
    visible = Run.objects.visible_to(request.user).filter(pk__in=known)
    return list(visible.select_related("agent").order_by("pk"))


def report_count(request: HtmxRequest, level: int, text: Promise, count: int) -> None:
    """Show `text`, which has a plural form, unless it is about none."""
    if count:
        messages.add_message(request, level, text % {"count": count})
