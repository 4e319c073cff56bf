"""Fixtures: things with an end."""

import gc
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from tests.support.empty_database import migrate_postgresql, migrate_sqlite
from tests.support.empty_tables import delete_rows_instead_of_flushing
from tests.support.servers import start_redis

# How long an example takes says how busy the machine is, and nothing else.
hypothesis_settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.load_profile("any machine")

# Thousands of tests keep much in memory; searching it often takes 5 % of the time.
gc.set_threshold(100_000, 20, 100)

KEPT = pytest.StashKey[int]()
"""Connections that earlier tests never gave back."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what the choice of the database can change."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if item.get_closest_marker("django_db") or fixtures & {
            "db",
            "transactional_db",
        }:
            item.add_marker("database")


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The address of a real Redis: REDIS_URL, or one started for this session.

    The private one listens where the settings already look, in the data folder.
    """
    if not settings.REDIS_URL.startswith(f"unix://{settings.DATA_DIR}"):
        yield settings.REDIS_URL
        return
    server = start_redis(Path(settings.REDIS_URL.removeprefix("unix://")))
    yield settings.REDIS_URL
    server.kill()
    server.wait()


@pytest.fixture(autouse=True)
def connections_given_back(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test whose threads end without closing their connection.

    The pool counts such a one as taken for ever. The main thread may keep its own.
    """
    yield
    pool = getattr(connection, "pool", None)
    if pool is None or pool.closed:
        return
    kept = request.config.stash.get(KEPT, 0)
    deadline = time.monotonic() + 30
    while (more := taken(pool) - kept - 1) > 0 and time.monotonic() < deadline:
        time.sleep(0.02)
    if more > 0:
        request.config.stash[KEPT] = kept + more
        pytest.fail(f"{more} connections were not given back to the pool.")


def taken(pool: Any) -> int:
    """Count the connections out of the pool."""
    stats = pool.get_stats()
    return int(stats["pool_size"] - stats["pool_available"])


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None,
) -> None:
    """Let the test database begin as a copy of a migrated one."""
    if connection.vendor == "postgresql":
        server = os.environ["DATABASE_URL"].rpartition("/")[0]
        connection.settings_dict["TEST"]["TEMPLATE"] = migrate_postgresql(server)
        return
    creation: Any = connection.creation

    def copy_empty(*_: object, **__: object) -> str:
        name = str(creation._get_test_db_name())
        shutil.copy(migrate_sqlite(), name)
        return name

    creation._create_test_db = copy_empty


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """End sessions that threads of tests left open, so that the database can go."""
    with django_db_blocker.unblock():
        delete_rows_instead_of_flushing()
    yield
    if connection.vendor != "postgresql":
        return
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
