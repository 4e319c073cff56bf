"""A worker's commit as one value: the fence and the rows written behind it.

PostgreSQL gets one statement, which is its own transaction: the rows are selected from
the fenced UPDATE, so none is written if it finds no run. On SQLite, where a statement
is a function call, the same is a short transaction. See docs/decisions/0007.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections, models, transaction
from pydantic_core import to_json

from runs.models import AgentStep, ModelCall
from runs.store.claims import LeaseLost
from runs.store.fast_insert import (
    get_model_field,
    get_non_key_fields,
    insert_row,
    quote_name,
    update_row,
)
from runs.store.outbox import OutboxInsert
from tools.statement import execute_statement

SEQS = ("created_seq", "changed_seq")
CHANGED_SEQ = "changed_seq"


@dataclass(frozen=True)
class Commit:
    """One write; every row in it is stamped with the new `seq`."""

    fence: str
    """`UPDATE runs_run SET seq = seq + 1 … RETURNING seq`."""
    values: Sequence[Any]
    """The values of its placeholders."""
    call: ModelCall | None = None
    """A new row."""
    steps: Sequence[AgentStep] = ()
    """New rows of that call."""
    changed: Sequence[AgentStep] = ()
    columns: tuple[str, ...] = ()
    """Attributes of the `changed` rows to write."""
    outbox_insert: OutboxInsert | None = None
    """The deliveries to insert; the fence then returns the columns it needs."""
    delivery_ids: list[int] = field(default_factory=list)
    """Keys of the deliveries, after the write."""


@dataclass(frozen=True)
class NewReply:
    """A reply to store, and its changes of the run's row."""

    call: ModelCall
    assignments_sql: str
    assignment_values: Sequence[Any]
    condition_sql: str
    """Condition that the run is where the reply belongs."""
    condition_values: Sequence[Any]


def write_commit(commit: Commit) -> int:
    """Write it, set keys and seqs on its rows, and return the run's new seq.

    Raises `LeaseLost` if the fence finds no run; nothing is written then. Outside a
    transaction it is durable when this returns.
    """
    at_once = connections[DEFAULT_DB_ALIAS].vendor == "postgresql"
    seq = _write_in_one_statement(commit) if at_once else _write_row_by_row(commit)
    if seq is None:
        raise LeaseLost
    for row in (commit.call, *commit.steps):
        if row is not None:
            row.created_seq = row.changed_seq = seq
    for row in commit.changed:
        row.changed_seq = seq
    return seq


def _write_in_one_statement(commit: Commit) -> int | None:
    records = [
        to_json([_column_values(row, names) for row in rows]).decode()
        for rows, names in (
            ([commit.call] if commit.call else [], _column_names(ModelCall)),
            (commit.steps, _column_names(AgentStep)),
            (commit.changed, ("id", *commit.columns)),
        )
        if rows
    ]
    sql = _build_commit_sql(
        commit.fence,
        commit.columns,
        has_call=commit.call is not None,
        has_steps=bool(commit.steps),
        outbox_insert=commit.outbox_insert,
    )
    found = execute_statement(sql, [*commit.values, *records]).row
    if found is None:
        return None
    seq, call_id, step_ids, delivery_ids = found
    commit.delivery_ids.extend(delivery_ids or ())
    if commit.call is not None:
        _mark_as_stored(commit.call, call_id)
    for step in commit.steps:
        step.model_call_id = call_id
        _mark_as_stored(step, step_ids[str(step.index)])
    return int(seq)


def _mark_as_stored(row: models.Model, key: int) -> None:
    row.pk = key
    row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS


@cache
def _build_commit_sql(
    fence: str,
    columns: tuple[str, ...],
    *,
    has_call: bool,
    has_steps: bool,
    outbox_insert: OutboxInsert | None,
) -> str:
    parts = [f"fenced AS ({fence})"]
    call_id = step_ids = delivery_ids = "NULL"
    if has_call:
        call_id = "(SELECT id FROM new_call)"
        parts.append(f"new_call AS ({_insert_cte_sql(ModelCall, {})} RETURNING id)")
    if has_steps:
        step_ids = '(SELECT json_object_agg("index", id) FROM new_steps)'
        made = _insert_cte_sql(
            AgentStep, {"model_call_id": "(SELECT id FROM new_call)"}
        )
        parts.append(f'new_steps AS ({made} RETURNING id, "index")')
    if columns:
        parts.append(f"changed AS ({_update_cte_sql(AgentStep, columns)})")
    if outbox_insert is not None:
        delivery_ids = "(SELECT json_agg(id) FROM deliveries)"
        parts.append(f"deliveries AS ({outbox_insert.as_cte})")
    found = f"seq, {call_id}, {step_ids}, {delivery_ids}"
    return f"WITH {', '.join(parts)} SELECT {found} FROM fenced"  # noqa: S608


def _insert_cte_sql(model: type[models.Model], known: dict[str, str]) -> str:
    """Return an INSERT of the records in the next placeholder."""
    known = {**known, **dict.fromkeys(SEQS, "fenced.seq")}
    columns = [field.column for field in get_non_key_fields(model)]
    values = [known.get(column, f"r.{quote_name(column)}") for column in columns]
    table = quote_name(model._meta.db_table)
    return (
        f"INSERT INTO {table} ({', '.join(map(quote_name, columns))}) "  # noqa: S608
        f"SELECT {', '.join(values)} "
        f"FROM fenced, json_populate_recordset(NULL::{table}, %s) r"
    )


def _update_cte_sql(model: type[models.Model], names: tuple[str, ...]) -> str:
    """Return an UPDATE of the columns by the records in the next placeholder."""
    columns = [quote_name(get_model_field(model, name).column) for name in names]
    changes = ", ".join(f"{column} = r.{column}" for column in columns)
    table = quote_name(model._meta.db_table)
    return (
        f"UPDATE {table} t SET {changes}, {CHANGED_SEQ} = fenced.seq "  # noqa: S608
        f"FROM fenced, json_populate_recordset(NULL::{table}, %s) r WHERE t.id = r.id"
    )


def _column_values(row: models.Model, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the attributes by column; both have the same name."""
    values = row.__dict__
    return {name: values[name] for name in names}


@cache
def _column_names(model: type[models.Model]) -> tuple[str, ...]:
    return tuple(field.attname for field in get_non_key_fields(model))


def _write_row_by_row(commit: Commit) -> int | None:
    with transaction.atomic(savepoint=False):
        found = execute_statement(commit.fence, commit.values).row
        if found is None:
            return None
        seq = int(found[0])
        if commit.call is not None:
            commit.call.created_seq = commit.call.changed_seq = seq
            insert_row(commit.call)
        for step in commit.steps:
            assert commit.call is not None
            step.model_call_id = commit.call.pk
            step.created_seq = step.changed_seq = seq
            insert_row(step)
        for step in commit.changed:
            step.changed_seq = seq
            update_row(step, (*commit.columns, CHANGED_SEQ))
        if commit.outbox_insert is not None:
            written = execute_statement(
                commit.outbox_insert.as_statement, [found[1]]
            ).rows
            commit.delivery_ids.extend(key for (key,) in written)
    return seq
