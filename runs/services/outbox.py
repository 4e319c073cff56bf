"""The outbox: deliveries are written by the very statement that changes a run's status.

So none is lost and none is told of what did not happen. See docs/decisions/0019.
"""

from functools import cache
from typing import NamedTuple

from django.contrib.auth.models import User
from django.db import DEFAULT_DB_ALIAS, connections

from runs.models import Delivery, Event, Run, Webhook
from runs.models.runs import OVER
from runs.services.clock import moment
from runs.services.rows import quoted

EVENTS: dict[str, Event] = {
    Run.Status.AWAITING_APPROVAL: Event.NEEDS_APPROVAL,
    Run.Status.AWAITING_DECISION: Event.NEEDS_DECISION,
    Run.Status.SUCCEEDED: Event.SUCCEEDED,
    Run.Status.STOPPED: Event.STOPPED,
    Run.Status.FAILED: Event.FAILED,
    Run.Status.CANCELLED: Event.CANCELLED,
}
"""What is told of a run that comes into a state; nothing of the others."""

FACTS = (
    *("stop_reason", "error_code", "error_message"),
    *("model_calls", "input_tokens", "output_tokens", "cost"),
)
"""Columns of the run that are told as they were at that moment."""
COLUMNS = ("seq", "id", "owner_id", "agent_id", "is_test", *FACTS)


class Telling(NamedTuple):
    """How the deliveries of one change are written."""

    returning: str
    """The columns that the UPDATE of the run gives: its seq, its key, and others."""
    behind: str
    """The INSERT, from what the UPDATE gave under the name `fenced`."""
    alone: str
    """The same as a second statement, from the run whose key fills its hole."""


def telling_of(run: Run, to: str) -> Telling | None:
    """Return how those are told who want to know; None where nobody ever is.

    How a run ends that another one asked for is part of that one's story; that it needs
    a person is told.
    """
    event = EVENTS.get(to)
    if event is None or run.parent_step_id is not None and to in OVER:
        return None
    return _telling(event)


@cache
def _telling(event: str) -> Telling:
    columns = ", ".join(COLUMNS)
    run = quoted(Run._meta.db_table)
    return Telling(
        returning=columns,
        behind=_insert(event, "fenced"),
        alone=_insert(event, f"(SELECT {columns} FROM {run} WHERE id = %s)"),  # noqa: S608  (our own names)
    )


def _insert(event: str, source: str) -> str:
    """Return the INSERT of a delivery for each webhook that wants the event.

    On PostgreSQL it holds those webhooks until the commit: who deletes one meanwhile
    waits, and neither is refused.
    """
    on_postgresql = connections[DEFAULT_DB_ALIAS].vendor == "postgresql"
    build = "jsonb_build_object" if on_postgresql else "json_object"
    facts = ", ".join(f"'{name}', f.{name}" for name in FACTS)
    now = moment().sql
    holding = "FOR KEY SHARE OF w" if on_postgresql else ""
    return f"""
        INSERT INTO {quoted(Delivery._meta.db_table)}
            (webhook_id, run_id, seq, event, facts, status, attempts, answer, error,
             not_before, rung_at, created_at)
        SELECT w.id, f.id, f.seq, '{event}', {build}({facts}), 'waiting', 0, '', '',
            {now}, {now}, {now}
        FROM {source} f, {quoted(Webhook._meta.db_table)} w,
            {quoted(User._meta.db_table)} u
        WHERE u.id = w.owner_id AND u.is_active AND w.is_on AND NOT f.is_test
            AND (w.owner_id = f.owner_id OR w.everything AND u.is_superuser)
            AND (w.agent_id IS NULL OR w.agent_id = f.agent_id)
            AND CAST(w.events AS text) LIKE '%%"{event}"%%'
        {holding}
        ON CONFLICT DO NOTHING
        RETURNING id
    """  # noqa: S608  (our own names)
