"""The database crashes while runs work: none fails because of it, none works twice."""

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.fakes.model_server import Recorded, model_server
from tests.faults.functions import LEDGER
from tests.faults.site import ROOT, Site, environment, start
from tests.support.empty_database import create_empty_postgresql
from tests.support.postgres import Postgres, find_initdb, postgresql
from tests.support.timing import wait_until

pytestmark = [pytest.mark.faults, pytest.mark.slow]

AGENTFILE = """
agentfile: 1
providers: [{{slug: fake, kind: openai, base_url: "{url}"}}]
tools:
  - {{slug: look, kind: function, config: {{function: "tests.faults.functions:look"}}}}
  - {{slug: pay, kind: function, config: {{function: "tests.faults.functions:pay"}}}}
agents:
  - {{slug: looker, kind: tool-calling, provider: fake, model: m, tools: [look]}}
  - {{slug: payer, kind: tool-calling, provider: fake, model: m, tools: [pay]}}
"""


LEASE_SECONDS = 8


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    """A server of this test's own."""
    initdb = find_initdb()
    assert initdb is not None, "install postgresql to run this test"
    with postgresql(initdb) as server:
        yield server


def command(site: Site, variables: dict[str, str], *words: str) -> str:
    """Run a command of `manage.py` beside the running site; return its last line."""
    done = subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env=environment(site.data) | variables,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip().splitlines()[-1]


def call_api(site: Site, token: str, path: str, body: Any = None) -> Any:
    request = urllib.request.Request(
        f"http://127.0.0.1:{site.port}/api/v1/runs{path}",
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {token}"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def test_runs_go_on_when_the_database_comes_back(tmp_path: Path, postgres: Postgres):
    looking = {
        "name": "look",
        "arguments": '{"what": "it", "seconds": 10.0}',
        "id": "c",
    }
    script = [{"tool_calls": [looking]}, "Seen."]
    ledger = tmp_path / "ledger"
    variables = {
        "DATABASE_URL": postgres.url,
        "AGENTSITE_LEASE_SECONDS": str(LEASE_SECONDS),
        "AGENTSITE_TOOL_MODULES": "tests.faults.functions",
        LEDGER: str(ledger),
    }
    create_empty_postgresql(postgres.server, "agentsite")
    with model_server(script=script) as server:
        site = start(tmp_path / "data", **variables)
        try:
            site.wait_for("Agentsite is running at")
            agentfile = tmp_path / "agents.yaml"
            agentfile.write_text(AGENTFILE.format(url=server.base_url))
            command(site, variables, "import_agentfile", str(agentfile))
            token = command(site, variables, "create_token", "admin")
            body = {"agent": "looker", "inputs": {"input": "Look."}}
            run = call_api(site, token, "", body)["id"]
            wait_until(ledger.exists)

            postgres.stop()
            lease_end = time.monotonic() + 2 * LEASE_SECONDS
            # a thread waits half a minute for a connection first
            wait_until(lambda: "waits for the database" in logs_of(site), seconds=180)
            wait_until(lambda: time.monotonic() > lease_end)
            assert [status_of(site, path) for path in HEALTH_PATHS] == [200, 503, 503]
            postgres.start()

            ended = wait_for_end(site, token, run)
        finally:
            site.end()

    assert (ended["status"], ended["output"]) == ("succeeded", "Seen.")
    assert ledger.read_text().splitlines() == ["look it"]


def test_idle_workers_leave_runs_to_a_worker_that_only_waited(
    tmp_path: Path, postgres: Postgres
):
    """Other workers see expired leases when the database is back, but wait a lease."""
    arguments = '{"whom": "ann", "until": "released"}'
    paying = {"name": "pay", "arguments": arguments, "id": "c"}

    def pay_once(asked: Recorded) -> Any:
        *_, last = asked.body["messages"]
        return "Paid." if last["role"] == "tool" else {"tool_calls": [paying]}

    variables = {
        "DATABASE_URL": postgres.url,
        "AGENTSITE_LEASE_SECONDS": "10",
        "AGENTSITE_SWEEP_SECONDS": "0.5",
        "AGENTSITE_TOOL_MODULES": "tests.faults.functions",
        LEDGER: str(tmp_path / "ledger"),
    }
    create_empty_postgresql(postgres.server, "agentsite")
    with model_server(script=pay_once) as server, ExitStack() as stack:
        site = start(tmp_path / "data", **variables)
        stack.callback(site.end)
        site.wait_for("Agentsite is running at")
        agentfile = tmp_path / "agents.yaml"
        agentfile.write_text(AGENTFILE.format(url=server.base_url))
        command(site, variables, "import_agentfile", str(agentfile))
        token = command(site, variables, "create_token", "admin")
        body = {"agent": "payer", "inputs": {"input": "Pay."}}
        runs = [call_api(site, token, "", body)["id"] for _ in range(5)]
        wait_until(lambda: ledger_of(tmp_path).count("pay ann") == 5)
        for n in range(2):
            start_worker(stack, site, variables, tmp_path / f"idle-{n}.log")
        wait_until(lambda: count_workers(site) == 3)

        postgres.stop()
        time.sleep(20)  # two leases
        postgres.start()
        time.sleep(15)  # so long that the idle ones recover runs again
        (tmp_path / "released").touch()

        ended = [wait_for_end(site, token, run) for run in runs]
        with psycopg.connect(postgres.url) as connection:
            rows = connection.execute("SELECT fence, recoveries FROM runs_run")
            claims = set(rows.fetchall())

    assert {run["status"] for run in ended} == {"succeeded"}
    assert claims == {(1, 0)}
    assert ledger_of(tmp_path) == ["pay ann"] * 5


def ledger_of(folder: Path) -> list[str]:
    path = folder / "ledger"
    return path.read_text().splitlines() if path.exists() else []


def start_worker(
    stack: ExitStack, site: Site, variables: dict[str, str], log: Path
) -> None:
    """Start another worker on the site's database and broker."""
    words = ["celery", "-q", "-A", "agentsite", "worker", "-P", "threads", "-c", "9"]
    words += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    with log.open("wb") as console:
        process = subprocess.Popen(
            [sys.executable, "-m", *words],
            cwd=ROOT,
            env=environment(site.data) | variables,
            stdout=console,
            stderr=console,
        )
    stack.callback(process.wait)
    stack.callback(process.kill)


def count_workers(site: Site) -> int:
    address = f"http://127.0.0.1:{site.port}/healthz"
    with suppress(OSError), urllib.request.urlopen(address, timeout=60) as answer:
        return len(json.load(answer)["workers"])
    return 0


def wait_for_end(site: Site, token: str, run: int) -> Any:
    """Wait until a run is over or waits for a person, and return it."""
    found: dict[str, Any] = {}

    def is_settled() -> bool:
        with suppress(OSError):
            found.update(call_api(site, token, f"/{run}"))
            return found["status"] not in {"queued", "running"}
        return False

    wait_until(
        is_settled, seconds=240, message=lambda: f"{found}\n{logs_of(site)[-4000:]}"
    )
    return found


HEALTH_PATHS = ("/livez", "/readyz", "/healthz")


def status_of(site: Site, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{site.port}{path}") as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def logs_of(site: Site) -> str:
    return "".join(path.read_text() for path in site.data.glob("log/*.log"))
