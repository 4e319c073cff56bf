"""What an idle list sends with a poll, so that it is rendered only after a change."""

from django.db.models import QuerySet
from django.http import HttpRequest

from runs.models import Run
from runs.models.runs import UNFINISHED_STATUSES

LIST_STATE_HEADER = "X-List-State"


def get_list_state(visible: QuerySet[Run], *more: int) -> str:
    """Return the newest run, how many have not ended, and other numbers to watch.

    Two small index reads, however long the list is.
    """
    newest = visible.order_by("-pk").values_list("pk", flat=True).first()
    unfinished = visible.filter(status__in=UNFINISHED_STATUSES).count()
    return "-".join(str(one) for one in (newest or 0, unfinished, *more))


def knows_list_state(request: HttpRequest, state: str) -> bool:
    """Whether the page that polls shows this state already."""
    return request.headers.get(LIST_STATE_HEADER) == state
