"""The product on servers of its own, as it is measured: web, worker, model."""

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from tests.support.postgres import find_initdb, postgresql
from tests.support.servers import free_port, start_redis

ROOT = Path(__file__).parents[3]
TICK = os.sysconf("SC_CLK_TCK")
MODELS = (
    *("mock-k5-l0", "mock-k5-l100", "mock-k20-l0", "mock-k200-l0"),
    *("mock-k0-l15000", "mock-k0-l30000"),
)
SIDE_EFFECT = "-side-effect"
"""Ends the name of an agent whose tool changes something."""


@contextmanager
def private_servers() -> Iterator[dict[str, str]]:
    """Start PostgreSQL, with fsync, and Redis; give the variables that name them."""
    initdb = find_initdb()
    if initdb is None:
        raise SystemExit("PostgreSQL was not found. Install postgresql to measure.")
    with (
        tempfile.TemporaryDirectory(prefix="agentsite-bench-") as folder,
        postgresql(initdb, fsync=True) as database,
    ):
        database.create_database()
        socket = Path(folder, "redis.sock")
        redis = start_redis(socket)
        try:
            yield {
                "DATABASE_URL": database.url,
                "REDIS_URL": f"unix://{socket}",
                "AGENTSITE_DATA": folder,
            }
        finally:
            redis.kill()
            redis.wait()


