"""The data of the previous release, migrated in place and used by the new one."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.core.management import call_command
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from agentsite.supervise import ROOT
from tests.models.fresh_database import fresh_database
from tests.models.release_data import ENCRYPTION_KEY, PREVIOUS_RELEASE, load_rows

ALIAS = "upgraded"
USE_SITE = """
import django
django.setup()
from tests.models.upgraded_site import use_upgraded_site
use_upgraded_site()
"""


class Upgraded(NamedTuple):
    """A database of the previous release, and the rows of its tables at the upgrade."""

    connection: BaseDatabaseWrapper
    before: dict[str, int]
    after: dict[str, int]
    tables: dict[str, Any]
    """What `describe` says after the upgrade."""


@pytest.fixture(scope="module")
def upgraded(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: Any
) -> Iterator[Upgraded]:
    """A database that was filled by the previous release, then migrated."""
    folder = tmp_path_factory.mktemp("upgraded")
    with (
        django_db_blocker.unblock(),
        fresh_database(ALIAS, folder) as connection,
    ):
        apps = migrate_to_previous_release(connection)
        tables = list(load_rows(apps, using=ALIAS))
        add_branches(apps)
        before = count_rows(connection, tables)
        call_command("migrate", database=ALIAS, verbosity=0)
        after = count_rows(connection, tables)
        yield Upgraded(connection, before, after, describe(connection))


def migrate_to_previous_release(connection: BaseDatabaseWrapper) -> Any:
    """Return the models of that release."""
    executor = MigrationExecutor(connection)
    executor.loader = MigrationLoader(connection, replace_migrations=False)
    ours = {app for app, _ in PREVIOUS_RELEASE}
    leaves = executor.loader.graph.leaf_nodes()
    others = [leaf for leaf in leaves if leaf[0] not in ours]
    return executor.migrate([*others, *PREVIOUS_RELEASE]).apps


def add_branches(apps: Any) -> None:
    """Add a conversation with a branch of a branch, and another conversation."""
    ann = apps.get_model("auth", "User").objects.using(ALIAS).get(username="ann")

    def add(model: str, **fields: Any) -> Any:
        rows = apps.get_model("runs", model).objects.using(ALIAS)
        return rows.create(owner=ann, **fields)

    provider = add("Provider", slug="p", name="p", kind="demo")
    agent = add("Agent", slug="a", name="a", kind="react", provider=provider)
    guarded = {"slug": "g", "executor": {"loop_guard": {}}}
    add("Agent", name="g", kind="react", provider=provider, **guarded)
    first = add("Conversation", agent=agent, title="first")
    branch = add("Conversation", agent=agent, branch_of=first, branch_at=1)
    add("Conversation", agent=agent, title="leaf", branch_of=branch, branch_at=2)
    add("Conversation", agent=agent, title="other")


def count_rows(connection: BaseDatabaseWrapper, tables: list[str]) -> dict[str, int]:
    found = {}
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"SELECT count(*) FROM {table}")
            found[table] = cursor.fetchone()[0]
    return found


def test_a_site_of_the_previous_release_is_upgraded_in_place(upgraded, tmp_path):
    assert upgraded.after == upgraded.before

    upgraded.connection.close()
    used = use_site(upgraded.connection, tmp_path / "data")

    assert used.returncode == 0, used.stderr
    assert used.stdout.strip().endswith(" 0 violations")


def test_agents_without_a_loop_guard_stay_without(upgraded):
    with upgraded.connection.cursor() as cursor:
        cursor.execute("SELECT slug, executor FROM runs_agent WHERE slug IN ('a', 'g')")
        stored = {slug: json.loads(executor) for slug, executor in cursor.fetchall()}
    assert stored == {"a": {"loop_guard": None}, "g": {"loop_guard": {}}}


def test_branches_of_before_know_where_they_began(upgraded):
    with upgraded.connection.cursor() as cursor:
        cursor.execute(
            "SELECT leaf.title, root.title FROM runs_conversation leaf"
            " LEFT JOIN runs_conversation root ON root.id = leaf.root_id"
            " WHERE leaf.title IN ('first', 'leaf', 'other') ORDER BY leaf.id"
        )
        found = cursor.fetchall()

    assert found == [("first", None), ("leaf", "first"), ("other", None)]


def test_an_upgraded_database_has_the_tables_of_a_new_one(upgraded, db):
    assert upgraded.tables == describe(connections["default"])


def describe(connection: BaseDatabaseWrapper) -> dict[str, Any]:
    """Return the columns, constraints and indexes of each table, in any order."""
    found = {}
    inspect = connection.introspection
    with connection.cursor() as cursor:
        for table in inspect.table_names(cursor):
            columns = inspect.get_table_description(cursor, table)
            found[table] = (
                {column.name: tuple(column) for column in columns},
                describe_constraints(inspect.get_constraints(cursor, table)),
            )
    return found


def describe_constraints(constraints: dict[str, Any]) -> list[str]:
    """Return them sorted, without the numbers by which Django names some on SQLite."""
    return sorted(
        str((re.sub("^(__unnamed_|fk_).*", "", name), *described.items()))
        for name, described in constraints.items()
    )


def test_a_database_that_knows_the_replaced_names_has_nothing_to_apply(upgraded):
    """As one that applied each migration before they were squashed."""
    connection = upgraded.connection
    recorder = MigrationRecorder(connection)
    disk = MigrationExecutor(connection).loader.disk_migrations
    squashed = [key for key, migration in disk.items() if migration.replaces]
    with transaction.atomic(using=ALIAS):
        for app, name in squashed:
            recorder.record_unapplied(app, name)

        executor = MigrationExecutor(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
        transaction.set_rollback(True, using=ALIAS)

    assert {app for app, _ in squashed} == {"runs", "tools"}
    assert plan == []


def use_site(
    connection: BaseDatabaseWrapper, data: Path
) -> "subprocess.CompletedProcess[str]":
    variables = {
        "DJANGO_SETTINGS_MODULE": "agentsite.settings",
        "AGENTSITE_DATA": str(data),
        "AGENTSITE_ENCRYPTION_KEYS": ENCRYPTION_KEY,
        "AGENTSITE_TOOL_MODULES": "tests.worker.functions",
        "AGENTSITE_PRIVATE_HOSTS": "provider=127.0.0.1",
        "DATABASE_URL": address_of(connection),
    }
    return subprocess.run(
        [sys.executable, "-c", USE_SITE],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def address_of(connection: BaseDatabaseWrapper) -> str:
    found = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{found['NAME']}"
    user, host, port = found["USER"], found["HOST"], found["PORT"]
    return f"postgresql://{user}@{host}:{port}/{found['NAME']}"
