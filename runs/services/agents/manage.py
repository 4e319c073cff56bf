"""Archive and duplicate definitions; share and delete agents."""

from typing import TypeVar

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, ProtectedError, QuerySet, RestrictedError
from django.utils import timezone

from runs.models import (
    Agent,
    AgentTool,
    Conversation,
    Hook,
    PromptTemplate,
    Provider,
    Run,
    Schedule,
    Webhook,
)
from runs.services.spec.inline_prompt import (
    find_inline_prompt,
    get_inline_prompt_slug,
    is_inline_prompt,
)
from tools.ownership import Owned, Visibility


def archive_definition(thing: Owned) -> None:
    """Hide `thing` from lists and choices; its runs stay."""
    _set_archived(thing, away=True)


def unarchive_definition(thing: Owned) -> None:
    _set_archived(thing, away=False)


def _set_archived(thing: Owned, *, away: bool) -> None:
    thing.archived_at = timezone.now() if away else None
    thing.save(update_fields=["archived_at", "updated_at"])


@transaction.atomic
def change_visibility(agent: Agent, visibility: Visibility) -> None:
    """Share `agent` with everyone, or with nobody; its groups are removed."""
    agent.visibility = visibility
    agent.save(update_fields=["visibility", "updated_at"])
    agent.groups.clear()
    share_inline_prompt(agent)


def share_inline_prompt(agent: Agent) -> None:
    """Give the prompt that is the agent's own the visibility of the agent."""
    prompt = agent.prompt
    if prompt is None or not is_inline_prompt(prompt, agent):
        return
    if prompt.visibility != agent.visibility:
        prompt.visibility = agent.visibility
        prompt.save(update_fields=["visibility", "updated_at"])
    prompt.groups.clear()


def find_deletable_agents(agents: QuerySet[Agent]) -> QuerySet[Agent]:
    """Return the agents to which nothing refers: no run, conversation or schedule.

    The others can be archived.
    """
    return agents.filter(
        ~Exists(Run.objects.filter(agent=OuterRef("pk"))),
        ~Exists(Conversation.objects.filter(agent=OuterRef("pk"))),
        ~Exists(Schedule.objects.filter(agent=OuterRef("pk"))),
        ~Exists(Webhook.objects.filter(agent=OuterRef("pk"))),
        ~Exists(Hook.objects.filter(agent=OuterRef("pk"))),
        ~Exists(AgentTool.objects.filter(sub_agent=OuterRef("pk"))),
    )


def delete_agents(agents: QuerySet[Agent]) -> int:
    """Delete the agents to which nothing refers, and return how many."""
    done = 0
    for agent in find_deletable_agents(agents).select_related("prompt"):
        prompt = agent.prompt
        has_inline_prompt = prompt is not None and is_inline_prompt(prompt, agent)
        try:
            with transaction.atomic():
                agent.delete()
                if prompt is not None and has_inline_prompt:
                    prompt.delete()
        except (ProtectedError, RestrictedError):
            continue  # a run has started since
        done += 1
    return done


D = TypeVar("D", bound=Owned)


@transaction.atomic
def duplicate_definition(thing: D, *, by: User) -> D:
    """Return a private copy of `thing` that belongs to `by`.

    An agent's copy has the same tools and its own instructions; secrets of a
    provider are copied only for its owner.
    """
    copy = type(thing)._default_manager.get(pk=thing.pk)
    copy.pk, copy.slug, copy.archived_at = None, "", None
    copy._state.adding = True
    copy.owner, copy.visibility = by, Visibility.PRIVATE
    if isinstance(copy, Agent):
        copy.is_offered = False
    copy.name = f"{thing}"[:113] + " (copy)"  # type: ignore[attr-defined]  # all have it
    if hasattr(copy, "sealed_key") and thing.owner_id != by.pk:
        copy.sealed_key = copy.sealed_headers = ""  # type: ignore[attr-defined]
        copy.key_env = ""  # type: ignore[attr-defined]
    if isinstance(copy, Provider):
        copy.reset_test()
    copy.save()
    if isinstance(copy, Agent) and isinstance(thing, Agent):
        _copy_tools_and_prompt(thing, copy)
    return copy


def _copy_tools_and_prompt(agent: Agent, copy: Agent) -> None:
    for use in agent.uses.all():
        use.pk, use.agent = None, copy
        use._state.adding = True
        use.save()
    if agent.prompt is not None and is_inline_prompt(agent.prompt, agent):
        find_inline_prompt(copy)  # the slug is free after this
        own = PromptTemplate.objects.get(pk=agent.prompt.pk)
        own.pk, own.slug = None, get_inline_prompt_slug(copy)
        own._state.adding = True
        own.owner, own.name = copy.owner, f"Instructions of {copy.name}"[:120]
        own.save()
        copy.prompt = own
        copy.save(update_fields=["prompt"])
