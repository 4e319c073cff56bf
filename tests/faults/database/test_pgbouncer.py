"""The whole product behind a PgBouncer in transaction mode."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from tests.fakes.model_server import Recorded, model_server
from tests.faults.database.pgbouncer import (
    SERVER_CONNECTIONS,
    find_pgbouncer,
    pgbouncer,
)
from tests.faults.database.test_database_away import (
    AGENTFILE,
    call_api,
    command,
    wait_for_end,
)
from tests.faults.functions import LEDGER
from tests.faults.site import ROOT, environment, start
from tests.support.postgres import find_initdb, postgresql

pytestmark = [
    pytest.mark.faults,
    pytest.mark.slow,
    pytest.mark.skipif(find_pgbouncer() is None, reason="install pgbouncer"),
]

RUNS = 20


def look_once(asked: Recorded) -> object:
    *_, last = asked.body["messages"]
    if last["role"] == "tool":
        return "Seen."
    looking = {"name": "look", "arguments": '{"what": "it", "seconds": 0.5}', "id": "c"}
    return {"tool_calls": [looking]}


def test_runs_pass_a_pooler_in_transaction_mode(tmp_path: Path):
    initdb = find_initdb()
    assert initdb is not None, "install postgresql to run this test"
    with (
        postgresql(initdb) as postgres,
        pgbouncer(postgres) as url,
        model_server(script=look_once) as server,
    ):
        postgres.create_database()
        variables = {
            "DATABASE_URL": url,
            "AGENTSITE_TOOL_MODULES": "tests.faults.functions",
            LEDGER: str(tmp_path / "ledger"),
        }
        prepare_at_the_same_time(tmp_path, variables)
        site = start(tmp_path / "data", **variables)
        try:
            site.wait_for("Agentsite is running at")
            agentfile = tmp_path / "agents.yaml"
            agentfile.write_text(AGENTFILE.format(url=server.base_url))
            command(site, variables, "import_agentfile", str(agentfile))
            token = command(site, variables, "create_token", "admin")
            body = {"agent": "looker", "inputs": {"input": "Look."}}
            runs = [call_api(site, token, "", body)["id"] for _ in range(RUNS)]
            ended = [wait_for_end(site, token, run) for run in runs]
            last = command(site, variables, "check_invariants")
        finally:
            site.end()
        left_behind = timeouts_of_all_sessions(url.partition("?")[0])

    assert {run["status"] for run in ended} == {"succeeded"}
    assert last.endswith(" 0 violations")
    assert left_behind == {"0"}
    assert (tmp_path / "ledger").read_text().count("look it") == RUNS


def prepare_at_the_same_time(folder: Path, variables: dict[str, str]) -> None:
    """Migrate from several processes, as web servers that start together do."""

    def prepare(n: int) -> int:
        return subprocess.run(
            [sys.executable, "manage.py", "prepare"],
            cwd=ROOT,
            env=environment(folder / f"data-{n}") | variables,
            stdout=subprocess.DEVNULL,
            check=False,
        ).returncode

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(prepare, range(2))) == [0, 0]


def timeouts_of_all_sessions(url: str) -> set[str]:
    """Return the statement timeouts that the next clients of the pooler find."""
    with ExitStack() as stack:
        found = set()
        for _ in range(SERVER_CONNECTIONS):
            connection = stack.enter_context(psycopg.connect(url))
            row = connection.execute("SHOW statement_timeout").fetchone()
            assert row is not None
            found.add(str(row[0]))
        return found
