"""The previous release keeps working on the migrated database during an upgrade.

Its web servers and workers know neither new columns nor that old ones are gone. So a
new column is nullable or has a default in the database (`db_default`), and a column
that is no longer used stays for one release. Indexes of large tables are built while it
writes to them.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest
from django.db import connection
from django.db.migrations import (
    AddConstraint,
    AddField,
    AddIndex,
    AlterField,
    RemoveField,
    SeparateDatabaseAndState,
)
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models import (
    CASCADE,
    CharField,
    Field,
    ForeignKey,
    Index,
    IntegerField,
    UniqueConstraint,
)

from tests.models.release_data import PREVIOUS_RELEASE
from tools.concurrent_index import AddIndexConcurrently

pytestmark = pytest.mark.django_db


REMOVED: dict[str, str] = {}
"""Columns, as `table.column`, that the previous release does not need, and why."""


class Column(NamedTuple):
    """A column of the migrated database."""

    may_be_left_out: bool
    """Whether an INSERT that does not name it succeeds."""


def find_problems(previous: ProjectState) -> list[str]:
    """Return what the release with these tables could not read or write."""
    found = []
    for table, names in sorted(columns_of(previous).items()):
        now = describe(table)
        found += [
            f"{table}.{name} is gone"
            for name in sorted(names - now.keys())
            if f"{table}.{name}" not in REMOVED
        ]
        found += [
            f"{table}.{name} is NOT NULL without db_default"
            for name in sorted(now.keys() - names)
            if not now[name].may_be_left_out
        ]
    return found


def columns_of(state: ProjectState) -> dict[str, set[str]]:
    """Return the columns of each of our tables."""
    apps = {app for app, _ in PREVIOUS_RELEASE}
    return {
        model._meta.db_table: {field.column for field in model._meta.local_fields}
        for model in state.apps.get_models(include_auto_created=True)
        if model._meta.app_label in apps and not model._meta.proxy
    }


def describe(table: str) -> dict[str, Column]:
    with connection.cursor() as cursor:
        rows = connection.introspection.get_table_description(cursor, table)
    return {
        row.name: Column(bool(row.null_ok) or row.default is not None) for row in rows
    }


def previous_release() -> ProjectState:
    state: ProjectState = load_migrations().project_state(PREVIOUS_RELEASE)
    return state


def load_migrations() -> MigrationLoader:
    """Return those that run on a database of the previous release."""
    return MigrationLoader(connection, replace_migrations=False)


def test_the_previous_release_reads_and_writes_the_migrated_database():
    assert find_problems(previous_release()) == []


@pytest.mark.parametrize(
    ("name", "problems"),
    [
        pytest.param(
            "events",
            ["runs_webhook.events is NOT NULL without db_default"],
            id="only-a-python-default",
        ),
        pytest.param("failing_since", [], id="nullable"),
    ],
)
def test_a_new_column_needs_a_default_in_the_database(name, problems):
    state = previous_release()
    RemoveField("webhook", name).state_forwards("runs", state)

    assert find_problems(state) == problems


def test_a_column_that_is_gone_is_found():
    state = previous_release()
    AddField("webhook", "old", IntegerField()).state_forwards("runs", state)

    assert find_problems(state) == ["runs_webhook.old is gone"]


LARGE_TABLES = {
    *("run", "agentstep", "modelcall", "modelattempt", "stepmedia", "runtool"),
    *("runsearchrow", "delivery", "idempotencykey", "auditentry"),
}
"""Models, in lower case, whose tables may have millions of rows."""


def find_blocking_operations(
    operations: Iterable[Operation], previous: ProjectState
) -> list[str]:
    """Return what keeps others from writing to a large table while it is scanned."""
    tables = {name: model.fields for (_, name), model in previous.models.items()}
    found = []
    for one in operations:
        if isinstance(one, SeparateDatabaseAndState):
            found += find_blocking_operations(one.database_operations, previous)
        model = str(getattr(one, "model_name", "")).lower()
        if model in LARGE_TABLES & tables.keys() and is_blocking(one, tables[model]):
            found.append(one.describe())
    return found


def is_blocking(operation: Operation, columns: dict[str, "Field[Any, Any]"]) -> bool:
    """Whether an operation builds an index; `columns` are as they were before."""
    if isinstance(operation, AddIndex):
        return not isinstance(operation, AddIndexConcurrently)
    if isinstance(operation, AddField | AlterField):
        field, before = operation.field, columns.get(operation.name)
        gets_index = field.db_index and not (before and before.db_index)
        return gets_index or (field.unique and not (before and before.unique))
    return isinstance(operation, AddConstraint)


def test_new_migrations_build_indexes_of_large_tables_without_blocking():
    loader = load_migrations()
    previous = previous_release()
    released = {
        key for leaf in PREVIOUS_RELEASE for key in loader.graph.forwards_plan(leaf)
    }

    found = {
        key: problems
        for key, migration in loader.disk_migrations.items()
        if key[0] in {"runs", "tools"} and not (key in released or migration.replaces)
        if (problems := find_blocking_operations(migration.operations, previous))
    }

    assert found == {}, "use tools.concurrent_index, db_index=False"


NEW_INDEX = Index(fields=["seq"], name="x")


@pytest.mark.parametrize(
    ("operation", "is_found"),
    [
        pytest.param(AddIndex("Run", NEW_INDEX), True, id="index"),
        pytest.param(AddIndexConcurrently("Run", NEW_INDEX), False, id="concurrently"),
        pytest.param(AddIndex("Provider", NEW_INDEX), False, id="small-table"),
        pytest.param(AddIndex("StepMedia", NEW_INDEX), False, id="new-table"),
        pytest.param(
            AddField("run", "x", IntegerField(null=True)), False, id="plain-column"
        ),
        pytest.param(
            AddField("run", "x", IntegerField(null=True, db_index=True)),
            True,
            id="indexed-column",
        ),
        pytest.param(
            AlterField("run", "status", CharField(db_index=True)),
            True,
            id="column-gets-index",
        ),
        pytest.param(
            AlterField("delivery", "run", ForeignKey("runs.Run", CASCADE, null=True)),
            False,
            id="indexed-before",
        ),
        pytest.param(
            AddConstraint("run", UniqueConstraint(fields=["seq"], name="x")),
            True,
            id="constraint",
        ),
        pytest.param(
            SeparateDatabaseAndState(
                database_operations=[AddIndex("AgentStep", NEW_INDEX)]
            ),
            True,
            id="nested",
        ),
    ],
)
def test_a_planted_blocking_operation_is_found(operation, is_found):
    found = find_blocking_operations([operation], previous_release())

    assert bool(found) is is_found
