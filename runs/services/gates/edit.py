"""Set and remove the gate of an agent; every change is audited."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from runs.evaluation.gate import GateRules
from runs.models import Agent, Dataset, Evaluator, Experiment, Gate
from tools.audit.write import write_entry


@dataclass(frozen=True)
class GatePlan:
    dataset: Dataset
    evaluators: Sequence[Evaluator]
    rules: GateRules = GateRules()
    tool_mode: str = Experiment.ToolMode.HOLD_BACK
    repetitions: int = 1


def find_tag_problem(plan: GatePlan) -> str:
    """Return that no example has the tag that must pass; empty if one has."""
    tag, dataset = plan.rules.must_pass_tag, plan.dataset
    examples = dataset.examples.in_version(dataset.version)
    tags = examples.values_list("tags", flat=True)
    if not tag or any(tag in one for one in tags.iterator()):
        return ""
    return _("No example of %(dataset)s, version %(version)d, has the tag %(tag)s.") % {
        "dataset": dataset.name,
        "version": dataset.version,
        "tag": repr(tag),
    }


@transaction.atomic
def save_gate(agent: Agent, plan: GatePlan, *, by: User) -> Gate:
    """Create or replace the gate; drafts are judged by it from now on.

    A result that an agent file has brought was reached by the former gate: it no longer
    counts after any change.
    """
    gate = Gate.objects.filter(agent=agent).first() or Gate(agent=agent)
    is_new = gate.pk is None
    if is_new or read_gate_plan(gate) != describe_gate_plan(plan):
        gate.imported_digest, gate.imported_result = "", None
    gate.dataset = plan.dataset
    gate.tool_mode = plan.tool_mode
    gate.repetitions = plan.repetitions
    gate.rules = plan.rules.model_dump(mode="json")
    gate.save()
    before = sorted(str(one) for one in gate.evaluators.all()) if not is_new else []
    gate.evaluators.set(plan.evaluators)
    after = sorted(str(one) for one in plan.evaluators)
    if before != after and not is_new:
        changes = {"evaluators": [", ".join(before), ", ".join(after)]}
        write_entry(
            "changed", "gate", agent.name, number=gate.pk, by=by, changes=changes
        )
    return gate


def read_gate_plan(gate: Gate) -> tuple[object, ...]:
    """Return what a stored gate requires, to compare it with a plan."""
    rules = GateRules.model_validate(gate.rules)
    evaluators = list(gate.evaluators.all())
    return describe_gate_plan(
        GatePlan(gate.dataset, evaluators, rules, gate.tool_mode, gate.repetitions)
    )


def describe_gate_plan(plan: GatePlan) -> tuple[object, ...]:
    evaluators = {one.pk for one in plan.evaluators}
    settings = (str(plan.tool_mode), plan.repetitions)
    return (plan.dataset.pk, evaluators, plan.rules, *settings)


def remove_gate(agent: Agent) -> bool:
    """Let drafts be published without an experiment; False if there was no gate."""
    gate = Gate.objects.filter(agent=agent).first()
    if gate is None:
        return False
    gate.delete()
    return True
