"""Edit sessions: what one person types into a draft is one audit entry.

A session ends when its person pauses, when the draft is published or restored, and
before anyone else changes it; so an entry has the changes of one person only.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import models, transaction
from django.db.models.signals import pre_delete, pre_save
from django.utils import timezone

from runs.models import Agent, EditSession, PromptTemplate
from runs.services.spec.inline_prompt import extract_instructions, is_inline_prompt
from tools.audit.actor import Actor, act_as, get_current_actor
from tools.audit.changes import (
    FieldChanges,
    diff_values,
    load_stored_values,
    trim_text_pair,
)
from tools.audit.tracking import defer_audit, is_audit_deferred
from tools.audit.write import write_entry

SESSION_IDLE_TIMEOUT = timedelta(minutes=15)
"""Time without a save after which a session ends."""
SESSIONS_PER_SWEEP = 100
DRAFT_FIELDS = (
    *("name", "description", "kind", "provider", "model", "parameters", "prompt"),
    *("executor", "memory", "suggested_questions"),
    *("is_offered", "continues_without_client"),
)
"""The columns that a form types; who may use the agent is not part of them."""


@contextmanager
def edit_session(agent: Agent) -> Iterator[None]:
    """Add what is saved inside to the edit session of the acting user.

    The caller has locked the agent's row. A new agent, and changes by the server,
    are logged immediately, as everywhere.
    """
    who = get_current_actor()
    if not agent.pk or who.user is None:
        yield
        return
    session = EditSession.objects.filter(agent=agent).first()
    if session is not None and not continues_session(session, who):
        write_session_entry(session)
        session = None
    before = get_draft_values(agent.pk)
    with defer_audit():
        yield
    if get_draft_values(agent.pk) == before:
        return
    now = timezone.now()
    if session is not None:
        EditSession.objects.filter(pk=session.pk).update(last_at=now)
        return
    EditSession.objects.create(
        agent=agent,
        by=who.user.get_username(),
        by_number=who.user.pk,
        way=who.way,
        started_at=now,
        last_at=now,
        before=before,
    )


def continues_session(session: EditSession, who: Actor) -> bool:
    is_same = who.user is not None and session.by_number == who.user.pk
    return is_same and session.way == who.way and not is_session_idle(session)


def is_session_idle(session: EditSession) -> bool:
    """Whether its person has paused for long."""
    return bool(session.last_at < timezone.now() - SESSION_IDLE_TIMEOUT)


def end_edit_session(agent_pk: int, *, only_over: bool = False) -> None:
    """Log what was typed into a draft so far, if anything was."""
    with transaction.atomic():
        # A save locks the agent first, then the session; so does this.
        Agent.objects.select_for_update().filter(pk=agent_pk).first()
        session = EditSession.objects.filter(agent=agent_pk).first()
        if session is not None and (is_session_idle(session) or not only_over):
            write_session_entry(session)


def end_idle_edit_sessions() -> None:
    """Log the sessions of people who have paused."""
    over = EditSession.objects.filter(last_at__lt=timezone.now() - SESSION_IDLE_TIMEOUT)
    for pk in over.order_by("last_at").values_list("agent", flat=True)[
        :SESSIONS_PER_SWEEP
    ]:
        end_edit_session(pk, only_over=True)


def write_session_entry(session: EditSession) -> None:
    """Write the audit entry of a session under its person's name, and delete it."""
    changes = get_session_changes(session)
    person = User(pk=session.by_number, username=session.by)  # may be deleted
    if changes:
        with act_as(person, way=session.way):
            write_entry(
                "changed",
                "agent",
                session.agent,
                changes=changes,
                note=f"Draft edited from {format_minute(session.started_at)} to "
                f"{format_minute(session.last_at)} UTC.",
            )
    session.delete()


def format_minute(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"


def get_draft_values(pk: int) -> dict[str, Any]:
    """Return the editable values of an agent, as stored."""
    row = load_stored_values(Agent, pk) or {}
    names = [Agent._meta.get_field(name).attname for name in DRAFT_FIELDS]  # type: ignore[union-attr]  # columns
    prompt = PromptTemplate.objects.filter(pk=row.get("prompt_id") or 0).first()
    is_typed = prompt is not None and is_inline_prompt(prompt, Agent(pk=pk))
    words = extract_instructions(prompt) if prompt is not None and is_typed else ""
    return {**{name: row.get(name) for name in names}, "instructions": words}


def get_session_changes(session: EditSession) -> FieldChanges:
    """Return how the draft differs from what it was before the session."""
    before, after = session.before, get_draft_values(session.agent_id)
    others = {field.name for field in Agent._meta.concrete_fields} - set(DRAFT_FIELDS)
    found = diff_values(Agent, before, after, ignore=frozenset(others))
    texts = [before["instructions"], after["instructions"]]
    if texts[0] != texts[1]:
        found["instructions"] = trim_text_pair(*texts)
    return found


def connect_draft_signals() -> None:
    """End a session before the draft is changed in any other way."""
    for signal, model in (
        (pre_save, Agent),
        (pre_delete, Agent),
        (pre_save, PromptTemplate),
    ):
        signal.connect(
            end_session_before_change, sender=model, dispatch_uid=f"session {model}"
        )


def end_session_before_change(
    sender: type[models.Model], instance: Any, **more: Any
) -> None:
    """End the session of an agent that is changed, or whose instructions are."""
    if is_audit_deferred() or more.get("raw") or instance._state.adding:
        return
    if isinstance(instance, Agent):
        end_edit_session(instance.pk)
        return
    for agent in Agent.objects.filter(prompt=instance.pk):
        if is_inline_prompt(instance, agent):
            end_edit_session(agent.pk)
