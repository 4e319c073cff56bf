"""A real site for a browser: an own data folder, uvicorn on a free port."""

import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg

from tests.support.empty_database import copy_empty_sqlite, create_empty_postgresql
from tests.support.servers import free_port, is_answering, is_healthy, start_redis
from tests.support.timing import wait_until

ROOT = Path(__file__).parent.parent.parent


class Site(NamedTuple):
    """Where the site is, and the environment its commands need."""

    url: str
    env: dict[str, str]
    link: str = ""
    """The login link of the first start."""

    def manage(self, *words: str) -> str:
        """Run a command of `manage.py`; return what it prints."""
        return self.run("manage.py", *words)

    def run(self, *words: str) -> str:
        """Run Python with the site's environment; return what it prints."""
        done = subprocess.run(
            [sys.executable, *words],
            cwd=ROOT,
            env=self.env,
            check=True,
            text=True,
            stdout=subprocess.PIPE,
        )
        return done.stdout


@contextmanager
def running_site(*, seed: str = "", worker: bool = False) -> Iterator[Site]:
    """Serve a fresh site from a data folder of its own.

    It is filled by the module `seed`, else made ready as at a first start. With a
    worker it has a broker of its own too, and runs really run.
    """
    with (
        tempfile.TemporaryDirectory(prefix="agentsite-browser-") as folder,
        fresh_database(Path(folder)) as database,
    ):
        port, log = free_port(), Path(folder, "log")
        own = {"AGENTSITE_DATA": folder, "PORT": str(port)}
        own |= {"DATABASE_URL": database, "REDIS_URL": "", "AGENTSITE_DEMO": "1"}
        own |= {"AGENTSITE_TOOL_MODULES": "tests.browser.seed.functions"}
        own["DJANGO_SETTINGS_MODULE"] = "agentsite.settings"  # not those of the tests
        site = Site(f"http://127.0.0.1:{port}", {**os.environ, **own})
        if seed:
            site.run("-m", seed)
        else:
            site = site._replace(link=site.manage("prepare").strip().split()[-1])
        started = list(start(site, Path(folder), log, worker=worker))
        try:
            wait_until(lambda: is_answering(f"{site.url}/sign-in/"), seconds=180)
            if worker:  # its first heartbeat may come later than the first page
                wait_until(lambda: is_healthy(port), seconds=180)
            yield site
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait(120)
            sys.stderr.write("".join(errors_in(log)))


@contextmanager
def fresh_database(data: Path) -> Iterator[str]:
    """Yield a database on the server of DATABASE_URL; without one, SQLite in `data`."""
    url = os.environ.get("DATABASE_URL", "")
    if not url.startswith("postgres"):
        copy_empty_sqlite(data)
        yield ""
        return
    server, name = url.rpartition("/")[0], f"site_{uuid.uuid4().hex[:12]}"
    create_empty_postgresql(server, name)
    yield f"{server}/{name}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def start(
    site: Site, folder: Path, log: Path, *, worker: bool
) -> Iterator["subprocess.Popen[bytes]"]:
    """Start what the site is made of."""
    web = ["uvicorn", "agentsite.asgi:application", "--port", site.env["PORT"]]
    web += ["--log-level", "warning", "--timeout-graceful-shutdown", "2"]
    if worker:
        yield start_redis(folder / "valkey.sock")
        celery = ["celery", "-q", "-A", "agentsite", "worker", "-P", "threads"]
        celery += ["-c", "8", "--without-gossip", "--without-mingle"]
        yield start_python(site, celery, log)
    yield start_python(site, web, log)


def start_python(site: Site, words: list[str], log: Path) -> "subprocess.Popen[bytes]":
    """Start `python -m` with the site's environment."""
    with log.open("ab") as out:
        return subprocess.Popen(
            [sys.executable, "-m", *words],
            cwd=ROOT,
            env=site.env,
            stdout=out,
            stderr=out,
        )


def errors_in(log: Path) -> list[str]:
    """Return the ends of the errors a server wrote, so that a test shows them."""
    lines = log.read_text(errors="replace").splitlines()
    return [f"{line[-400:]}\n" for line in lines if "level=error" in line]