@dataclass
class Site:
    """The running product, and what it has spent."""

    env: dict[str, str]
    port: int
    model_port: int
    token: str
    web: int
    worker: int
    database: "psycopg.Connection[Any]"

    def start(self, agent: str) -> int:
        """Start a run by the API; return its id."""
        body = json.dumps({"agent": agent, "inputs": {"input": "Add up."}})
        return int(self.ask("POST", "/api/v1/runs", body)["id"])

    def ask(self, method: str, path: str, body: str | None = None) -> Any:
        """Send one request; fail where it is refused."""
        headers = {"Authorization": f"Bearer {self.token}"}
        server = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        server.request(method, path, body, headers)
        answer = server.getresponse()
        message = answer.read()
        server.close()
        assert answer.status < 300, (answer.status, message)
        return json.loads(message)

    def wait(self, runs: list[int], *, seconds: float = 180) -> None:
        """Wait, by the database so that the web is not measured, until all are over."""
        until = time.monotonic() + seconds
        query = "SELECT status, count(*) FROM runs_run WHERE id = ANY(%s) GROUP BY 1"
        while True:
            found = dict(self.database.execute(query, [runs]).fetchall())
            if found.get("succeeded", 0) == len(runs):
                return
            assert not found.keys() - {"queued", "running", "succeeded"}, found
            assert time.monotonic() < until, found
            time.sleep(0.004)

    def spent(self) -> float:
        """Return the CPU seconds of web and worker so far."""
        return cpu_of(self.web) + cpu_of(self.worker)

    def postgres_spent(self) -> float:
        """Return the CPU seconds of PostgreSQL so far, without those of `wait`."""
        return postgres_cpu_of(self.database.info.backend_pid)

    def wal_bytes(self) -> int:
        """Return how much write-ahead log there has been."""
        row = self.database.execute("SELECT pg_current_wal_lsn() - '0/0'").fetchone()
        assert row is not None
        return int(row[0])

    def table_bytes(self) -> int:
        """Return the size of the tables of runs, their indexes included."""
        names = [f"runs_{name}" for name in ("run", "modelcall", "agentstep")]
        row = self.database.execute(
            "SELECT sum(pg_total_relation_size(name::regclass))"
            " FROM unnest(%s::text[]) name",
            [names],
        ).fetchone()
        assert row is not None
        return int(row[0])

    def first_calls(self) -> list[float]:
        """Return when first model calls arrived since this was last asked."""
        server = http.client.HTTPConnection("127.0.0.1", self.model_port)
        server.request("GET", "/")
        found: list[float] = json.loads(server.getresponse().read())
        server.close()
        return found


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of a process, its threads among them."""
    fields = stat_fields(pid)
    return (int(fields[11]) + int(fields[12])) / TICK


def postgres_cpu_of(backend: int) -> float:
    """Return the CPU seconds of the server of a backend, those of the backend left out.

    Backends that have ended are in what the server's own process counts of children.
    """
    server = int(stat_fields(backend)[1])
    total = sum(int(field) for field in stat_fields(server)[11:15]) / TICK
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    for child in map(int, children):
        with suppress(OSError):  # it has just ended
            if child != backend:
                total += (
                    int(Path(f"/proc/{child}/schedstat").read_text().split()[0]) / 1e9
                )
    return total


def stat_fields(pid: int) -> list[str]:
    """Return what the kernel says of a process, from its state on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def memory_of(pid: int) -> float:
    """Return the MB of a process, pages that it shares counted in part."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    line = next(line for line in rollup.splitlines() if line.startswith("Pss:"))
    return int(line.split()[1]) / 1024


@contextmanager
def running_site(servers: dict[str, str]) -> Iterator[Site]:
    """Start everything on `servers`; end it with the block."""
    port, model_port = free_port(), free_port()
    env = {
        **os.environ,
        **servers,
        "PORT": str(port),
        "DJANGO_SETTINGS_MODULE": "agentsite.settings",
        "AGENTSITE_TOOL_MODULES": "tests.bench.functions",
        "AGENTSITE_LOG_LEVEL": "WARNING",
    }
    manage(env, "migrate", "-v", "0")
    run(env, "-c", MAKE_USER)
    manage(
        env, "import_agentfile", agentfile(Path(servers["AGENTSITE_DATA"]), model_port)
    )
    token = manage(env, "create_token", "bench").split()[-1]
    with ExitStack() as stack:
        start(stack, env, "tests.bench.servers.mock_model", str(model_port))
        web = start(stack, env, "uvicorn", "agentsite.asgi:application")
        worker = start(stack, env, *WORKER)
        database = stack.enter_context(
            psycopg.connect(env["DATABASE_URL"], autocommit=True)
        )
        site = Site(env, port, model_port, token, web, worker, database)
        wait_for(site)
        yield site


MAKE_USER = (
    "import django; django.setup(); from django.contrib.auth.models import User;"
    "User.objects.create_superuser('bench', password='bench')"
)
WORKER = (
    *("celery", "-q", "-A", "agentsite", "worker", "-P", "threads"),
    *("-l", "WARNING", "--without-gossip", "--without-mingle", "--without-heartbeat"),
)


def agentfile(folder: Path, model_port: int) -> str:
    """Write the agent file, two agents per model; return its path.

    The provider streams, as it does if nobody changes it.
    """
    server = {"slug": "mock", "kind": "openai"}
    server["base_url"] = f"http://127.0.0.1:{model_port}/v1"
    tools = {"": "add", SIDE_EFFECT: "add-side-effect"}
    agents = [
        {
            "slug": f"{model}{suffix}",
            "kind": "tool-calling",
            "provider": "mock",
            "model": model,
            "tools": [tool],
            "executor": {"max_iterations": 300},
        }
        for model in MODELS
        for suffix, tool in tools.items()
    ]
    functions = {"add": "add", "add-side-effect": "add_with_side_effect"}
    entries = [
        {
            "slug": slug,
            "name": "add",
            "kind": "function",
            "approval": "never",
            "config": {"function": f"tests.bench.functions:{function}"},
        }
        for slug, function in functions.items()
    ]
    shape = {
        "agentfile": 1,
        "providers": [server],
        "tools": entries,
        "agents": agents,
    }
    path = folder / "agents.json"
    path.write_text(json.dumps(shape))
    return str(path)


def start(stack: ExitStack, env: dict[str, str], *words: str) -> int:
    """Start `python -m`; return the process id. It ends with the stack."""
    more = ["--port", env["PORT"], "--log-level", "warning"]
    process = subprocess.Popen(
        [sys.executable, "-m", *words, *(more if words[0] == "uvicorn" else [])],
        cwd=ROOT,
        env=env,
    )
    stack.callback(process.wait)
    stack.callback(process.kill)
    return process.pid


def wait_for(site: Site) -> None:
    """Wait until web and worker are there, and warm both up."""
    until = time.monotonic() + 60
    while True:
        try:
            if site.ask("GET", "/healthz")["status"] == "ok":
                break
        except (OSError, AssertionError):
            pass
        assert time.monotonic() < until, "The site did not start within 60 seconds."
        time.sleep(0.2)
    site.wait([site.start("mock-k5-l0") for _ in range(20)])


def manage(env: dict[str, str], *words: str) -> str:
    """Run a command of `manage.py`; return what it prints."""
    return run(env, "manage.py", *words)


def run(env: dict[str, str], *words: str) -> str:
    """Run Python; return what it prints."""
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=env, check=True, text=True, stdout=-1
    )
    return done.stdout
