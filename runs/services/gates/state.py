"""Whether a draft, or an older version, has passed the gate of its agent.

Any experiment counts that compares exactly its spec with the newest version on the
newest examples with the newest evaluators, wherever it was started.
"""

from typing import Literal, NamedTuple

from django.db.models import Q, QuerySet

from runs.engine.types import AgentSpec
from runs.evaluation.gate import GateFigures, GateResult, GateRules, judge_gate
from runs.models import (
    Agent,
    AgentVersion,
    Experiment,
    ExperimentCandidate,
    ExperimentRun,
    Gate,
)
from runs.services.experiments.figures import (
    CandidateFigures,
    ExperimentFigures,
    load_stored_figures,
)
from runs.services.gates.digest import compute_gate_digest
from runs.services.runs.called_agents import find_called_specs
from runs.store.specs import compute_spec_digest, dump_spec, load_spec

GateStatus = Literal["none", "missing", "running", "stopped", "met", "not_met"]
MAX_LOOKED_AT = 20
"""Experiments of a draft of which the newest that fits counts."""


class GateState(NamedTuple):
    """The gate of an agent, and what it says of one draft."""

    status: GateStatus
    gate: Gate | None = None
    experiment: Experiment | None = None
    result: GateResult | None = None
    """If the status is `met` or `not_met`."""

    @property
    def allows_publishing(self) -> bool:
        return self.status in ("none", "met")


def get_gate(agent: Agent) -> Gate | None:
    return Gate.objects.select_related("dataset").filter(agent=agent).first()


def load_gate_state(agent: Agent, spec: AgentSpec, *, digest: str = "") -> GateState:
    """Return what the gate of the agent says of a draft, or of an older version.

    `digest` is that of the stored spec; one of an older release may have another.
    """
    digest = digest or compute_spec_digest(dump_spec(spec))
    gate = get_gate(agent)
    if gate is None:
        return GateState("none")
    experiment = find_gate_experiment(gate, digest)
    if experiment is None:
        imported = load_imported_result(gate, spec, digest)
        if imported is None:
            return GateState("missing", gate)
        return GateState("met" if imported.is_met else "not_met", gate, None, imported)
    if experiment.status != Experiment.Status.DONE:
        return GateState(
            "running" if experiment.is_running else "stopped", gate, experiment
        )
    result = build_gate_result(gate, experiment, digest)
    return GateState("met" if result.is_met else "not_met", gate, experiment, result)


def load_version_gate_state(version: AgentVersion) -> GateState:
    """Return what the gate of its agent says of a version."""
    try:
        spec = load_spec(version.spec)
    except ValueError:  # of a release that this one cannot read
        return GateState("missing", get_gate(version.agent))
    return load_gate_state(version.agent, spec, digest=version.spec.digest)


def load_imported_result(gate: Gate, spec: AgentSpec, digest: str) -> GateResult | None:
    """Return the result of an agent file, if all that it depends on is the same."""
    if gate.imported_digest != digest or not gate.imported_result:
        return None
    result = GateResult.model_validate(gate.imported_result)
    is_same = result.called_specs == find_called_specs(spec)
    is_same = is_same and result.requirements == compute_gate_digest(gate)
    return result if is_same else None


def find_gate_experiment(gate: Gate, digest: str) -> Experiment | None:
    """Return the newest experiment with this spec that the gate accepts.

    One that has ended comes before one that was stopped.
    """
    fitting = [
        one
        for one in list_draft_experiments(gate, digest)[:MAX_LOOKED_AT]
        if fits_gate(gate, one)
    ]
    ended = [one for one in fitting if one.status != Experiment.Status.STOPPED]
    return next(iter(ended or fitting), None)


def list_draft_experiments(gate: Gate, digest: str) -> QuerySet[Experiment]:
    """Return the experiments like the gate with this draft, newest first."""
    drafts = find_drafts(gate, digest)
    same = Q(dataset=gate.dataset_id, dataset_version=gate.dataset.version)
    same &= Q(tool_mode=gate.tool_mode, repetitions=gate.repetitions)
    rows = Experiment.objects.filter(same, pk__in=drafts.values("experiment"))
    return rows.select_related("dataset").order_by("-pk")


def find_drafts(gate: Gate, digest: str) -> QuerySet[ExperimentCandidate]:
    """Return the candidates with exactly this spec that are not the baseline."""
    rows = ExperimentCandidate.objects.filter(agent=gate.agent_id, spec__digest=digest)
    return rows.exclude(position=0, version__isnull=False)


