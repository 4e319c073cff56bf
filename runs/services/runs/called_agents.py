"""What the agents run that another agent calls: now, or when an experiment began."""

from typing import NamedTuple

from runs.engine.types import AgentSpec
from runs.models import Agent, ExperimentRun, Run, Spec
from runs.services.errors import NotAllowed, SpecRefused
from runs.services.runs.start import FrozenAgent, freeze_newest_version
from runs.services.spec.freeze import AGENT_KIND, freeze_agent, validate_spec
from runs.store.specs import (
    compute_spec_digest,
    dump_spec,
    get_or_create_spec,
    load_spec,
)
from runs.store.transitions import get_ancestor_ids


class CalledSpec(NamedTuple):
    spec: AgentSpec
    digest: str


def find_called_specs(
    spec: AgentSpec, *, drafts: bool = False, stores: bool = False
) -> dict[str, str]:
    """Return the digest of what each called agent runs now, by the agent's key.

    Agents that those call are included; one that cannot run has no digest. With
    `drafts`, the digests are those of the drafts. With `stores`, drafts that run are
    stored, so that children can run them later.
    """
    found: dict[str, str] = {}
    waiting = get_called_agents(spec)
    while waiting:
        key = waiting.pop()
        if str(key) in found:
            continue
        called = load_called_spec(key, draft=drafts, stores=stores)
        found[str(key)] = called.digest if called else ""
        waiting |= get_called_agents(called.spec) if called else set()
    return found


def get_called_agents(spec: AgentSpec) -> set[int]:
    tools = (tool for tool in spec.tools if tool.kind == AGENT_KIND)
    return {tool.config.get("agent_id") or 0 for tool in tools}


def load_called_spec(key: int, *, draft: bool, stores: bool) -> CalledSpec | None:
    """Return what the agent runs; None if it could not."""
    agent = Agent.objects.select_related("provider", "prompt").filter(pk=key).first()
    if agent is None:
        return None
    version = None if draft else agent.versions.select_related("spec").first()
    try:
        if version is not None:
            return CalledSpec(load_spec(version.spec), version.spec.digest)
        spec = freeze_agent(agent)
        validate_spec(spec)
    except (SpecRefused, ValueError):
        return None
    if stores:
        return CalledSpec(spec, get_or_create_spec(spec).digest)
    return CalledSpec(spec, compute_spec_digest(dump_spec(spec)))


def freeze_child(run: Run, agent: Agent) -> FrozenAgent:
    """Return what a child of `run` runs.

    In an experiment, that is what the agent ran when the experiment was created;
    raises `NotAllowed` if it was deleted. Else it is the newest version.
    """
    digest = find_stored_digest(run, agent)
    if not digest:
        return freeze_newest_version(agent)
    row = Spec.objects.filter(digest=digest).first()
    if row is None:
        raise NotAllowed(
            f"What the agent {agent.name!r} ran when the experiment was created no "
            "longer exists."
        )
    return FrozenAgent(load_spec(row), row, agent.versions.filter(spec=row).first())


def find_stored_digest(run: Run, agent: Agent) -> str:
    """Return the digest that the candidate of an experiment has; empty outside one."""
    if not run.is_test:
        return ""
    cells = ExperimentRun.objects.filter(run__in=[run.pk, *get_ancestor_ids(run)])
    stored = cells.values_list("candidate__called_specs", flat=True).first() or {}
    return str(stored.get(str(agent.pk), ""))
