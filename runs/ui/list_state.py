"""What idle parts send with a poll, so that they are rendered only after a change."""

import time

from django.contrib.auth.models import User
from django.db.models import Count, QuerySet
from django.http import HttpRequest

from runs.models import Run

LIST_STATE_HEADER = "X-List-State"
REFRESH_SECONDS = 60
"""After so long a list is rendered anyway: runs are rated, deleted, or grow old."""


def get_list_state(visible: QuerySet[Run], viewer: User, *more: int) -> str:
    """Return the newest run, how many there are in each status, and other numbers.

    Counted are the runs that have not ended, and those that ended a moment ago and that
    a search does not find yet. Two small index reads, however long the list is.
    """
    newest = visible.order_by("-pk").values_list("pk", flat=True).first()
    recent = visible.filter(indexed=False).order_by("status")
    counts = recent.values_list("status").annotate(Count("pk"))
    parts = [f"{status}{count}" for status, count in counts]
    # Lists of different people are rendered at different times.
    at = int(time.time() + 7 * viewer.pk) // REFRESH_SECONDS
    return "-".join([str(newest or 0), *parts, *map(str, more), str(at)])


def get_run_state(run: Run) -> str:
    """Return what changes when an ended run is resumed."""
    return f"{run.status}-{run.seq}"


def knows_list_state(request: HttpRequest, state: str) -> bool:
    """Whether the page that polls shows this state already."""
    return request.headers.get(LIST_STATE_HEADER) == state
