"""The previous release keeps working on the migrated database during an upgrade.

Its web servers and workers know neither new columns nor that old ones are gone. So a
new column is nullable or has a default in the database (`db_default`), and a column
that is no longer used stays for one release.
"""

from typing import NamedTuple

import pytest
from django.db import connection
from django.db.migrations import AddField, RemoveField
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState
from django.db.models import IntegerField

pytestmark = pytest.mark.django_db

PREVIOUS_RELEASE = [
    ("runs", "0001_squashed_0021_language"),
    ("tools", "0001_squashed_0006_who_may_use"),
]
"""The last migrations of the previous release; changed with each release."""

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
    state: ProjectState = MigrationLoader(connection).project_state(PREVIOUS_RELEASE)
    return state


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
