"""A worker's commit as one value: the fence, and the rows that are written behind it.

PostgreSQL is sent one statement, which is a transaction of its own: the rows are
selected from the fenced UPDATE, so that there are none where it finds no run. On
SQLite, where a statement is a function call, the same is a short transaction. See
docs/decisions/0007.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections, models, transaction
from pydantic_core import to_json

from runs.models import AgentStep, ModelCall
from runs.services.held import LeaseLost
from runs.services.outbox import Telling
from runs.services.rows import field_of, insert, plain_fields, quoted, update
from tools.statement import execute

SEQS = ("created_seq", "changed_seq")
CHANGED_SEQ = "changed_seq"


@dataclass(frozen=True)
class Commit:
    """One write; `seq` is stamped on every row in it."""

    fence: str
    """`UPDATE runs_run SET seq = seq + 1 … RETURNING seq`."""
    values: Sequence[Any]
    """What fills its holes."""
    call: ModelCall | None = None
    """A new row."""
    steps: Sequence[AgentStep] = ()
    """New rows, of that call."""
    changed: Sequence[AgentStep] = ()
    columns: tuple[str, ...] = ()
    """Which attributes of the `changed` rows are written."""
    telling: Telling | None = None
    """Who is told; the fence then returns the columns that it names."""
    told: list[int] = field(default_factory=list)
    """The keys of the deliveries, once it is sent."""


@dataclass(frozen=True)
class NewReply:
    """A reply to be stored, and what it changes in the row of its run."""

    call: ModelCall
    counts: str
    """Assignments."""
    counted: Sequence[Any]
    condition: str
    """That the run is where the reply belongs."""
    expected: Sequence[Any]


def send(commit: Commit) -> int:
    """Write it, set keys and seqs on its rows, and return the run's new seq.

    Raises `LeaseLost` where the fence finds no run; nothing is written then. Outside of
    a transaction it is durable when this returns.
    """
    at_once = connections[DEFAULT_DB_ALIAS].vendor == "postgresql"
    seq = _in_one_statement(commit) if at_once else _one_by_one(commit)
    if seq is None:
        raise LeaseLost
    for row in (commit.call, *commit.steps):
        if row is not None:
            row.created_seq = row.changed_seq = seq
    for row in commit.changed:
        row.changed_seq = seq
    return seq


def _in_one_statement(commit: Commit) -> int | None:
    records = [
        to_json([_record(row, names) for row in rows]).decode()
        for rows, names in (
            ([commit.call] if commit.call else [], _all_names(ModelCall)),
            (commit.steps, _all_names(AgentStep)),
            (commit.changed, ("id", *commit.columns)),
        )
        if rows
    ]
    sql = _statement(
        commit.fence,
        commit.columns,
        has_call=commit.call is not None,
        has_steps=bool(commit.steps),
        telling=commit.telling,
    )
    found = execute(sql, [*commit.values, *records]).row
    if found is None:
        return None
    seq, call_id, step_ids, told = found
    commit.told.extend(told or ())
    if commit.call is not None:
        _is_stored(commit.call, call_id)
    for step in commit.steps:
        step.model_call_id = call_id
        _is_stored(step, step_ids[str(step.index)])
    return int(seq)


def _is_stored(row: models.Model, key: int) -> None:
    row.pk = key
    row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS


@cache
def _statement(
    fence: str,
    columns: tuple[str, ...],
    *,
    has_call: bool,
    has_steps: bool,
    telling: Telling | None,
) -> str:
    """Return the statement; its texts are our own names, values fill the holes."""
    parts = [f"fenced AS ({fence})"]
    call_id = step_ids = told = "NULL"
    if has_call:
        call_id = "(SELECT id FROM new_call)"
        parts.append(f"new_call AS ({_insert(ModelCall, {})} RETURNING id)")
    if has_steps:
        step_ids = '(SELECT json_object_agg("index", id) FROM new_steps)'
        made = _insert(AgentStep, {"model_call_id": "(SELECT id FROM new_call)"})
        parts.append(f'new_steps AS ({made} RETURNING id, "index")')
    if columns:
        parts.append(f"changed AS ({_update(AgentStep, columns)})")
    if telling is not None:
        told = "(SELECT json_agg(id) FROM told)"
        parts.append(f"told AS ({telling.behind})")
    found = f"seq, {call_id}, {step_ids}, {told}"
    return f"WITH {', '.join(parts)} SELECT {found} FROM fenced"  # noqa: S608


def _insert(model: type[models.Model], known: dict[str, str]) -> str:
    """Return an INSERT of the records in the next hole."""
    known = {**known, **dict.fromkeys(SEQS, "fenced.seq")}
    columns = [field.column for field in plain_fields(model)]
    values = [known.get(column, f"r.{quoted(column)}") for column in columns]
    table = quoted(model._meta.db_table)
    return (
        f"INSERT INTO {table} ({', '.join(map(quoted, columns))}) "  # noqa: S608
        f"SELECT {', '.join(values)} "
        f"FROM fenced, json_populate_recordset(NULL::{table}, %s) r"
    )


def _update(model: type[models.Model], names: tuple[str, ...]) -> str:
    """Return an UPDATE of the named columns by the records in the next hole."""
    columns = [quoted(field_of(model, name).column) for name in names]
    changes = ", ".join(f"{column} = r.{column}" for column in columns)
    table = quoted(model._meta.db_table)
    return (
        f"UPDATE {table} t SET {changes}, {CHANGED_SEQ} = fenced.seq "  # noqa: S608
        f"FROM fenced, json_populate_recordset(NULL::{table}, %s) r WHERE t.id = r.id"
    )


def _record(row: models.Model, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the attributes by their columns, which all have the same name."""
    values = row.__dict__
    return {name: values[name] for name in names}


@cache
def _all_names(model: type[models.Model]) -> tuple[str, ...]:
    return tuple(field.attname for field in plain_fields(model))


def _one_by_one(commit: Commit) -> int | None:
    with transaction.atomic(savepoint=False):
        found = execute(commit.fence, commit.values).row
        if found is None:
            return None
        seq = int(found[0])
        if commit.call is not None:
            commit.call.created_seq = commit.call.changed_seq = seq
            insert(commit.call)
        for step in commit.steps:
            assert commit.call is not None
            step.model_call_id = commit.call.pk
            step.created_seq = step.changed_seq = seq
            insert(step)
        for step in commit.changed:
            step.changed_seq = seq
            update(step, (*commit.columns, CHANGED_SEQ))
        if commit.telling is not None:
            written = execute(commit.telling.alone, [found[1]]).rows
            commit.told.extend(key for (key,) in written)
    return seq
