"""All processes of one installation, each of which can be broken and comes back."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import redis

from tests.fakes.model_server import FakeServer, model_server
from tests.faults.functions import LEDGER
from tests.soak.model import Planner
from tests.support.empty_database import copy_empty_sqlite, create_empty_postgresql
from tests.support.postgres import Postgres, find_initdb, postgresql
from tests.support.servers import free_port, start_redis

ROOT = Path(__file__).parent.parent.parent
WORKERS = ("worker-0", "worker-1")
USERS_OF_DATABASE = ("web", *WORKERS)
LEASE_SECONDS = 3.0
SWEEP_SECONDS = 0.5
Process = subprocess.Popen


@dataclass
class Machines:
    """The servers and programs of one installation."""

    folder: Path
    database: Postgres | None
    """None where it is a file of SQLite."""
    web_port: int
    planner: Planner
    model_port: int
    model: AbstractContextManager[FakeServer] | None = None
    processes: dict[str, "Process[bytes]"] = field(default_factory=dict)

    @property
    def env(self) -> dict[str, str]:
        """The variables under which every program finds the others."""
        return {
            **os.environ,
            "DATABASE_URL": self.database.url if self.database else "",
            "REDIS_URL": f"unix://{self.socket}",
            "AGENTSITE_DATA": str(self.folder),
            "PORT": str(self.web_port),
            "DJANGO_SETTINGS_MODULE": "agentsite.settings",
            "AGENTSITE_TOOL_MODULES": "tests.soak.functions",
            "AGENTSITE_LEASE_SECONDS": str(LEASE_SECONDS),
            "AGENTSITE_SWEEP_SECONDS": str(SWEEP_SECONDS),
            "AGENTSITE_USER_RUNS": "0",  # one user starts all of them
            LEDGER: str(self.ledger),
        }

    @property
    def model_url(self) -> str:
        """Where the model server listens."""
        return f"http://127.0.0.1:{self.model_port}/v1"

    @property
    def socket(self) -> Path:
        """Where the broker listens."""
        return self.folder / "redis.sock"

    @property
    def ledger(self) -> Path:
        """Where the tools write what they do."""
        return self.folder / "ledger"

    @property
    def said(self) -> str:
        """The last that each program wrote."""
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"--- {log.name}\n{log.read_text()[-1500:]}" for log in logs)

    def start(self, name: str) -> None:
        """Start one of the programs."""
        if name == "redis":
            self.processes[name] = start_redis(self.socket)
            return
        if name == "database":
            self._start_database()
            return
        if name == "model":
            self.model = model_server(script=self.planner, port=self.model_port)
            self.model.__enter__()
            return
        web = ["uvicorn", "agentsite.asgi:application", "--log-level", "warning"]
        words = (
            [*web, "--port", str(self.web_port)]
            if name == "web"
            else ["celery", "-q", "-A", "agentsite", "worker", "-P", "threads"]
            + ["-c", "24", "-l", "WARNING", "-n", f"{name}@%h"]
            + ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        )
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = Process(
                [sys.executable, "-m", *words],
                cwd=ROOT,
                env=self.env,
                stdout=log,
                stderr=log,
            )

    def kill(self, name: str) -> None:
        """End a program as `kill -9` does."""
        if name == "database":
            self._kill_database()
            return
        if name == "model":
            if self.model is not None:
                self.model.__exit__(None, None, None)
            self.model = None
            return
        self.processes[name].kill()
        self.processes[name].wait()

    def _start_database(self) -> None:
        if self.database is not None:
            self.database.start()
            return
        for name in USERS_OF_DATABASE:
            self.start(name)

    def _kill_database(self) -> None:
        """End PostgreSQL; a file is left by all that write to it at one moment."""
        if self.database is not None:
            self.database.stop()
            return
        for name in USERS_OF_DATABASE:
            self.processes[name].kill()
        for name in USERS_OF_DATABASE:
            self.processes[name].wait()

    def pause(self, name: str, seconds: float) -> None:
        """Freeze a program, as a machine that is far too busy does."""
        process = self.processes[name]
        process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        process.send_signal(signal.SIGCONT)

    def end_gently(self, name: str) -> None:
        """Ask a program to end, and wait until it has."""
        self.processes[name].send_signal(signal.SIGTERM)
        self.processes[name].wait(60)

    def wipe(self) -> None:
        """Lose all that the broker knows."""
        with redis.Redis(unix_socket_path=str(self.socket)) as client:
            client.flushall()


@contextmanager
def machines(folder: Path, planner: Planner, *, sqlite: bool) -> Iterator[Machines]:
    """Start an installation with two workers; end it with the block."""
    with ExitStack() as stack:
        database = None if sqlite else stack.enter_context(durable_postgresql())
        if database is None:
            copy_empty_sqlite(folder)
        found = Machines(folder, database, free_port(), planner, free_port())
        stack.callback(end_all, found)
        found.start("redis")
        found.start("model")
        for name in USERS_OF_DATABASE:
            found.start(name)
        yield found


@contextmanager
def durable_postgresql() -> Iterator[Postgres]:
    """Start a server of its own with `fsync`, and make the tables."""
    initdb = find_initdb()
    if initdb is None:
        raise SystemExit("PostgreSQL was not found. Install postgresql to soak.")
    with postgresql(initdb, fsync=True) as server:
        create_empty_postgresql(server.server, "agentsite")
        yield server


def end_all(found: Machines) -> None:
    """End every program at once."""
    for process in found.processes.values():
        process.kill()
        process.wait()
    found.kill("model")
