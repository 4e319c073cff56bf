"""The data of the previous release, migrated in place and used by the new one."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor

from agentsite.supervise import ROOT
from tests.models.fresh_database import fresh_database
from tests.models.release_data import ENCRYPTION_KEY, PREVIOUS_RELEASE, load_rows

pytestmark = pytest.mark.django_db

ALIAS = "upgraded"
USE_SITE = """
import django
django.setup()
from tests.models.upgraded_site import use_upgraded_site
use_upgraded_site()
"""


@pytest.fixture
def empty(
    django_db_setup: None, django_db_blocker: Any, tmp_path: Path
) -> Iterator[BaseDatabaseWrapper]:
    with (
        django_db_blocker.unblock(),
        fresh_database(ALIAS, tmp_path) as connection,
    ):
        yield connection


def migrate_to_previous_release(connection: BaseDatabaseWrapper) -> Any:
    """Return the models of that release."""
    executor = MigrationExecutor(connection)
    ours = {app for app, _ in PREVIOUS_RELEASE}
    leaves = executor.loader.graph.leaf_nodes()
    others = [leaf for leaf in leaves if leaf[0] not in ours]
    return executor.migrate([*others, *PREVIOUS_RELEASE]).apps


def count_rows(connection: BaseDatabaseWrapper, tables: list[str]) -> dict[str, int]:
    found = {}
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"SELECT count(*) FROM {table}")
            found[table] = cursor.fetchone()[0]
    return found


def test_a_site_of_the_previous_release_is_upgraded_in_place(empty, tmp_path):
    apps = migrate_to_previous_release(empty)
    before = load_rows(apps, using=ALIAS)

    call_command("migrate", database=ALIAS, verbosity=0)

    assert count_rows(empty, list(before)) == before
    empty.close()
    used = use_site(empty, tmp_path / "data")
    assert used.returncode == 0, used.stderr
    assert used.stdout.strip().endswith(" 0 violations")


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
