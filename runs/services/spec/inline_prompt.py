"""Instructions written on an agent's page: a prompt of that agent alone."""

from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet

from runs.engine.kinds.kind import AgentKind
from runs.engine.kinds.registry import AGENT_KINDS
from runs.engine.types import PromptMessage, PromptSpec
from runs.models import Agent, PromptTemplate
from runs.models.agents import INLINE_SLUG
from tools.ownership import free_slug


def get_inline_prompt_slug(agent: Agent) -> str:
    return f"instructions-{agent.pk}"


def is_inline_prompt(prompt: PromptTemplate, agent: Agent) -> bool:
    """Whether `prompt` was written on the page of `agent`."""
    return prompt.slug == get_inline_prompt_slug(agent)


def list_library_prompts(user: User) -> QuerySet[PromptTemplate]:
    """Return the prompts that `user` may choose, without those of single agents."""
    return PromptTemplate.objects.usable_by(user).exclude(slug__regex=INLINE_SLUG)


def find_inline_prompt(agent: Agent) -> PromptTemplate | None:
    """Return the agent's own prompt, locked; None if it has none.

    A prompt of somebody else, or of another agent, that has the slug gets another one:
    whoever writes it must not read or change the instructions of this agent.
    """
    slug = get_inline_prompt_slug(agent)
    row = PromptTemplate.objects.select_for_update().filter(slug=slug).first()
    if row is None:
        return None
    others = Agent.objects.filter(prompt=row).exclude(pk=agent.pk)
    if row.owner_id == agent.owner_id and not others.exists():
        return row
    row.slug = free_slug(PromptTemplate, f"prompt-{slug}")
    row.save(update_fields=["slug"])
    return None


def save_inline_prompt(
    agent: Agent, *, kind: str, fields: dict[str, Any]
) -> PromptTemplate:
    prompt = find_inline_prompt(agent)
    if prompt is None:
        prompt = PromptTemplate(slug=get_inline_prompt_slug(agent))
    prompt.owner, prompt.visibility = agent.owner, agent.visibility
    prompt.name, prompt.kind = f"Instructions of {agent.name}"[:120], kind
    prompt.partials, prompt.archived_at = {}, None
    for name, value in fields.items():
        setattr(prompt, name, value)
    prompt.save()
    return prompt


def build_prompt_with_instructions(kind: AgentKind, instructions: str) -> PromptSpec:
    """Return the kind's own prompt with `instructions`.

    They replace the system message if the model calls functions; other kinds
    explain their format there, so instructions come before it.
    """
    own = kind.prompt
    if not instructions.strip():
        return own
    if own.messages is None:
        return PromptSpec(template=f"{instructions.strip()}\n\n{own.template}")
    text = instructions.strip()
    rest = own.messages
    if rest and rest[0].role == "system":
        if not kind.needs_functions:
            text = f"{text}\n\n{rest[0].template}"
        rest = rest[1:]
    return PromptSpec(messages=(PromptMessage(role="system", template=text), *rest))


def build_prompt_for_kind(kind: str, instructions: str) -> PromptSpec | None:
    """Return the prompt of a kind with instructions; None for an unknown kind."""
    found = AGENT_KINDS.get(kind)
    return build_prompt_with_instructions(found, instructions) if found else None


def extract_instructions(prompt: PromptTemplate) -> str:
    """Return the instructions in a prompt of `build_prompt_with_instructions`."""
    kind = AGENT_KINDS.get(prompt.kind)
    if kind is None:
        return prompt.template
    if prompt.messages:
        first: dict[str, Any] = prompt.messages[0]
        text = str(first["template"])
        own = kind.prompt.messages
        if own and own[0].role == "system" and not kind.needs_functions:
            return text.removesuffix(own[0].template).rstrip("\n")
        return text
    return prompt.template.removesuffix(kind.prompt.template or "").rstrip("\n")


def get_prompt_fields(prompt: PromptSpec) -> dict[str, Any]:
    """Return the columns of a `PromptTemplate` that hold `prompt`."""
    messages = prompt.messages
    return {
        "template": prompt.template or "",
        "messages": None
        if messages is None
        else [message.model_dump() for message in messages],
    }
