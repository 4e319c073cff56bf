"""Datasets, evaluators and gates in agent files."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from runs.evaluation.gate import GateResult, GateRules
from runs.models import (
    Agent,
    AgentTool,
    AgentVersion,
    Dataset,
    Evaluator,
    Experiment,
    ExperimentCandidate,
    Gate,
    Provider,
)
from runs.services.agentfile.schema import (
    AgentEntry,
    AgentFile,
    DatasetEntry,
    EvaluatorEntry,
    ExampleEntry,
    ExpectedCallEntry,
    GateEntry,
)
from runs.services.datasets.content import ExampleContent, StoredCall
from runs.services.datasets.edit import add_examples, remove_example
from runs.services.datasets.save_version import save_dataset_version
from runs.services.datasets.working_copy import count_unsaved_changes
from runs.services.evaluation.judge_requests import get_judge_provider, is_judge
from runs.services.gates.digest import compute_gate_digest
from runs.services.gates.edit import GatePlan, save_gate
from runs.services.gates.state import get_gate
from runs.services.runs.called_agents import find_called_specs
from runs.services.spec.freeze import freeze_agent, freeze_uses
from runs.store.specs import compute_spec_digest, dump_spec, load_spec

NOT_CONTENT = {"gate_result", "version", "draft", "visibility", "groups"}
"""Fields of an agent that a gate's result does not depend on."""


def build_dataset_entry(row: Dataset) -> DatasetEntry:
    """Return the newest saved version of a dataset."""
    examples = row.examples.in_version(row.version).order_by("number")
    return DatasetEntry(
        slug=row.slug,
        name="" if row.name == row.slug else row.name,
        description=row.description,
        inputs=tuple(row.input_names),
        examples=tuple(build_example_entry(ExampleContent.of(one)) for one in examples),
    )


def build_example_entry(content: ExampleContent) -> ExampleEntry:
    return ExampleEntry(
        inputs=content.inputs,
        expected_answer=content.expected_answer,
        expected_calls=tuple(
            ExpectedCallEntry(tool=call.tool, tool_input=call.tool_input)
            for call in content.expected_calls
        ),
        tags=content.tags,
    )


def build_evaluator_entry(row: Evaluator) -> EvaluatorEntry:
    """Return the newest revision of an evaluator."""
    return EvaluatorEntry(
        slug=row.slug,
        name="" if row.name == row.slug else row.name,
        kind=row.kind,
        config=row.config,
    )


def build_gate_entry(gate: Gate | None) -> GateEntry | None:
    """Return what the agent requires; None without a gate, or without its evaluators.

    Those are gone if their owner was deleted: no draft passes such a gate.
    """
    if gate is None:
        return None
    slugs = gate.evaluators.order_by("slug").values_list("slug", flat=True)
    if not slugs:
        return None
    return GateEntry.model_validate(
        {
            "dataset": gate.dataset.slug,
            "evaluators": tuple(slugs),
            "tool_mode": gate.tool_mode,
            "repetitions": gate.repetitions,
            "rules": GateRules.model_validate(gate.rules),
        }
    )


def list_gates(agents: Iterable[Agent]) -> list[Gate]:
    rows = Gate.objects.filter(agent__in=[agent.pk for agent in agents])
    return list(rows.select_related("dataset").order_by("agent"))


def list_used_datasets(agents: Iterable[Agent]) -> QuerySet[Dataset]:
    """Return the datasets with a version that the agents were evaluated on."""
    candidates = ExperimentCandidate.objects.filter(agent__in=list(agents))
    return Dataset.objects.filter(
        pk__in=candidates.values("experiment__dataset"), archived_at=None, version__gt=0
    )


def list_used_evaluators(agents: Iterable[Agent]) -> QuerySet[Evaluator]:
    """Return the evaluators that have scored the agents in experiments."""
    candidates = ExperimentCandidate.objects.filter(agent__in=list(agents))
    experiments = Experiment.objects.filter(pk__in=candidates.values("experiment"))
    used = experiments.values("evaluators__evaluator")
    return Evaluator.objects.filter(pk__in=used, archived_at=None)


def list_judge_providers(evaluators: Iterable[Evaluator]) -> QuerySet[Provider]:
    """Return the providers of the evaluators that ask a model."""
    slugs = [get_judge_provider(one) for one in evaluators if is_judge(one)]
    return Provider.objects.filter(slug__in=slugs)


def find_kept_result(
    version: AgentVersion | None, uses: Iterable[AgentTool]
) -> GateResult | None:
    """Return what the gate said of a version, if that holds for `uses` as they are now.

    An export has the tools as they are now, and called agents as they run now. Those
    may have changed since the version was published.
    """
    if version is None or not version.gate_result:
        return None
    result = GateResult.model_validate(version.gate_result)
    try:
        spec = load_spec(version.spec)
    except ValueError:  # of a release that this one cannot read
        return None
    is_same = freeze_uses(uses) == spec.tools
    is_same = is_same and result.called_specs == find_called_specs(spec)
    return result if is_same else None


