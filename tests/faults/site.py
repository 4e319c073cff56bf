"""A supervisor started as `make run` starts it, for tests that break things."""

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.support.empty_database import copy_empty_sqlite
from tests.support.servers import free_port, is_answering
from tests.support.timing import wait_until

ROOT = Path(__file__).parent.parent.parent
NOT_INHERITED = ("DATABASE_URL", "REDIS_URL", "MAKELEVEL", "PORT")


def start(
    data: Path, *, port: int | None = None, niceness: int = 0, **variables: str
) -> "Site":
    """Start the product in `data`, with an empty SQLite database if it needs one.

    A negative niceness, which only root may set, takes effect if it can.
    """
    port = port or free_port()
    if "DATABASE_URL" not in variables and data.parent.is_dir():
        copy_empty_sqlite(data)  # elsewhere, the site creates the folder and all in it
    console = tempfile.NamedTemporaryFile(prefix="console-", delete=False)  # noqa: SIM115
    with console:
        process = subprocess.Popen(
            ["nice", "-n", str(niceness), sys.executable, "-m", "agentsite.supervise"],
            cwd=ROOT,
            stdout=console,
            stderr=console,
            env=environment(data) | {"PORT": str(port)} | variables,
        )
    return Site(data, port, process, Path(console.name))


def environment(data: Path) -> dict[str, str]:
    """Return the variables for programs that work on the installation in `data`."""
    inherited = {k: v for k, v in os.environ.items() if k not in NOT_INHERITED}
    ours = {"DJANGO_SETTINGS_MODULE": "agentsite.settings"}
    return inherited | ours | {"AGENTSITE_DATA": str(data)}


def run_python(
    data: Path, code: str, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run code in a new process of the installation in `data`."""
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment(data) | variables,
        capture_output=True,
        text=True,
        check=True,
    )


@dataclass(frozen=True)
class Site:
    """A supervisor, what it said so far, and its installation."""

    data: Path
    port: int
    process: "subprocess.Popen[bytes]"
    console: Path

    @property
    def said(self) -> str:
        return self.console.read_text()

    @property
    def login_link(self) -> str:
        """The link that the first start printed."""
        found = re.search(r"http://\S+/login/\S+", self.said)
        assert found is not None, self.said
        return found[0]

    def wait_for(self, text: str, *, seconds: float = 180) -> None:
        wait_until(
            lambda: text in self.said, seconds=seconds, message=lambda: self.said
        )

    def children(self) -> dict[str, int]:
        """Return name -> pid of the programs under it."""
        found = {}
        for line in ps("-o", "pid=,args=", "--ppid", str(self.process.pid)):
            pid, args = line.strip().split(" ", 1)
            for name, word in PROGRAMS.items():
                if word in args:
                    found[name] = int(pid)
        return found

    def answers(self) -> bool:
        """Whether the web server says anything at all."""
        return is_answering(f"http://127.0.0.1:{self.port}/healthz")

    def end(self) -> None:
        """End it at once; the kernel ends its children."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.console.unlink()


PROGRAMS = {"valkey": "-server", "web": "uvicorn", "worker": "celery"}


def ps(*options: str) -> list[str]:
    """Return the lines `ps` prints."""
    return subprocess.run(
        ["ps", "-ww", *options], capture_output=True, text=True, check=False
    ).stdout.splitlines()


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that only waits to be reaped does not."""
    return any("Z" not in state for state in ps("-o", "stat=", "-p", str(pid)))
