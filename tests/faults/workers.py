"""Real worker processes on the database and the broker of the test."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings
from django.db import connection

from runs.models import Run, Worker
from tests.faults.functions import LEDGER
from tests.support.timing import wait_until

ROOT = Path(__file__).parent.parent.parent
LEASE_SECONDS = 3.0
SWEEP_SECONDS = 0.5


def database_url() -> str:
    """Return the address of the database this test writes to."""
    found = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{found['NAME']}"
    user, host, port = found["USER"], found["HOST"], found["PORT"]
    return f"postgresql://{user}@{host}:{port}/{found['NAME']}"


@dataclass
class Workers:
    """The worker processes of one test."""

    folder: Path
    processes: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    @property
    def ledger(self) -> list[str]:
        """What the tools have done, a line each."""
        path = self.folder / "ledger"
        return path.read_text().splitlines() if path.exists() else []

    @property
    def said(self) -> str:
        """What all workers have written on their consoles."""
        return "\n".join(log.read_text() for log in self.folder.glob("worker-*.log"))

    def start(
        self, *, threads: int = 8, output: int | None = None, **variables: str
    ) -> "subprocess.Popen[bytes]":
        """Start a worker and wait for its first sign of life.

        `output` is a pipe for what it prints, instead of its console.
        """
        before = Worker.objects.count()
        process = self.spawn(threads=threads, output=output, **variables)
        self.wait(lambda: Worker.objects.count() > before)
        return process

    def spawn(
        self, *, threads: int = 8, output: int | None = None, **variables: str
    ) -> "subprocess.Popen[bytes]":
        """Start a worker."""
        log = self.folder / f"worker-{len(self.processes)}.log"
        with log.open("wb") as console:
            process = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", "agentsite", "worker"]
                + ["-P", "threads", "-c", str(threads), "-l", "WARNING"]
                + ["--without-gossip", "--without-mingle", "--without-heartbeat"],
                cwd=ROOT,
                stdout=console if output is None else output,
                stderr=console,
                env={**self.environment(), **variables},
            )
        self.processes.append(process)
        return process

    @contextmanager
    def kept_alive(self) -> Iterator[None]:
        """Start a worker whenever the last one has died, as a supervisor does."""
        stop = threading.Event()
        thread = threading.Thread(target=self._keep_alive, args=(stop,))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _keep_alive(self, stop: threading.Event) -> None:
        while not stop.wait(0.05):
            if not self.processes or self.processes[-1].poll() is not None:
                self.spawn()

    def environment(self) -> dict[str, str]:
        """Return the variables under which a worker finds all that the test has."""
        return {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "agentsite.settings",
            "AGENTSITE_DATA": str(settings.DATA_DIR),
            "AGENTSITE_TOOL_MODULES": "tests.faults.functions,tests.worker.functions",
            "AGENTSITE_LEASE_SECONDS": str(LEASE_SECONDS),
            "AGENTSITE_SWEEP_SECONDS": str(SWEEP_SECONDS),
            "DATABASE_URL": database_url(),
            LEDGER: str(self.folder / "ledger"),
        }

    def wait(self, true: Callable[[], object], *, seconds: float = 120.0) -> None:
        """Wait until something holds; fail with what the workers said."""
        wait_until(
            true, seconds=seconds, message=lambda: f"{self.ledger}\n{self.said[-6000:]}"
        )

    def wait_for(self, run: Run, *statuses: str, seconds: float = 120.0) -> Run:
        """Wait until `run` has one of the statuses; return it as it is then."""
        wanted = statuses or ("succeeded",)

        def is_there() -> bool:
            run.refresh_from_db()
            over = run.is_over and run.status not in wanted
            assert not over, f"{run.status}: {run.error_message}\n{self.said}"
            return run.status in wanted

        self.wait(is_there, seconds=seconds)
        return run

    def wait_for_line(self, line: str, *, times: int = 1) -> None:
        """Wait until a tool has left `line` in the ledger."""
        self.wait(lambda: self.ledger.count(line) >= times)

    def end(self) -> None:
        """End every worker at once."""
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
