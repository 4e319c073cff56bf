"""Claim experiments: one process at a time advances each of them."""

from collections.abc import Iterator
from uuid import UUID

from django.conf import settings
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from runs.models import Experiment, ExperimentRun
from runs.store.database_clock import db_time_from_now


def claim_experiments(holder: UUID) -> Iterator[Experiment]:
    """Claim each experiment with work that no other live process has, the oldest first.

    Each is claimed when its turn comes, and stays with `holder` as long as it renews
    the lease.
    """
    rows = find_open_experiments()
    free = build_free_condition() | Q(lease_holder=holder)
    lease = db_time_from_now(settings.LEASE_SECONDS)
    for pk in list(rows.order_by("pk").values_list("pk", flat=True)):
        mine = rows.filter(free, pk=pk)
        if mine.update(lease_until=lease, lease_holder=holder):
            yield Experiment.objects.select_related(
                "owner", "dataset", "bisection"
            ).get(pk=pk)


def has_free_experiments() -> bool:
    """Whether there is one with work that no live process has."""
    return find_open_experiments().filter(build_free_condition()).exists()


def find_open_experiments() -> QuerySet[Experiment]:
    """Return those that run, or have unfinished runs or old figures."""
    started = ExperimentRun.objects.filter(state=ExperimentRun.State.STARTED)
    return Experiment.objects.filter(
        Q(status=Experiment.Status.RUNNING)
        | Q(needs_figures=True)
        | Q(pk__in=started.values("experiment"))
    )


def build_free_condition() -> Q:
    return Q(lease_until=None) | Q(lease_until__lt=Now())


def renew_lease(experiment: Experiment) -> bool:
    """Keep other processes away for one lease; False if one has it already."""
    mine = Experiment.objects.filter(
        pk=experiment.pk, lease_holder=experiment.lease_holder
    )
    return bool(mine.update(lease_until=db_time_from_now(settings.LEASE_SECONDS)))


def renew_leases(holder: UUID) -> None:
    """Keep other processes away from all that `holder` has."""
    held = Experiment.objects.filter(lease_holder=holder)
    held.update(lease_until=db_time_from_now(settings.LEASE_SECONDS))


def release_experiments(holder: UUID) -> None:
    """Let others claim at once what `holder` has."""
    held = Experiment.objects.filter(lease_holder=holder)
    held.update(lease_until=None, lease_holder=None)
