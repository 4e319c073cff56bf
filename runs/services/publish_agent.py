"""Publishing an agent: its present state becomes a numbered version."""

from typing import NamedTuple

from django.contrib.auth.models import User
from django.db import transaction

from runs.engine.types import AgentSpec
from runs.models import Agent, AgentVersion
from runs.services.definition import definition_of, described_as, remembers
from runs.services.editing_spell import end_spell
from runs.services.errors import DraftMoved
from runs.services.freeze_agent import (
    body_of,
    digest_of,
    freeze_agent,
    refuse_flaws,
    spec_row,
)
from runs.services.save_agent import token_of


class Published(NamedTuple):
    """The newest version, and whether this call made it."""

    version: AgentVersion
    is_new: bool


def publish_agent(agent: Agent, *, by: User | None, note: str = "") -> AgentVersion:
    """Return the new version, or the newest one where nothing has changed since.

    Raises `SpecRefused` where the agent could not run.
    """
    return publish_draft(agent, by=by, note=note).version


def publish_draft(
    agent: Agent, *, by: User | None, note: str = "", seen: str | None = None
) -> Published:
    """Publish the draft that `seen` names; raise `DraftMoved` where it is another.

    Raises `SpecRefused` where the agent could not run.
    """
    spec = freeze_agent(agent)
    refuse_flaws(spec)
    with transaction.atomic():
        stored = Agent.objects.select_for_update().get(pk=agent.pk)
        if seen is not None and token_of(stored) != seen:
            raise DraftMoved
        end_spell(agent.pk)
        newest = newest_of(agent)
        if newest is not None and holds(newest, agent, spec):
            return Published(newest, is_new=False)
        number = newest.number + 1 if newest is not None else 1
        version = AgentVersion.objects.create(
            agent=agent,
            number=number,
            note=note[:200],
            spec=spec_row(spec),
            by=by,
            definition=definition_of(agent).model_dump(mode="json"),
        )
        return Published(version, is_new=True)


def newest_of(agent: Agent) -> AgentVersion | None:
    """Return the version that runs of `agent` use."""
    return agent.versions.select_related("spec").first()


def is_published(agent: Agent) -> bool:
    """Whether publishing the draft would give nothing that runs do not use already."""
    newest = newest_of(agent)
    return newest is not None and holds(newest, agent, freeze_agent(agent))


def holds(version: AgentVersion, agent: Agent, spec: AgentSpec) -> bool:
    """Whether the draft of `agent`, frozen as `spec`, would become `version` again."""
    kept = (remembers(agent, version), described_as(agent, version))
    return version.spec.digest == digest_of(body_of(spec)) and kept == (
        agent.memory,
        agent.description,
    )
