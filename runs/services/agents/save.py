"""Save an agent with its tools and instructions in one transaction."""

from collections.abc import Sequence
from typing import NamedTuple

from django.db import transaction
from django.db.models import Q

from runs.engine.kinds.registry import AGENT_KINDS
from runs.models import Agent, AgentTool, PromptTemplate
from runs.services.agents.call_graph import refuse_cycle
from runs.services.agents.edit_sessions import edit_session
from runs.services.errors import DraftConflict
from runs.services.spec.inline_prompt import (
    build_prompt_with_instructions,
    get_prompt_fields,
    save_inline_prompt,
)


class ToolAssignment(NamedTuple):
    """A tool or another agent that an agent uses: exactly one of the two."""

    tool_id: int | None
    policy: str
    sub_agent_id: int | None = None


def get_draft_token(agent: Agent) -> str:
    """Return a token for this state of the draft; each save changes it."""
    return agent.updated_at.isoformat() if agent.pk else ""


@transaction.atomic
def save_agent(
    agent: Agent,
    *,
    uses: Sequence[ToolAssignment],
    instructions: str | None,
    seen: str | None = None,
) -> Agent:
    """Store `agent`; `instructions` None keeps its prompt.

    With `seen`, the token of the edited draft, a later draft is never overwritten:
    raises `DraftConflict`. Raises `AgentCycle` if it would call itself.
    """
    refuse_cycle(agent, [use.sub_agent_id for use in uses if use.sub_agent_id])
    if agent.pk:
        stored = Agent.objects.select_for_update().get(pk=agent.pk)
        if seen is not None and get_draft_token(stored) != seen:
            raise DraftConflict
    with edit_session(agent):
        if instructions is not None:
            if not agent.pk:  # its own prompt is named after its id
                agent.prompt = None
                agent.save()
            agent.prompt = _save_inline_prompt(agent, instructions)
        agent.save()
    _save_uses(agent, uses)
    return agent


def _save_inline_prompt(agent: Agent, instructions: str) -> PromptTemplate | None:
    """Save the agent's own prompt; None if it uses the prompt of its kind."""
    if not instructions.strip():
        return None
    kind = AGENT_KINDS[agent.kind]
    words = build_prompt_with_instructions(kind, instructions)
    return save_inline_prompt(agent, kind=agent.kind, fields=get_prompt_fields(words))


def _save_uses(agent: Agent, uses: Sequence[ToolAssignment]) -> None:
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
