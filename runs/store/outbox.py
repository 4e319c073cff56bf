"""The outbox: the statement that changes a run's status also inserts deliveries.

So no event is lost, and none is sent for a change that did not happen. See
docs/decisions/0019.
"""

from functools import cache
from typing import NamedTuple

from django.contrib.auth.models import User
from django.db import DEFAULT_DB_ALIAS, connections

from runs.models import Delivery, Run, Webhook, WebhookEvent
from runs.models.runs import FINISHED_STATUSES
from runs.store.database_clock import build_sql_time
from runs.store.fast_insert import quote_name

EVENT_BY_STATUS: dict[str, WebhookEvent] = {
    Run.Status.AWAITING_APPROVAL: WebhookEvent.NEEDS_APPROVAL,
    Run.Status.AWAITING_DECISION: WebhookEvent.NEEDS_DECISION,
    Run.Status.SUCCEEDED: WebhookEvent.SUCCEEDED,
    Run.Status.LIMIT_REACHED: WebhookEvent.LIMIT_REACHED,
    Run.Status.FAILED: WebhookEvent.FAILED,
    Run.Status.CANCELED: WebhookEvent.CANCELED,
}
"""The event of a run that enters a status; other statuses have none."""

FACTS = (
    *("stop_reason", "error_code", "error_message"),
    *("model_calls", "input_tokens", "output_tokens", "cost"),
)
"""Columns of the run that an event reports as they were at that moment."""
RETURNED_COLUMNS = ("seq", "id", "owner_id", "agent_id", "is_test", *FACTS)


class OutboxInsert(NamedTuple):
    """How the deliveries of one change are inserted."""

    returning: str
    """Columns the UPDATE of the run returns: seq, key and others."""
    as_cte: str
    """The INSERT, from what the UPDATE returns under the name `fenced`."""
    as_statement: str
    """The same as a second statement; its placeholder is the run's key."""


def outbox_insert_for(run: Run, to: str) -> OutboxInsert | None:
    """Return the insert of a change's deliveries; None if it has no event.

    The end of a child run is part of its parent and has no event; that it needs a
    person has one.
    """
    event = EVENT_BY_STATUS.get(to)
    if event is None or run.parent_step_id is not None and to in FINISHED_STATUSES:
        return None
    return _build_outbox_insert(event)


@cache
def _build_outbox_insert(event: str) -> OutboxInsert:
    columns = ", ".join(RETURNED_COLUMNS)
    run = quote_name(Run._meta.db_table)
    return OutboxInsert(
        returning=columns,
        as_cte=_delivery_insert_sql(event, "fenced"),
        as_statement=_delivery_insert_sql(
            event,
            f"(SELECT {columns} FROM {run} WHERE id = %s)",  # noqa: S608  # our names
        ),
    )


def _delivery_insert_sql(event: str, source: str) -> str:
    """Return the INSERT of a delivery for each webhook that wants the event.

    On PostgreSQL it locks those webhooks until the commit: deleting one waits, and
    neither is refused.
    """
    on_postgresql = connections[DEFAULT_DB_ALIAS].vendor == "postgresql"
    build = "jsonb_build_object" if on_postgresql else "json_object"
    facts = ", ".join(f"'{name}', f.{name}" for name in FACTS)
    now = build_sql_time().sql
    holding = "FOR KEY SHARE OF w" if on_postgresql else ""
    return f"""
        INSERT INTO {quote_name(Delivery._meta.db_table)}
            (webhook_id, run_id, seq, event, facts, status, attempts, response_text,
             error, available_at, enqueued_at, created_at)
        SELECT w.id, f.id, f.seq, '{event}', {build}({facts}), 'waiting', 0, '', '',
            {now}, {now}, {now}
        FROM {source} f, {quote_name(Webhook._meta.db_table)} w,
            {quote_name(User._meta.db_table)} u
        WHERE u.id = w.owner_id AND u.is_active AND w.is_on AND NOT f.is_test
            AND (w.owner_id = f.owner_id OR w.everything AND u.is_superuser)
            AND (w.agent_id IS NULL OR w.agent_id = f.agent_id)
            AND CAST(w.events AS text) LIKE '%%"{event}"%%'
        {holding}
        ON CONFLICT DO NOTHING
        RETURNING id
    """  # noqa: S608  (our own names)
