"""Deleting runs that are over, with all that belongs to them."""

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db import transaction

from runs.models import Run, RunCard
from runs.models.runs import OVER
from runs.services.tally_runs import tally_cards
from tools.audit.write import write_entry


def delete_runs(runs: Iterable[Run], *, by: User) -> int:
    """Delete those that are over and return how many; unfinished ones stay.

    Runs that another run asked for go with it, never alone: its record would lack the
    answer's origin. Forks stay, they have copies of all they need.
    """
    wanted = [run.pk for run in runs]
    with transaction.atomic():
        found = _locked(pk__in=wanted, status__in=OVER, parent_step=None)
        family = level = found
        while level:
            level = _locked(parent_step__run__in=level)
            family = family + level
        cards = RunCard.objects.filter(run__in=family).select_related("run")
        tally_cards([], removed=list(cards))
        for run in found:
            Run.objects.filter(pk=run.pk).delete()
            write_entry("deleted", "run", f"run {run.pk}", number=run.pk, by=by)
    return len(found)


def _locked(**which: object) -> list[Run]:
    """Return runs that nobody files meanwhile, in the order in which all take them."""
    rows = Run.objects.select_for_update(of=("self",)).filter(**which)
    return list(rows.order_by("pk"))
