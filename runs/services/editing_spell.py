"""Editing spells: what one person types into a draft is one audit entry.

A spell ends when its person pauses, when the draft is published or restored, and before
anybody else changes it; so an entry holds the changes of one person and no others.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import models, transaction
from django.db.models.signals import pre_delete, pre_save
from django.utils import timezone

from runs.models import Agent, EditingSpell, PromptTemplate
from runs.services.own_prompt import instructions_in, is_own
from tools.audit.actor import Actor, acting, actor
from tools.audit.changes import Changes, differences, stored, texts_as_kept
from tools.audit.follow import is_told_later, told_later
from tools.audit.write import write_entry

PAUSE = timedelta(minutes=15)
"""Without a save, after which a spell is over."""
AT_ONCE = 100
TYPED = (
    *("name", "description", "kind", "provider", "model", "parameters", "prompt"),
    *("executor", "memory"),
)
"""The columns of a draft; who may use the agent is no part of it."""


@contextmanager
def editing(agent: Agent) -> Iterator[None]:
    """Count what is saved inside to the spell of who is acting.

    The caller holds the agent's row. A new agent and what the server does are told at
    once, as everywhere.
    """
    who = actor()
    if not agent.pk or who.user is None:
        yield
        return
    spell = EditingSpell.objects.filter(agent=agent).first()
    if spell is not None and not goes_on(spell, who):
        tell(spell)
        spell = None
    before = draft_of(agent.pk)
    with told_later():
        yield
    if draft_of(agent.pk) == before:
        return
    now = timezone.now()
    if spell is not None:
        EditingSpell.objects.filter(pk=spell.pk).update(last_at=now)
        return
    EditingSpell.objects.create(
        agent=agent,
        by=who.user.get_username(),
        by_number=who.user.pk,
        way=who.way,
        began_at=now,
        last_at=now,
        before=before,
    )


def goes_on(spell: EditingSpell, who: Actor) -> bool:
    """Whether a save by `who` belongs to the spell."""
    is_same = who.user is not None and spell.by_number == who.user.pk
    return is_same and spell.way == who.way and not is_over(spell)


def is_over(spell: EditingSpell) -> bool:
    """Whether its person has paused for long."""
    return bool(spell.last_at < timezone.now() - PAUSE)


def end_spell(agent_pk: int, *, only_over: bool = False) -> None:
    """Tell what was typed into a draft so far, if anything was."""
    with transaction.atomic():
        # Who saves holds the agent first, then the spell; so does this.
        Agent.objects.select_for_update().filter(pk=agent_pk).first()
        spell = EditingSpell.objects.filter(agent=agent_pk).first()
        if spell is not None and (is_over(spell) or not only_over):
            tell(spell)


def end_quiet_spells() -> None:
    """Tell the spells whose persons have paused."""
    over = EditingSpell.objects.filter(last_at__lt=timezone.now() - PAUSE)
    for pk in over.order_by("last_at").values_list("agent", flat=True)[:AT_ONCE]:
        end_spell(pk, only_over=True)


def tell(spell: EditingSpell) -> None:
    """Write the entry of a spell, under the name of who typed, and forget it."""
    changes = changes_since(spell)
    person = User(pk=spell.by_number, username=spell.by)  # may be gone by now
    if changes:
        with acting(person, way=spell.way):
            write_entry(
                "changed",
                "agent",
                spell.agent,
                changes=changes,
                note=f"The draft, saved from {moment(spell.began_at)} to "
                f"{moment(spell.last_at)} UTC.",
            )
    spell.delete()


def moment(at: datetime) -> str:
    """Return a time to the minute."""
    return f"{at:%Y-%m-%d %H:%M}"


def draft_of(pk: int) -> dict[str, Any]:
    """Return what can be typed of an agent, as it is stored."""
    row = stored(Agent, pk) or {}
    names = [Agent._meta.get_field(name).attname for name in TYPED]  # type: ignore[union-attr]  # columns
    prompt = PromptTemplate.objects.filter(pk=row.get("prompt_id") or 0).first()
    is_typed = prompt is not None and is_own(prompt, Agent(pk=pk))
    words = instructions_in(prompt) if prompt is not None and is_typed else ""
    return {**{name: row.get(name) for name in names}, "instructions": words}


def changes_since(spell: EditingSpell) -> Changes:
    """Return how the draft differs from what it was before the spell."""
    before, after = spell.before, draft_of(spell.agent_id)
    others = {field.name for field in Agent._meta.concrete_fields} - set(TYPED)
    found = differences(Agent, before, after, ignore=frozenset(others))
    texts = [before["instructions"], after["instructions"]]
    if texts[0] != texts[1]:
        found["instructions"] = texts_as_kept(*texts)
    return found


def follow_drafts() -> None:
    """End a spell before the draft is changed in any other way."""
    for signal, model in (
        (pre_save, Agent),
        (pre_delete, Agent),
        (pre_save, PromptTemplate),
    ):
        signal.connect(before_change, sender=model, dispatch_uid=f"spell {model}")


def before_change(sender: type[models.Model], instance: Any, **more: Any) -> None:
    """End the spell of the agent that is changed, or whose instructions are."""
    if is_told_later() or more.get("raw") or instance._state.adding:
        return
    if isinstance(instance, Agent):
        end_spell(instance.pk)
        return
    for agent in Agent.objects.filter(prompt=instance.pk):
        if is_own(instance, agent):
            end_spell(agent.pk)
