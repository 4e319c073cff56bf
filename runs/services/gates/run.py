"""Run the experiment that a gate requires."""

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from runs.models import Experiment, Gate
from runs.services.experiments.create import ExperimentPlan, create_experiment
from runs.services.experiments.repeat import (
    DRAFT,
    list_compared_candidates,
    list_newest_revisions,
)


def start_gate_experiment(gate: Gate, *, by: User, candidate: str = "") -> Experiment:
    """Compare the draft with the newest version; raise what `create_experiment` does.

    `candidate` is `draft`, or a version that is compared instead.
    """
    gate.dataset.refresh_from_db()
    return create_experiment(
        gate.dataset,
        list_compared_candidates(gate.agent, candidate or DRAFT),
        list_newest_revisions(list(gate.evaluators.order_by("name"))),
        by=by,
        plan=ExperimentPlan(tool_mode=gate.tool_mode, repetitions=gate.repetitions),
        name=(_("Gate of %(name)s") % {"name": gate.agent.name})[:120],
    )
