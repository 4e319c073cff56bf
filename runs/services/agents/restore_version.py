"""Putting a published version back into the draft; runs go on using what they use."""

from django.contrib.auth.models import User
from django.db import transaction

from runs.models import Agent, AgentTool, AgentVersion, PromptTemplate, Provider
from runs.services.definition import Definition, Use, definition_of_version
from runs.services.find_circle import circle_of
from runs.services.freeze_agent import prompt_spec_of
from runs.services.own_prompt import (
    fields_of,
    instructions_in,
    own_slug,
    prompt_with_kind,
)
from tools.models import Tool


@transaction.atomic
def restore_version(version: AgentVersion, *, by: User) -> list[str]:
    """Make the draft what `version` was; return a sentence for what could not be.

    What is gone, or may not be used by `by` any more, stays as the draft has it.
    """
    agent = Agent.objects.select_for_update().get(pk=version.agent_id)
    old = definition_of_version(version)
    said = _restore_model(agent, old, by)
    agent.description, agent.kind = old.description, old.kind
    agent.parameters, agent.executor = old.parameters, old.executor
    agent.memory = old.memory
    said += _restore_prompt(agent, old, version)
    agent.save()
    return said + _restore_uses(agent, old, by)


def _restore_model(agent: Agent, old: Definition, by: User) -> list[str]:
    known = Provider.objects.usable_by(by).filter(pk=old.provider).exists()
    if not known and old.provider != agent.provider_id:
        return [
            f"Its provider cannot be used any more, so the model is still "
            f"{agent.model} of {agent.provider}."
        ]
    agent.provider_id, agent.model = old.provider, old.model
    return []


def _restore_prompt(agent: Agent, old: Definition, version: AgentVersion) -> list[str]:
    if old.words is None:
        agent.prompt = None
        return []
    if old.source == "library":
        row = PromptTemplate.objects.filter(pk=old.prompt or 0).first()
        if row is not None and prompt_spec_of(row) == old.words:
            agent.prompt = row
            return []
    fields = fields_of(old.words)
    kept = PromptTemplate(kind=old.prompt_kind or old.kind, **fields)
    if prompt_with_kind(kept.kind, instructions_in(kept)) == old.words:
        shared = {"owner": agent.owner, "visibility": agent.visibility}
        name = f"Instructions of {agent.name}"[:120]
        agent.prompt, _ = PromptTemplate.objects.update_or_create(
            slug=own_slug(agent),
            defaults={**shared, "name": name, "kind": kept.kind, **fields},
        )
        return []
    kept.owner, kept.partials = agent.owner, old.words.partials
    kept.name = f"{agent.name}, version {version.number}"[-120:]
    kept.save()
    agent.prompt = kept
    return [f"Its prompt has changed since, so its words are now {kept.name!r}."]


def _restore_uses(agent: Agent, old: Definition, by: User) -> list[str]:
    there = {(use.tool_id, use.sub_agent_id) for use in agent.uses.all()}
    may = [use for use in old.uses if _may_use(use, agent, by, there)]
    agent.uses.all().delete()
    for place, use in enumerate(may):  # one by one, for the audit log follows each
        AgentTool.objects.create(
            agent=agent,
            tool_id=use.tool,
            sub_agent_id=use.sub_agent,
            position=place,
            policy=use.policy,
            overrides=use.overrides,
        )
    return [
        f"{use.name} cannot be used any more and is left out."
        for use in old.uses
        if use not in may
    ]


def _may_use(
    use: Use, agent: Agent, by: User, there: set[tuple[int | None, int | None]]
) -> bool:
    if (use.tool, use.sub_agent) in there:
        return True
    if use.tool is not None:
        return Tool.objects.usable_by(by).filter(pk=use.tool).exists()
    others = Agent.objects.usable_by(by).exclude(pk=agent.pk)
    known = others.filter(pk=use.sub_agent or 0).exists()
    return known and not circle_of(agent, [use.sub_agent or 0])
