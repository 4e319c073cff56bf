"""The runs that are active and those that ended last."""

from typing import NamedTuple

from django.db.models import Case, Q, QuerySet, When
from django.utils.translation import gettext as _

from runs.models import Run
from runs.models.runs import UNFINISHED_STATUSES
from runs.ui.format import number
from runs.ui.run_list_rows import RunRow, annotate_current_tool, build_run_rows

MAX_ROWS = 8
MAX_ACTIVE_ROWS = 5
"""The others are for runs that have ended."""
ACTIVE_STATUSES = ["running", "queued", "waiting"]
"""Statuses of runs that continue without a person."""

UNSEEN_COLUMNS = (
    *("inputs", "output", "output_log", "turn_ids"),
    *("fork_edits", "earlier_inputs"),
)
"""Long columns of runs that the card does not show."""


class RecentRuns(NamedTuple):
    """The card with runs."""

    rows: list[RunRow]
    counts: list[str]
    """How many runs have each active status."""

    @property
    def is_active(self) -> bool:
        return any(not row.run.is_over for row in self.rows)


def list_recent_runs(runs: QuerySet[Run]) -> RecentRuns:
    """Return active runs, then ended ones, without those of other runs."""
    asked = runs.filter(parent_step=None)
    active = asked.filter(status__in=ACTIVE_STATUSES)
    now = _list_keys(active.order_by(_order_running_first(), "-pk"), MAX_ACTIVE_ROWS)
    ended = asked.exclude(Q(status__in=UNFINISHED_STATUSES) | Q(pk__in=now))
    keys = now + _list_keys(ended.order_by("-pk"), MAX_ROWS - len(now))
    # All columns in one query: planning its joins takes longer than executing it.
    found = annotate_current_tool(runs).defer(*UNSEEN_COLUMNS).in_bulk(keys)
    rows = build_run_rows(found[key] for key in keys if key in found)
    return RecentRuns(rows, _count_active_runs(runs))


def _list_keys(runs: QuerySet[Run], most: int) -> list[int]:
    return list(runs.values_list("pk", flat=True)[:most])


def _count_active_runs(runs: QuerySet[Run]) -> list[str]:
    """Say how many runs have each active status, leaving out those without runs."""
    texts = {
        "running": _("%(count)s running"),
        "queued": _("%(count)s queued"),
        "waiting": _("%(count)s waiting"),
    }
    active = runs.filter(status__in=ACTIVE_STATUSES, parent_step=None)
    statuses = list(active.values_list("status", flat=True))
    return [
        text % {"count": number(statuses.count(status))}
        for status, text in texts.items()
        if status in statuses
    ]


def _order_running_first() -> Case:
    """Order running runs first, then waiting, then queued ones."""
    places = {"running": 0, "waiting": 1}
    whens = [When(status=status, then=place) for status, place in places.items()]
    return Case(*whens, default=2)
