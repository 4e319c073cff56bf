"""Tools of candidates whose recordings are of another definition."""

from collections.abc import Iterable
from itertools import product

from runs.models import Experiment, ExperimentCandidate, Run, Spec
from runs.services.tool_modes.changed_tools import compare_shared_tools
from runs.store.specs import load_spec

MAX_SPECS = 20
"""The newest recorded specs that are compared: runs of one version share a spec."""
REPLAYS = (
    Experiment.ToolMode.REPLAY_BY_TOOL,
    Experiment.ToolMode.REPLAY_READS,
    Experiment.ToolMode.REPLAY_STRICT,
)


def find_outdated_tools(
    experiment: Experiment, candidates: Iterable[ExperimentCandidate]
) -> list[str]:
    """Return the names of tools that a source run had with another definition."""
    if experiment.tool_mode not in REPLAYS:
        return []
    examples = experiment.dataset.examples.in_version(experiment.dataset_version)
    runs = Run.objects.filter(pk__in=examples.order_by().values("source_run"))
    specs = Spec.objects.filter(pk__in=runs.order_by().values("spec"))
    recorded = [load_spec(row) for row in specs.order_by("-pk")[:MAX_SPECS]]
    pairs = product(recorded, [load_spec(one.spec) for one in candidates])
    return sorted({name for pair in pairs for name in compare_shared_tools(*pair)})
