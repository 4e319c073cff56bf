"""Gates for tests: an agent that requires an experiment, and workers that run it."""

from runs.evaluation.gate import GateRules
from runs.models import Agent, Experiment, Gate, Run
from runs.services.gates.edit import GatePlan, save_gate
from tests.makers.experiments import end_runs, make_examples, make_revision, turn


def make_gate(agent: Agent, *, count: int = 3, **rules) -> Gate:
    """Require that answers to `count` examples contain "yes"."""
    dataset = make_examples(agent.owner, count)
    revision = make_revision(agent.owner)
    plan = GatePlan(dataset, [revision.evaluator], GateRules(**rules))
    return save_gate(agent, plan, by=agent.owner)


def finish_experiment(
    experiment: Experiment, *, wrong: int = 0, position: int | None = None
) -> None:
    """Do what workers do; drafts, or one candidate, answer `wrong` examples wrongly."""
    picked = {"candidate__version": None}
    if position is not None:
        picked = {"candidate__position": position}
    turn(experiment)
    while end_runs(experiment):
        drafts = Run.objects.filter(
            experiment_run__in=experiment.cells.filter(**picked),
            experiment_run__example__number__lte=wrong,
        )
        Run.objects.filter(pk__in=list(drafts.values_list("pk", flat=True))).update(
            output="no"
        )
        turn(experiment)
