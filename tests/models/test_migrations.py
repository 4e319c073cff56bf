"""The squashed migrations, beside the ones they replace."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from tests.models.fresh_database import fresh_database

ALIAS = "old"
AUTOMATIC = re.compile(r"\b\w+_([0-9a-f]{8}(_uniq|_like|_fk\w*)?|pkey|key|check|seq)\b")
"""Names that Django or PostgreSQL derives from those of tables and columns."""
SCHEMA = {
    "sqlite": ["SELECT tbl_name, sql FROM sqlite_master WHERE sql <> ''"],
    "postgresql": [
        "SELECT table_name, column_name, data_type, character_maximum_length,"
        " numeric_precision, numeric_scale, is_nullable, column_default, is_identity"
        " FROM information_schema.columns WHERE table_schema = 'public'",
        "SELECT conrelid::regclass, conname, pg_get_constraintdef(oid)"
        " FROM pg_constraint WHERE connamespace = 'public'::regnamespace",
        "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'",
    ],
}


@pytest.fixture(scope="module")
def old(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: Any
) -> Iterator[BaseDatabaseWrapper]:
    """A database that was made by the old migrations up to 0019, then upgraded."""
    folder = tmp_path_factory.mktemp("old")
    with django_db_blocker.unblock(), fresh_database(ALIAS, folder) as connection:
        yield upgraded(connection)


def upgraded(connection: BaseDatabaseWrapper) -> BaseDatabaseWrapper:
    """Migrate to 0019 without squashed migrations, add rows, and upgrade."""
    executor = MigrationExecutor(connection)
    executor.loader = MigrationLoader(connection, replace_migrations=False)
    state = executor.migrate([("runs", "0019_who_may_use"), *last("tools")])
    owner = state.apps.get_model("auth", "User").objects.using(ALIAS)
    ann = owner.create(username="ann")
    state.apps.get_model("runs", "SavedFilter").objects.using(ALIAS).create(
        owner=ann, name="Old", query="status=stopped&q=x"
    )
    add_branches(state.apps, ann)
    call_command("migrate", database=ALIAS, verbosity=0)
    return connection


def add_branches(apps: Any, owner: Any) -> None:
    """Add a conversation with a branch of a branch, and another conversation."""

    def add(model: str, **fields: Any) -> Any:
        rows = apps.get_model("runs", model).objects.using(ALIAS)
        return rows.create(owner=owner, **fields)

    provider = add("Provider", slug="p", name="p", kind="demo")
    agent = add("Agent", slug="a", name="a", kind="react", provider=provider)
    guarded = {"slug": "g", "executor": {"loop_guard": {}}}
    add("Agent", name="g", kind="react", provider=provider, **guarded)
    first = add("Conversation", agent=agent, title="first")
    branch = add("Conversation", agent=agent, branch_of=first, branch_at=1)
    add("Conversation", agent=agent, title="leaf", branch_of=branch, branch_at=2)
    add("Conversation", agent=agent, title="other")


def last(app: str) -> list[tuple[str, str]]:
    """Return the newest of the migrations that a squashed one replaces."""
    (squashed,) = Path(__file__).parents[2].glob(f"{app}/migrations/*_squashed_*.py")
    return [(app, squashed.stem.partition("_squashed_")[2])]


def test_a_database_at_0019_keeps_its_rows_under_the_new_names(old):
    with old.cursor() as cursor:
        cursor.execute("SELECT query FROM runs_savedfilter")
        assert cursor.fetchall() == [("status=limit_reached&q=x",)]


def test_agents_without_a_loop_guard_stay_without(old):
    with old.cursor() as cursor:
        cursor.execute("SELECT slug, executor FROM runs_agent ORDER BY slug")
        stored = {slug: json.loads(executor) for slug, executor in cursor.fetchall()}
    assert stored == {"a": {"loop_guard": None}, "g": {"loop_guard": {}}}


def test_a_database_with_all_old_migrations_has_nothing_to_apply(old):
    MigrationRecorder(old).migration_qs.filter(name__contains="squashed").delete()

    executor = MigrationExecutor(old)

    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []


@pytest.fixture(scope="module")
def old_schema(old: BaseDatabaseWrapper) -> set[str]:
    """The schema of `old`, which a test of the default database cannot read."""
    return schema_of(old)


@pytest.mark.django_db
def test_squashed_migrations_make_the_schema_of_the_old_ones(old_schema):
    assert schema_of(connections["default"]) == old_schema


def schema_of(connection: BaseDatabaseWrapper) -> set[str]:
    """Return columns, indexes and constraints, automatic names left out."""
    found = set()
    with connection.cursor() as cursor:
        for query in SCHEMA[connection.vendor]:
            cursor.execute(query)
            for table, *rest in ([str(cell) for cell in row] for row in cursor):
                parts = split(rest[0]) if connection.vendor == "sqlite" else [str(rest)]
                found |= {AUTOMATIC.sub("_", f"{table} {part}") for part in parts}
    return found


def split(sql: str) -> list[str]:
    """Split a statement at its outer commas: SQLite appends columns added later."""
    if not sql.startswith("CREATE TABLE"):
        return [sql]
    parts, depth = [""], 0
    for character in sql[sql.index("(") + 1 : sql.rindex(")")]:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def test_branches_of_before_know_where_they_began(old):
    with old.cursor() as cursor:
        cursor.execute(
            "SELECT leaf.title, root.title FROM runs_conversation leaf"
            " LEFT JOIN runs_conversation root ON root.id = leaf.root_id"
            " WHERE leaf.title <> '' ORDER BY leaf.id"
        )
        found = cursor.fetchall()

    assert found == [("first", None), ("leaf", "first"), ("other", None)]
