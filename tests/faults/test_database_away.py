"""The database crashes while runs work: none fails because of it, none works twice."""

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.fakes.model_server import model_server
from tests.faults.functions import LEDGER
from tests.faults.site import ROOT, Site, environment, start
from tests.postgres import Postgres, find_initdb, postgresql
from tests.timing import wait_until

pytestmark = pytest.mark.faults

AGENTFILE = """
agentfile: 1
providers: [{{slug: fake, kind: openai, base_url: "{url}"}}]
tools:
  - {{slug: look, kind: function, config: {{function: "tests.faults.functions:look"}}}}
agents: [{{slug: looker, kind: tool-calling, provider: fake, model: m, tools: [look]}}]
"""


LEASE_SECONDS = 3


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
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def test_runs_go_on_when_the_database_comes_back(tmp_path: Path, postgres: Postgres):
    looking = {"name": "look", "arguments": '{"what": "it", "seconds": 3.0}', "id": "c"}
    script = [{"tool_calls": [looking]}, "Seen."]
    ledger = tmp_path / "ledger"
    variables = {
        "DATABASE_URL": postgres.url,
        "AGENTSITE_LEASE_SECONDS": str(LEASE_SECONDS),
        "AGENTSITE_TOOL_MODULES": "tests.faults.functions",
        LEDGER: str(ledger),
    }
    make_database(postgres)
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
            wait_until(ledger.exists, seconds=20)

            postgres.stop()
            lease_end = time.monotonic() + 2 * LEASE_SECONDS
            wait_until(lambda: "waits for the database" in logs_of(site))
            wait_until(lambda: time.monotonic() > lease_end)
            assert [status_of(site, path) for path in HEALTH_PATHS] == [200, 503, 503]
            postgres.start()

            wait_until(lambda: call_api(site, token, f"/{run}")["is_over"], seconds=60)
            ended = call_api(site, token, f"/{run}")
        finally:
            site.end()

    assert (ended["status"], ended["output"]) == ("succeeded", "Seen.")
    assert ledger.read_text().splitlines() == ["look it"]


HEALTH_PATHS = ("/livez", "/readyz", "/healthz")


def status_of(site: Site, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{site.port}{path}") as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def logs_of(site: Site) -> str:
    return "".join(path.read_text() for path in site.data.glob("log/*.log"))


def make_database(postgres: Postgres) -> None:
    with psycopg.connect(
        postgres.url.replace("/agentsite", "/postgres"), autocommit=True
    ) as connection:
        connection.execute("CREATE DATABASE agentsite")
