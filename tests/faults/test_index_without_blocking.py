"""An upgrade that builds an index of a large table while others write to it."""

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.faults.site import ROOT, environment
from tests.postgres import Postgres, find_initdb, postgresql
from tests.timing import wait_until

pytestmark = pytest.mark.faults

INDEX = "run_by_waiting_provider"
BEFORE = "0033_metrics"
"""The migration before the one that adds the index."""

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
        assert manage(server, tmp_path, "migrate", "-v0", "runs", BEFORE).wait(200) == 0
        with psycopg.connect(server.url, autocommit=True) as watcher:
            with psycopg.connect(server.url) as writer:
                writer.execute(WRITE)  # the index waits for the end of this
                both = [manage(server, tmp_path, "prepare") for _ in range(2)]
                wait_until(lambda: state_of_index(watcher) is False, seconds=120)
                wait_until(lambda: count_waiting(watcher) >= 1, seconds=120)
                with psycopg.connect(server.url, autocommit=True) as other:
                    other.execute("SET lock_timeout = '2s'")
                    other.execute(WRITE)
            codes = [one.wait(120) for one in both]
            is_valid = state_of_index(watcher)

    assert codes == [0, 0]
    assert is_valid is True


def count_waiting(database: "psycopg.Connection[tuple[int]]") -> int:
    """Count the processes that wait for their turn to migrate."""
    query = (
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%_advisory_xact%' "
        "AND pid NOT IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory' "
        "AND granted)"
    )
    found = database.execute(query).fetchone()
    assert found is not None
    return found[0]


def test_the_remains_of_a_failed_attempt_are_replaced(tmp_path: Path):
    initdb = find_initdb()
    assert initdb is not None, "install postgresql to run this test"
    with postgresql(initdb) as server:
        server.create_database()
        assert manage(server, tmp_path, "migrate", "-v0", "runs", BEFORE).wait(200) == 0
        with psycopg.connect(server.url, autocommit=True) as database:
            database.execute(f"CREATE INDEX {INDEX} ON runs_run (id)")
            breaking = "UPDATE pg_index SET indisvalid = false WHERE indexrelid = "
            database.execute(f"{breaking} '{INDEX}'::regclass")
            assert manage(server, tmp_path, "prepare").wait(200) == 0
            query = "SELECT indexdef FROM pg_indexes WHERE indexname = %s"
            found = database.execute(query, [INDEX]).fetchone()
            is_valid = state_of_index(database)

    assert is_valid is True
    assert found is not None
    assert "waiting_provider_id IS NOT NULL" in found[0]
