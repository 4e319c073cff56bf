"""Experiments for tests: makers, the turn of a worker, and the end of its runs."""

from typing import Any
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.utils import timezone

from runs.models import (
    Dataset,
    Evaluator,
    EvaluatorRevision,
    Experiment,
    ExperimentRun,
    Run,
)
from runs.services.datasets.content import ExampleContent
from runs.services.datasets.edit import add_examples
from runs.services.datasets.save_version import save_dataset_version
from runs.services.evaluators.save import save_evaluator
from runs.services.experiments.advance import advance_experiment
from runs.services.experiments.claim import claim_experiments
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    create_experiment,
)
from tests.make import make_agent, make_dataset, make_user

HOLDER = uuid4()


def make_examples(owner: User, count: int, **more: str) -> Dataset:
    dataset = make_dataset(owner)
    contents = [
        ExampleContent(
            inputs={"input": f"question {n}", **more},
            expected_answer="yes",
            tags=("t",),
        )
        for n in range(count)
    ]
    add_examples(dataset, contents, by=owner)
    save_dataset_version(dataset, seen=0, by=owner)
    return Dataset.objects.get(pk=dataset.pk)


def make_revision(owner: User, **fields: str) -> EvaluatorRevision:
    defaults = {"name": "Contains", "kind": "contains", "config": {}}
    evaluator = Evaluator(owner=owner, **{**defaults, **fields})
    return save_evaluator(evaluator, by=owner).revisions.get()


def make_experiment(count: int = 3, candidates: int = 1, **plan: Any) -> Experiment:
    """Make a running experiment of an owner of its own."""
    owner = make_user()
    dataset = make_examples(owner, count)
    choices = [CandidateChoice(make_agent(owner)) for _ in range(candidates)]
    return create_experiment(
        dataset,
        choices,
        [make_revision(owner)],
        by=owner,
        plan=ExperimentPlan(**plan),
    )


def claim_experiment(holder: UUID = HOLDER) -> Experiment | None:
    """Claim the oldest experiment with work that no other process has."""
    return next(claim_experiments(holder), None)


def turn(experiment: Experiment) -> Experiment:
    """Do a turn as a worker does, and return the experiment as it is then."""
    claimed = claim_experiment()
    assert claimed is not None
    advance_experiment(claimed)
    return Experiment.objects.get(pk=experiment.pk)


def end_runs(experiment: Experiment, output: str = "yes", **more) -> int:
    """End the unfinished runs, as workers do."""
    now = timezone.now()
    fields = {"status": "succeeded", "output": output, "started_at": now}
    rows = Run.objects.filter(experiment_run__experiment=experiment, status="queued")
    pks = list(rows.values_list("pk", flat=True))
    return Run.objects.filter(pk__in=pks).update(**{**fields, "ended_at": now, **more})


def end_run(cell: ExperimentRun, output: str) -> None:
    """End the run of one cell."""
    now = timezone.now()
    Run.objects.filter(pk=cell.run_id).update(
        status="succeeded", output=output, started_at=now, ended_at=now
    )


def finish_bisection(
    experiment: Experiment, *, first_bad: int, first_good: int = 1
) -> Experiment:
    """Do the turns of a worker.

    Versions from `first_bad` on, and those before `first_good`, answer wrongly.
    """
    while claim_experiment() is not None:
        started = experiment.cells.filter(state="started")
        for cell in started.select_related("candidate__version"):
            version = cell.candidate.version
            is_good = version and first_good <= version.number < first_bad
            end_run(cell, "yes" if is_good else "no")
        turn(experiment)
    return Experiment.objects.get(pk=experiment.pk)
