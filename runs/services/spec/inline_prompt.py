"""Instructions written on an agent's own page: kept as a prompt of that agent alone."""

from typing import Any

from runs.engine.kinds.kind import Kind
from runs.engine.kinds.registry import KINDS
from runs.engine.types import PromptMessage, PromptSpec
from runs.models import Agent, PromptTemplate


def own_slug(agent: Agent) -> str:
    """Return the slug by which an agent's own prompt is known."""
    return f"instructions-{agent.pk}"


def is_own(prompt: PromptTemplate, agent: Agent) -> bool:
    """Whether `prompt` was written on the page of `agent`, and is its alone."""
    return prompt.slug == own_slug(agent)


def prompt_with(kind: Kind, instructions: str) -> PromptSpec:
    """Return the kind's own prompt with `instructions`.

    They take the place of the system message where the model calls functions; the
    other kinds explain their format there, so instructions stand before it.
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


def prompt_with_kind(kind: str, instructions: str) -> PromptSpec | None:
    """Return the prompt of the kind by that name; None where there is none."""
    found = KINDS.get(kind)
    return prompt_with(found, instructions) if found else None


def instructions_in(prompt: PromptTemplate) -> str:
    """Return the instructions that `prompt_with` put into an own prompt."""
    kind = KINDS.get(prompt.kind)
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


def fields_of(prompt: PromptSpec) -> dict[str, Any]:
    """Return the columns of a `PromptTemplate` that hold `prompt`."""
    messages = prompt.messages
    return {
        "template": prompt.template or "",
        "messages": None
        if messages is None
        else [message.model_dump() for message in messages],
    }