def fits_gate(gate: Gate, experiment: Experiment) -> bool:
    """Whether evaluators, baseline and called agents are the newest, unchanged."""
    wanted = {(one.pk, one.revision) for one in gate.evaluators.all()}
    used = set(experiment.evaluators.values_list("evaluator", "number"))
    newest = gate.agent.versions.values_list("pk", flat=True).first()
    rows = experiment.candidates.select_related("version", "spec").order_by("position")
    if used != wanted or not wanted or not is_gate_baseline(gate, rows[0], newest):
        return False
    return all(map(calls_the_same, rows))


def calls_the_same(candidate: ExperimentCandidate) -> bool:
    """Whether the agents that it calls are what they were in the experiment."""
    try:
        spec = load_spec(candidate.spec)
    except ValueError:
        return False
    return bool(candidate.called_specs == find_called_specs(spec))


def is_gate_baseline(
    gate: Gate, candidate: ExperimentCandidate, newest: int | None
) -> bool:
    """Whether it is the newest version of the agent, with its own model."""
    version = candidate.version
    if candidate.agent_id != gate.agent_id or candidate.version_id != newest:
        return False
    return version is None or candidate.spec_id == version.spec_id


def find_draft_gate(experiment: Experiment) -> Gate | None:
    """Return the gate of the agent whose draft is the last candidate."""
    last = experiment.candidates.select_related("agent").last()
    return get_gate(last.agent) if last and last.version_id is None else None


def judge_experiment(experiment: Experiment) -> GateResult | None:
    """Return what the gate of the last candidate's agent says of an ended experiment.

    None without a gate, or if it requires other examples, evaluators or settings.
    """
    last = experiment.candidates.select_related("agent", "spec").last()
    gate = find_draft_gate(experiment)
    if last is None or gate is None:
        return None
    rows = list_draft_experiments(gate, last.spec.digest)
    found = rows.filter(pk=experiment.pk, status=Experiment.Status.DONE).first()
    if found is None or not fits_gate(gate, found):
        return None
    return build_gate_result(gate, found, last.spec.digest)


def build_gate_result(gate: Gate, experiment: Experiment, digest: str) -> GateResult:
    """Judge this draft in an ended experiment by the rules as they are now."""
    rules = GateRules.model_validate(gate.rules)
    figures = load_stored_figures(experiment)
    drafts = find_drafts(gate, digest).filter(experiment=experiment)
    draft = drafts.order_by("position")[0]
    first = experiment.candidates.order_by("position")[0]
    before = first if first.version_id else None
    compared = next(
        (one for one in figures.comparisons if one.candidate == draft.pk), None
    )
    found = judge_gate(
        rules,
        build_gate_figures(draft, figures, rules.must_pass_tag),
        baseline=build_gate_figures(before, figures, rules.must_pass_tag)
        if before
        else None,
        conclusion=compared.kind if compared else "",
        better=compared.better if compared else 0,
        worse=compared.worse if compared else 0,
    )
    return GateResult(
        rules=found,
        dataset=experiment.dataset.slug,
        dataset_version=experiment.dataset_version,
        runs=experiment.total,
        experiment=experiment.pk,
        at=experiment.ended_at.isoformat() if experiment.ended_at else "",
    )


def build_gate_figures(
    candidate: ExperimentCandidate, figures: ExperimentFigures, tag: str
) -> GateFigures:
    found = next(
        (one for one in figures.candidates if one.candidate == candidate.pk), None
    )
    if found is None:
        return GateFigures(runs=0, passed=0)
    tagged = list_tagged_runs(candidate, tag) if tag else []
    return GateFigures(
        runs=found.total,
        passed=found.passed,
        unscored=count_unscored(found),
        tagged_runs=len(tagged),
        tagged_passed=sum(passed is True for passed in tagged),
        p95_seconds=found.p95_seconds,
        cost_per_run=found.cost_per_run,
    )


def count_unscored(figures: CandidateFigures) -> int:
    """Return the runs that neither passed nor failed a score."""
    return figures.total - figures.decided


def list_tagged_runs(candidate: ExperimentCandidate, tag: str) -> list[bool | None]:
    """Return whether each run of an example with the tag passed."""
    cells = ExperimentRun.objects.filter(candidate=candidate)
    rows = cells.values_list("example__tags", "passed")
    return [passed for tags, passed in rows if tag in tags]