def add_gate_results(file: AgentFile, results: dict[str, GateResult]) -> AgentFile:
    """Return the file with what the gates said of its agents, by slug."""
    entries = []
    for entry in file.agents:
        result = results.get(entry.slug)
        if result is None:
            entries.append(entry)
            continue
        update = {
            "origin": result.origin or settings.PUBLIC_URL or "another site",
            "content_digest": compute_content_digest(file, entry),
            "called_specs": {},
        }
        stored = result.model_copy(update=update)
        entries.append(entry.model_copy(update={"gate_result": stored}))
    return file.model_copy(update={"agents": tuple(entries)})


def compute_content_digest(file: AgentFile, entry: AgentEntry) -> str:
    """Return the same text for the same agent with the same prompt and tools.

    Those of the agents that it calls, and that these call, are included.
    """
    called = list_called_entries(file, entry)
    agents = [entry, *sorted(called, key=lambda one: one.slug)]
    slugs = {one.prompt for one in agents}
    used = {use.tool for one in agents for use in one.tools}
    prompts = [one for one in file.prompts if one.slug in slugs]
    tools = [one for one in file.tools if one.slug in used]
    parts = [
        one.model_dump(mode="json", exclude=NOT_CONTENT, exclude_defaults=True)
        for one in (*agents, *prompts, *tools)
    ]
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def list_called_entries(file: AgentFile, entry: AgentEntry) -> list[AgentEntry]:
    """Return the agents of the file that this one calls, itself or through others."""
    by_slug = {one.slug: one for one in file.agents}
    found: dict[str, AgentEntry] = {}
    waiting = [entry]
    while waiting:
        for use in waiting.pop().tools:
            called = by_slug.get(use.agent or "")
            if called is not None and called.slug not in found:
                found[called.slug] = called
                waiting.append(called)
    return list(found.values())


def calls_others(file: AgentFile, entry: AgentEntry) -> bool:
    """Whether it calls, itself or through others, an agent that is not in the file."""
    slugs = {one.slug for one in file.agents}
    every = [entry, *list_called_entries(file, entry)]
    return any(
        use.agent and use.agent not in slugs for one in every for use in one.tools
    )


def store_examples(dataset: Dataset, entry: DatasetEntry, *, by: User) -> bool:
    """Make the examples of the file the newest version; False if they already are.

    Equal examples keep their numbers. Raises `ExampleRefused`, `DatasetFull` or
    `VersionRefused`.
    """
    wanted = [get_example_content(one) for one in entry.examples]
    rows = dataset.examples.in_version(dataset.version).order_by("number")
    there = [(row.number, ExampleContent.of(row)) for row in rows]
    if sort_contents(one for _, one in there) == sort_contents(wanted):
        return False
    left = list(wanted)
    for number, content in there:
        if content in left:
            left.remove(content)
        else:
            remove_example(dataset, number, by=by)
    add_examples(dataset, left, by=by, source="import")
    save_dataset_version(dataset, seen=dataset.version, by=by)
    return True


def has_unsaved_examples(dataset: Dataset) -> bool:
    return dataset.pk is not None and count_unsaved_changes(dataset).total > 0


def sort_contents(contents: Iterable[ExampleContent]) -> list[str]:
    return sorted(one.model_dump_json() for one in contents)


def get_example_content(entry: ExampleEntry) -> ExampleContent:
    return ExampleContent(
        inputs=entry.inputs,
        expected_answer=entry.expected_answer,
        expected_calls=tuple(
            StoredCall(tool=call.tool, tool_input=call.tool_input)
            for call in entry.expected_calls
        ),
        tags=entry.tags,
    )


def store_gate(
    agent: Agent,
    entry: GateEntry,
    dataset: Dataset,
    evaluators: Sequence[Evaluator],
    *,
    by: User,
) -> bool:
    """Give the agent this gate; False if it has it."""
    gate = get_gate(agent)
    if build_gate_entry(gate) == entry.model_copy(
        update={"evaluators": tuple(sorted(entry.evaluators))}
    ):
        return False
    plan = GatePlan(
        dataset, evaluators, entry.rules, entry.tool_mode, entry.repetitions
    )
    save_gate(agent, plan, by=by)
    return True


def store_gate_result(agent: Agent, result: GateResult) -> str:
    """Let the result count for the draft as it is now; return why it may not.

    The gate must require what it required where the result is from, and the agents
    that are called must run what the file has. The examples of the file have another
    version number here.
    """
    gate = get_gate(agent)
    if gate is None:
        return ""
    if result.requirements != compute_gate_digest(gate):
        return _(
            "the rules, examples or evaluators of the gate of %(agent)s have changed "
            "since it was met, so the result does not count"
        ) % {"agent": agent.slug}
    spec = freeze_agent(agent)
    called = find_called_specs(spec)
    if called != find_called_specs(spec, drafts=True):
        return _(
            "an agent that %(agent)s calls runs another version than that of the "
            "file, so the result of the gate does not count"
        ) % {"agent": agent.slug}
    stored = result.model_copy(
        update={"dataset_version": gate.dataset.version, "called_specs": called}
    )
    fields: dict[str, Any] = {
        "imported_digest": compute_spec_digest(dump_spec(spec)),
        "imported_result": stored.model_dump(mode="json"),
    }
    Gate.objects.filter(pk=gate.pk).update(**fields)
    return ""
