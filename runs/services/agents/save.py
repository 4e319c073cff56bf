"""Saving an agent with its tools and instructions: all of it, or nothing."""

from collections.abc import Sequence
from typing import NamedTuple

from django.db import transaction
from django.db.models import Q

from runs.engine.kinds.registry import KINDS
from runs.models import Agent, AgentTool, PromptTemplate
from runs.services.editing_spell import editing
from runs.services.errors import DraftMoved
from runs.services.find_circle import refuse_circle
from runs.services.own_prompt import fields_of, own_slug, prompt_with


class ToolUse(NamedTuple):
    """A tool, or another agent, in the hands of an agent: exactly one of the two."""

    tool_id: int | None
    policy: str
    sub_agent_id: int | None = None


def token_of(agent: Agent) -> str:
    """Return what names this state of the draft; each save makes another."""
    return agent.updated_at.isoformat() if agent.pk else ""


@transaction.atomic
def save_agent(
    agent: Agent,
    *,
    uses: Sequence[ToolUse],
    instructions: str | None,
    seen: str | None = None,
) -> Agent:
    """Store `agent`; `instructions` None keeps the template it was given.

    With `seen`, the token of the draft that was edited, a later one is never
    overwritten: raises `DraftMoved`. Raises `AgentCircle` where it would come to call
    itself.
    """
    refuse_circle(agent, [use.sub_agent_id for use in uses if use.sub_agent_id])
    if agent.pk:
        stored = Agent.objects.select_for_update().get(pk=agent.pk)
        if seen is not None and token_of(stored) != seen:
            raise DraftMoved
    with editing(agent):
        if instructions is not None:
            if not agent.pk:  # its own prompt is named by its number
                agent.prompt = None
                agent.save()
            agent.prompt = _own_prompt(agent, instructions)
        agent.save()
    _save_uses(agent, uses)
    return agent


def _own_prompt(agent: Agent, instructions: str) -> PromptTemplate | None:
    """Write the agent's own prompt; none where the kind's is meant."""
    if not instructions.strip():
        return None
    prompt, _ = PromptTemplate.objects.update_or_create(
        slug=own_slug(agent),
        defaults={
            "owner": agent.owner,
            "visibility": agent.visibility,
            "name": f"Instructions of {agent.name}"[:120],
            "kind": agent.kind,
            **fields_of(prompt_with(KINDS[agent.kind], instructions)),
        },
    )
    return prompt


def _save_uses(agent: Agent, uses: Sequence[ToolUse]) -> None:
    tools = [use.tool_id for use in uses if use.tool_id]
    agents = [use.sub_agent_id for use in uses if use.sub_agent_id]
    agent.uses.exclude(Q(tool__in=tools) | Q(sub_agent__in=agents)).delete()
    for place, use in enumerate(uses):
        AgentTool.objects.update_or_create(
            agent=agent,
            tool_id=use.tool_id,
            sub_agent_id=use.sub_agent_id,
            defaults={"position": place, "policy": use.policy},
        )
