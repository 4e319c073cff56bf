"""Copying a definition: the copy belongs to who made it, and nobody else sees it."""

from typing import TypeVar

from django.contrib.auth.models import User
from django.db import transaction

from runs.models import Agent, PromptTemplate, Provider
from runs.services.own_prompt import is_own, own_slug
from tools.ownership import Owned, Visibility

D = TypeVar("D", bound=Owned)


@transaction.atomic
def duplicate_definition(thing: D, *, by: User) -> D:
    """Return a private copy of `thing` that belongs to `by`.

    An agent's copy has the same tools and its own instructions; secrets of a provider
    are copied only for its owner.
    """
    copy = type(thing)._default_manager.get(pk=thing.pk)
    copy.pk, copy.slug, copy.archived_at = None, "", None
    copy._state.adding = True
    copy.owner, copy.visibility = by, Visibility.PRIVATE
    copy.name = f"{thing}"[:113] + " (copy)"  # type: ignore[attr-defined]  # all have it
    if hasattr(copy, "sealed_key") and thing.owner_id != by.pk:
        copy.sealed_key = copy.sealed_headers = ""  # type: ignore[attr-defined]
        copy.key_env = ""  # type: ignore[attr-defined]
    if isinstance(copy, Provider):
        copy.forget_test()
    copy.save()
    if isinstance(copy, Agent) and isinstance(thing, Agent):
        _copy_rest(thing, copy)
    return copy


def _copy_rest(agent: Agent, copy: Agent) -> None:
    for use in agent.uses.all():
        use.pk, use.agent = None, copy
        use._state.adding = True
        use.save()
    if agent.prompt is not None and is_own(agent.prompt, agent):
        own = PromptTemplate.objects.get(pk=agent.prompt.pk)
        own.pk, own.slug = None, own_slug(copy)
        own._state.adding = True
        own.owner, own.name = copy.owner, f"Instructions of {copy.name}"[:120]
        own.save()
        copy.prompt = own
        copy.save(update_fields=["prompt"])
