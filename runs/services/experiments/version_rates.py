"""How the versions of an agent have done in experiments with a dataset."""

from typing import NamedTuple

from django.contrib.auth.models import User
from django.db.models import F

from runs.models import Agent, Dataset, Experiment, ExperimentCandidate
from runs.services.experiments.figures import load_stored_figures

MAX_EXPERIMENTS = 100
"""The newest of an agent, of which rates are shown."""


class VersionRate(NamedTuple):
    """The pass rate of a version in its newest experiment.

    As for a gate, a run that failed or was not scored has not passed.
    """

    number: int
    rate: float
    passed: int
    runs: int
    experiment: Experiment


class DatasetRates(NamedTuple):
    """A dataset with the versions that were run on it, the oldest first."""

    dataset: Dataset
    versions: list[VersionRate]


def load_version_rates(agent: Agent, user: User) -> list[DatasetRates]:
    """Return the rates by dataset, that of the newest experiment first.

    A candidate with changes is not the version. Only experiments count that have
    ended and that the user sees.
    """
    experiments = Experiment.objects.visible_to(user).filter(
        status=Experiment.Status.DONE, bisection=None, candidates__agent=agent
    )
    newest = experiments.distinct().order_by("-pk").select_related("dataset")
    found: dict[Dataset, dict[int, VersionRate]] = {}
    shown = list(newest[:MAX_EXPERIMENTS])
    candidates = load_version_candidates(agent, shown)
    for experiment in shown:
        rates = found.setdefault(experiment.dataset, {})
        for figures in load_stored_figures(experiment).candidates:
            number = candidates.get(figures.candidate)
            if number is not None and figures.decided:
                rate = figures.passed / figures.total
                row = VersionRate(
                    number, rate, figures.passed, figures.total, experiment
                )
                rates.setdefault(number, row)
    return [
        DatasetRates(dataset, [rates[number] for number in sorted(rates)])
        for dataset, rates in found.items()
    ]


def load_version_candidates(
    agent: Agent, experiments: list[Experiment]
) -> dict[int, int]:
    """Return the numbers of the versions that are candidates as they are."""
    rows = ExperimentCandidate.objects.filter(
        experiment__in=experiments, agent=agent, spec=F("version__spec")
    )
    return dict(rows.values_list("pk", "version__number"))
