"""A large experiment that has ended, without the work of executing its runs."""

from decimal import Decimal

from django.db import connection
from django.utils import timezone

from runs.models import (
    AgentStep,
    Example,
    Experiment,
    ExperimentRun,
    ModelCall,
    Run,
    Score,
)
from runs.services.experiments.figures import compute_figures
from tests.bench.loads.run_page_load import open_session
from tests.makers.experiments import make_experiment

TOOLS = ("search", "read_page", "add")
STEPS_PER_RUN = 3


def prepare(examples: int) -> tuple[int, str]:
    """Make an experiment by two candidates; return it and its owner's session."""
    experiment = make_experiment(examples, candidates=2)
    candidates = list(experiment.candidates.all())
    rows = Example.objects.filter(dataset=experiment.dataset).order_by("number")
    cells = [
        ExperimentRun(
            experiment=experiment,
            example=example,
            candidate=candidate,
            place=2 * n + candidate.position,
        )
        for n, example in enumerate(rows)
        for candidate in candidates
    ]
    runs = Run.objects.bulk_create(map(make_ended_run, cells), batch_size=2_000)
    for cell, run in zip(cells, runs, strict=True):
        end_cell(cell, run)
    ExperimentRun.objects.bulk_create(cells, batch_size=2_000)
    add_steps(cells)
    add_scores(experiment, cells)
    now = timezone.now()
    figures = compute_figures(experiment, at=now.isoformat()).model_dump(mode="json")
    Experiment.objects.filter(pk=experiment.pk).update(
        status=Experiment.Status.DONE,
        created_runs=len(cells),
        ended_at=now,
        figures=figures,
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    cookie = open_session(experiment.owner)
    connection.close()
    return experiment.pk, cookie


def make_ended_run(cell: ExperimentRun) -> Run:
    """Return a run of the cell, not stored yet; one of 100 has failed."""
    now = timezone.now()
    has_failed = cell.place % 100 == 0
    return Run(
        owner=cell.experiment.owner,
        agent=cell.candidate.agent,
        spec=cell.candidate.spec,
        inputs={"input": "Add up."},
        source=Run.Source.EXPERIMENT,
        queue=Run.Queue.BULK,
        is_test=True,
        status="failed" if has_failed else "succeeded",
        error_code="model_refused" if has_failed else "",
        output="" if has_failed else "The sum is known.",
        queued_at=now,
        started_at=now,
        ended_at=now,
    )


def end_cell(cell: ExperimentRun, run: Run) -> None:
    """Set what scoring the run would have stored: some got worse, others better."""
    has_failed = run.status == "failed"
    number = cell.place // 2
    is_good = number % 10 != cell.candidate.position
    cell.run, cell.state, cell.run_status = run, "done", run.status
    cell.passed = None if has_failed else is_good
    cell.score = None if has_failed else float(is_good)
    cell.cost = Decimal(cell.place % 97) / 1_000
    cell.seconds = cell.place % 89 / 10


def add_steps(cells: list[ExperimentRun]) -> None:
    """Give each run steps; every 20th run of the second candidate lacks a tool."""
    calls = [
        ModelCall(
            run=cell.run,
            number=0,
            at_index=0,
            round=1,
            reply={"text": ""},
            digest="0" * 64,
            started_at=timezone.now(),
            elapsed=0.1,
            created_seq=1,
            changed_seq=1,
        )
        for cell in cells
    ]
    ModelCall.objects.bulk_create(calls, batch_size=2_000)
    rows = [
        AgentStep(
            run=cell.run,
            model_call=call,
            index=n,
            round=1,
            tool=TOOLS[n],
            created_seq=1,
            changed_seq=1,
        )
        for cell, call in zip(cells, calls, strict=True)
        for n in range(STEPS_PER_RUN)
        if n or cell.place % 40 != 1
    ]
    AgentStep.objects.bulk_create(rows, batch_size=2_000)


def add_scores(experiment: Experiment, cells: list[ExperimentRun]) -> None:
    revision = experiment.evaluators.get()
    rows = [
        Score(cell=cell, revision=revision, value=cell.score, passed=cell.passed)
        for cell in cells
    ]
    Score.objects.bulk_create(rows, batch_size=2_000)
