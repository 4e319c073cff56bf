"""Stop and resume an experiment."""

from decimal import Decimal

from django.contrib.auth.models import User
from django.db import transaction

from runs.models import Experiment
from tools.audit.write import write_entry


def stop_experiment(experiment: Experiment, *, by: User) -> bool:
    """Start no more runs; False if it was not running."""
    rows = Experiment.objects.filter(pk=experiment.pk, status=Experiment.Status.RUNNING)
    with transaction.atomic():
        stopped = rows.update(status=Experiment.Status.STOPPED, problem="")
        if stopped:
            write_entry(
                "canceled", "experiment", experiment.name, number=experiment.pk, by=by
            )
    return bool(stopped)


def resume_experiment(
    experiment: Experiment, *, by: User, budget: Decimal | None
) -> bool:
    """Go on with what is missing; False if it is not stopped."""
    rows = Experiment.objects.filter(pk=experiment.pk, status=Experiment.Status.STOPPED)
    with transaction.atomic():
        resumed = rows.update(
            status=Experiment.Status.RUNNING, problem="", budget=budget
        )
        if resumed:
            write_entry(
                "resumed", "experiment", experiment.name, number=experiment.pk, by=by
            )
    return bool(resumed)
