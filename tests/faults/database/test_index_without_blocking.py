"""An upgrade that builds an index of a large table while others write to it."""

import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from tests.faults.site import ROOT, environment, run_python
from tests.support.postgres import Postgres, find_initdb, postgresql
from tests.support.timing import wait_until

pytestmark = [pytest.mark.faults, pytest.mark.slow]

INDEX = "run_by_waiting_provider"
BEFORE = "0033_metrics"
"""The migration before the one that adds the index."""

MIGRATE = f"""
import django
django.setup()
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
executor = MigrationExecutor(connection)
executor.loader = MigrationLoader(connection, replace_migrations=False)
executor.migrate([("runs", "{BEFORE}")])
"""
"""One by one, as a database of 0.1.0 is migrated, and not by what replaces them."""

WRITE = "UPDATE runs_run SET seq = seq + 1"


def manage(server: Postgres, folder: Path, *words: str) -> "subprocess.Popen[bytes]":
    variables = {"DATABASE_URL": server.url, "AGENTSITE_DATA": str(folder)}
    return subprocess.Popen(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env=environment(folder) | variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def state_of_index(database: "psycopg.Connection[tuple[bool]]") -> bool | None:
    """Return whether the index is valid; None if there is none."""
    query = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)"
    found = database.execute(query, [INDEX]).fetchone()
    return None if found is None else found[0]


def test_writes_continue_and_servers_that_start_together_wait(tmp_path: Path):
    initdb = find_initdb()
    assert initdb is not None, "install postgresql to run this test"
    with postgresql(initdb) as server:
        server.create_database()
        run_python(tmp_path, MIGRATE, DATABASE_URL=server.url)
        with psycopg.connect(server.url, autocommit=True) as watcher:
            with psycopg.connect(server.url) as writer:
                writer.execute(WRITE)  # the index waits for the end of this
                both = [manage(server, tmp_path, "prepare") for _ in range(2)]
                wait_until(lambda: state_of_index(watcher) is False, seconds=120)
                wait_until(lambda: list_waiting(watcher), seconds=120)
                oldest = max(oldest_transaction(watcher) for _ in range(100))
                with psycopg.connect(server.url, autocommit=True) as other:
                    other.execute("SET lock_timeout = '30s'")
                    other.execute(WRITE)
            codes = [one.wait(240) for one in both]
            is_valid = state_of_index(watcher)

    assert codes == [0, 0]
    assert is_valid is True
    assert oldest < 5  # seconds, of the 10; the index would wait for its end


def list_waiting(database: "psycopg.Connection[tuple[float]]") -> list[float]:
    """List the processes that wait for their turn: seconds of their transactions."""
    query = (
        "SELECT coalesce(extract(epoch FROM clock_timestamp() - xact_start), 0) "
        "FROM pg_stat_activity "
        "WHERE (query = 'ROLLBACK' OR query LIKE '%_advisory_xact%') "
        "AND pid NOT IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory' "
        "AND granted) AND pid <> pg_backend_pid()"
    )
    return [float(seconds) for (seconds,) in database.execute(query).fetchall()]


def oldest_transaction(database: "psycopg.Connection[tuple[float]]") -> float:
    time.sleep(0.1)
    return max(list_waiting(database), default=0.0)


def test_the_remains_of_a_failed_attempt_are_replaced(tmp_path: Path):
    initdb = find_initdb()
    assert initdb is not None, "install postgresql to run this test"
    with postgresql(initdb) as server:
        server.create_database()
        run_python(tmp_path, MIGRATE, DATABASE_URL=server.url)
        with psycopg.connect(server.url, autocommit=True) as database:
            database.execute(f"CREATE INDEX {INDEX} ON runs_run (id)")
            breaking = "UPDATE pg_index SET indisvalid = false WHERE indexrelid = "
            database.execute(f"{breaking} '{INDEX}'::regclass")
            assert manage(server, tmp_path, "prepare").wait(400) == 0
            query = "SELECT indexdef FROM pg_indexes WHERE indexname = %s"
            found = database.execute(query, [INDEX]).fetchone()
            is_valid = state_of_index(database)

    assert is_valid is True
    assert found is not None
    assert "waiting_provider_id IS NOT NULL" in found[0]
