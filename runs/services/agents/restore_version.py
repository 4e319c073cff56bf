"""Restore a published version as the draft; runs keep using what they use."""

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from runs.models import Agent, AgentTool, AgentVersion, PromptTemplate, Provider
from runs.services.agents.call_graph import find_cycle
from runs.services.spec.definition import (
    AgentDefinition,
    ToolBinding,
    get_version_definition,
)
from runs.services.spec.freeze import build_prompt_spec
from runs.services.spec.inline_prompt import (
    build_prompt_for_kind,
    extract_instructions,
    get_prompt_fields,
    save_inline_prompt,
)
from tools.models import Tool


@transaction.atomic
def restore_version(version: AgentVersion, *, by: User) -> list[str]:
    """Restore the draft from `version`; return a message for each failed part.

    What was deleted, or what `by` may no longer use, stays as the draft has it.
    """
    agent = Agent.objects.select_for_update().get(pk=version.agent_id)
    old = get_version_definition(version)
    said = _restore_model(agent, old, by)
    agent.description, agent.kind = old.description, old.kind
    agent.parameters, agent.executor = old.parameters, old.executor
    agent.memory = old.memory
    agent.suggested_questions = list(old.suggested_questions)
    said += _restore_prompt(agent, old, version)
    agent.save()
    return said + _restore_uses(agent, old, by)


def _restore_model(agent: Agent, old: AgentDefinition, by: User) -> list[str]:
    known = Provider.objects.usable_by(by).filter(pk=old.provider).exists()
    if not known and old.provider != agent.provider_id:
        return [
            _(
                "You can no longer use the provider of this version. The draft keeps "
                "the model %(model)s of %(provider)s."
            )
            % {"model": agent.model, "provider": agent.provider}
        ]
    agent.provider_id, agent.model = old.provider, old.model
    return []


def _restore_prompt(
    agent: Agent, old: AgentDefinition, version: AgentVersion
) -> list[str]:
    if old.words is None:
        agent.prompt = None
        return []
    if old.source == "library":
        row = PromptTemplate.objects.filter(pk=old.prompt or 0).first()
        if row is not None and build_prompt_spec(row) == old.words:
            agent.prompt = row
            return []
    fields = get_prompt_fields(old.words)
    kept = PromptTemplate(kind=old.prompt_kind or old.kind, **fields)
    if build_prompt_for_kind(kept.kind, extract_instructions(kept)) == old.words:
        agent.prompt = save_inline_prompt(agent, kind=kept.kind, fields=fields)
        return []
    kept.owner, kept.partials = agent.owner, old.words.partials
    kept.name = f"{agent.name}, version {version.number}"[-120:]
    kept.save()
    agent.prompt = kept
    return [
        _(
            "The prompt has changed since this version was published. Its old text is "
            'now the prompt "%(name)s".'
        )
        % {"name": kept.name}
    ]


def _restore_uses(agent: Agent, old: AgentDefinition, by: User) -> list[str]:
    there = {(use.tool_id, use.sub_agent_id) for use in agent.uses.all()}
    may = [use for use in old.uses if _may_use(use, agent, by, there)]
    agent.uses.all().delete()
    for place, use in enumerate(may):  # one by one: the audit log records each
        AgentTool.objects.create(
            agent=agent,
            tool_id=use.tool,
            sub_agent_id=use.sub_agent,
            position=place,
            policy=use.policy,
            overrides=use.overrides,
        )
    return [
        _("You can no longer use %(name)s, so it was left out.") % {"name": use.name}
        for use in old.uses
        if use not in may
    ]


def _may_use(
    use: ToolBinding, agent: Agent, by: User, there: set[tuple[int | None, int | None]]
) -> bool:
    if (use.tool, use.sub_agent) in there:
        return True
    if use.tool is not None:
        return Tool.objects.usable_by(by).filter(pk=use.tool).exists()
    others = Agent.objects.usable_by(by).exclude(pk=agent.pk)
    known = others.filter(pk=use.sub_agent or 0).exists()
    return known and not find_cycle(agent, [use.sub_agent or 0])
