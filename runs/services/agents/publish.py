"""Publish an agent: its draft becomes a numbered version."""

from typing import NamedTuple

from django.contrib.auth.models import User
from django.db import transaction

from runs.engine.types import AgentSpec
from runs.models import Agent, AgentVersion
from runs.services.agents.edit_sessions import end_edit_session
from runs.services.agents.save import get_draft_token
from runs.services.errors import DraftConflict
from runs.services.spec.definition import (
    build_agent_definition,
    get_agent_description,
    uses_memory,
)
from runs.services.spec.freeze import freeze_agent, validate_spec
from runs.store.specs import compute_spec_digest, dump_spec, get_or_create_spec


class PublishResult(NamedTuple):
    """The newest version, and whether this call created it."""

    version: AgentVersion
    is_new: bool


def publish_agent(agent: Agent, *, by: User | None, note: str = "") -> AgentVersion:
    """Return the new version, or the newest one if nothing has changed.

    Raises `SpecRefused` if the agent could not run.
    """
    return publish_draft(agent, by=by, note=note).version


def publish_draft(
    agent: Agent, *, by: User | None, note: str = "", seen: str | None = None
) -> PublishResult:
    """Publish the draft named by `seen`; raise `DraftConflict` if it has changed.

    Raises `SpecRefused` if the agent could not run.
    """
    spec = freeze_agent(agent)
    validate_spec(spec)
    with transaction.atomic():
        stored = Agent.objects.select_for_update().get(pk=agent.pk)
        if seen is not None and get_draft_token(stored) != seen:
            raise DraftConflict
        end_edit_session(agent.pk)
        newest = get_latest_version(agent)
        if newest is not None and matches_version(newest, agent, spec):
            return PublishResult(newest, is_new=False)
        number = newest.number + 1 if newest is not None else 1
        version = AgentVersion.objects.create(
            agent=agent,
            number=number,
            note=note[:200],
            spec=get_or_create_spec(spec),
            by=by,
            definition=build_agent_definition(agent).model_dump(mode="json"),
        )
        return PublishResult(version, is_new=True)


def get_latest_version(agent: Agent) -> AgentVersion | None:
    """Return the version that runs of `agent` use."""
    return agent.versions.select_related("spec").first()


def is_published(agent: Agent) -> bool:
    """Whether the draft equals the newest version."""
    newest = get_latest_version(agent)
    return newest is not None and matches_version(newest, agent, freeze_agent(agent))


def matches_version(version: AgentVersion, agent: Agent, spec: AgentSpec) -> bool:
    """Whether publishing the draft, frozen as `spec`, would repeat `version`."""
    kept = (uses_memory(agent, version), get_agent_description(agent, version))
    return version.spec.digest == compute_spec_digest(dump_spec(spec)) and kept == (
        agent.memory,
        agent.description,
    )
