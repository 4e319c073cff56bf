"""Stop and resume an experiment, and note what it has lost."""

from collections.abc import Sequence
from decimal import Decimal

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from runs.evaluation.combine import combine_scores
from runs.models import Evaluator, Experiment, ExperimentRun, Run, Score
from runs.services.experiments.score_cells import NOT_JUDGED
from runs.services.runs.end import request_cancel
from tools.audit.write import write_entry
from tools.text.translatable import translatable

COMBINED_AT_ONCE = 2_000
EVALUATOR_DELETED = translatable(
    "An evaluator was deleted with its owner's account, and so were its scores. The "
    "other evaluators continue."
)


def stop_experiment(experiment: Experiment, *, by: User) -> bool:
    """Start no more runs, cancel those without a model call; False if not running.

    Runs that have called their model are finished and scored.
    """
    rows = Experiment.objects.filter(pk=experiment.pk, status=Experiment.Status.RUNNING)
    with transaction.atomic():
        stopped = rows.update(
            status=Experiment.Status.STOPPED, problem="", needs_figures=True
        )
        if stopped:
            withdraw_runs(experiment, by=by)
            write_entry(
                "canceled", "experiment", experiment.name, number=experiment.pk, by=by
            )
    return bool(stopped)


def withdraw_runs(experiment: Experiment, *, by: User) -> None:
    """Cancel the runs that no worker has and that have cost nothing, to start later.

    Others would wait on, for a slot or for a provider that is unavailable.
    """
    cells = experiment.cells.filter(state=ExperimentRun.State.STARTED)
    idle = Run.objects.filter(
        experiment_run__in=cells,
        status__in=(Run.Status.QUEUED, Run.Status.WAITING),
        model_calls=0,
    )
    runs = list(idle.select_for_update(of=("self",)).order_by("pk"))
    cells.filter(run__in=runs).update(state=ExperimentRun.State.WAITING, run=None)
    for run in runs:
        request_cancel(run, by=by.pk)


def resume_experiment(
    experiment: Experiment, *, by: User, budget: Decimal | None
) -> bool:
    """Resume with what is missing; False if it is not stopped."""
    rows = Experiment.objects.filter(pk=experiment.pk, status=Experiment.Status.STOPPED)
    with transaction.atomic():
        resumed = rows.update(
            status=Experiment.Status.RUNNING, problem="", budget=budget
        )
        if resumed:
            reopen_unjudged_cells(experiment)
            write_entry(
                "resumed", "experiment", experiment.name, number=experiment.pk, by=by
            )
    return bool(resumed)


def reopen_unjudged_cells(experiment: Experiment) -> bool:
    """Let workers score the runs that no judge was asked about; whether there are any.

    Either all judges were asked about a run, or none, so no verdict is discarded.
    """
    with transaction.atomic():
        reopened = find_unjudged_cells(experiment).update(
            state=ExperimentRun.State.STARTED
        )
        if reopened:
            # only those of reopened runs: others have none before they are done
            started = Q(cell__state=ExperimentRun.State.STARTED)
            Score.objects.filter(started, cell__experiment=experiment).delete()
    return bool(reopened)


def find_unjudged_cells(experiment: Experiment) -> QuerySet[ExperimentRun]:
    """Return the runs that no judge was asked about, because of the budget."""
    unjudged = Score.objects.filter(cell=OuterRef("pk"), problem=NOT_JUDGED)
    done = experiment.cells.filter(state=ExperimentRun.State.DONE)
    return done.filter(Exists(unjudged))


def score_again(cell: ExperimentRun) -> bool:
    """Discard the scores of a run, which workers then score; False if it has none yet.

    A judge that replied with prose, or could not be reached, may score it this time.
    What they have cost still counts.
    """
    done = ExperimentRun.objects.filter(pk=cell.pk, state=ExperimentRun.State.DONE)
    with transaction.atomic():
        is_changed = done.filter(run__isnull=False).update(
            state=ExperimentRun.State.STARTED
        )
        if is_changed:
            Score.objects.filter(cell=cell).delete()
            experiment = Experiment.objects.filter(pk=cell.experiment_id)
            experiment.update(needs_figures=True)
            # A search continues from what the run says this time.
            experiment.filter(
                bisection__isnull=False, status=Experiment.Status.DONE
            ).update(status=Experiment.Status.RUNNING, ended_at=None)
    return bool(is_changed)


def note_deleted_evaluators(evaluators: QuerySet[Evaluator]) -> list[int]:
    """Let experiments say that they are about to lose some of their evaluators.

    Without any left, the next turn of a running one stops it. Returns their keys, for
    `combine_remaining_scores`.
    """
    theirs = Experiment.objects.filter(evaluators__evaluator__in=evaluators)
    keys = list(theirs.order_by().values_list("pk", flat=True).distinct())
    rows = Experiment.objects.filter(pk__in=keys)
    rows.filter(problem="").update(problem=EVALUATOR_DELETED)
    rows.update(needs_figures=True)
    return keys


def combine_remaining_scores(experiments: Sequence[int]) -> None:
    """Decide again which runs pass, after scores of experiments were deleted."""
    done = ExperimentRun.objects.filter(
        experiment__in=experiments, state=ExperimentRun.State.DONE
    )
    keys = list(done.order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(keys), COMBINED_AT_ONCE):
        rows = done.filter(pk__in=keys[start : start + COMBINED_AT_ONCE])
        changed = []
        for cell in rows.prefetch_related("scores"):
            combined = combine_scores(cell.scores.all())
            if (cell.passed, cell.score) != combined:
                cell.passed, cell.score = combined
                changed.append(cell)
        ExperimentRun.objects.bulk_update(changed, ["passed", "score"], batch_size=500)
