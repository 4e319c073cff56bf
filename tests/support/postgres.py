"""A private PostgreSQL server, to be used and to be broken."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

from tests.support.servers import free_port


def find_initdb() -> Path | None:
    """Return the newest `initdb`, whose folder holds the other programs too."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1]
    on_path = shutil.which("initdb")
    return Path(on_path).resolve() if on_path else None


class Postgres:
    """One cluster in a temporary folder, on a free port of the loopback."""

    def __init__(self, initdb: Path, folder: Path, *, fsync: bool) -> None:
        self.programs, self.folder = initdb.parent, folder
        self.fsync, self.port = fsync, free_port()
        self.user = "postgres" if os.geteuid() == 0 else None  # initdb refuses root
        self.process: subprocess.Popen[bytes] | None = None
        if self.user:
            shutil.chown(folder, self.user)
        subprocess.run(
            [initdb, "-D", folder / "db", "-U", "postgres", "-A", "trust"]
            + ["-E", "UTF8", "--locale=C.UTF-8", "--no-sync"],
            check=True,
            stdout=subprocess.DEVNULL,
            user=self.user,
            cwd=folder,
        )

    @property
    def url(self) -> str:
        """The address of a database to be made."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/agentsite"

    @property
    def server(self) -> str:
        """The address of the server, without a database."""
        return self.url.rpartition("/")[0]

    def start(self) -> None:
        """Start the server and wait until it takes connections."""
        self.process = subprocess.Popen(
            [self.programs / "postgres", "-D", self.folder / "db"]
            + ["-p", str(self.port), "-k", self.folder, "-h", "127.0.0.1"]
            + ["-c", f"fsync={'on' if self.fsync else 'off'}", "-c", "jit=off"]
            + ["-c", "max_connections=300", "-c", "log_min_messages=panic"],
            stderr=subprocess.DEVNULL,
            user=self.user,
            cwd=self.folder,
        )
        wait_for(self.port)

    def create_database(self) -> None:
        """Create the database at `url`, without tables."""
        with psycopg.connect(f"{self.server}/postgres", autocommit=True) as connection:
            connection.execute("CREATE DATABASE agentsite")

    def stop(self) -> None:
        """End the server at once, as a crash does."""
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(30)
            self.process = None


@contextlib.contextmanager
def postgresql(initdb: Path, *, fsync: bool = False) -> Iterator[Postgres]:
    """Run a private server until the block ends."""
    folder = Path(tempfile.mkdtemp(prefix="agentsite-pg-", dir="/tmp"))
    try:
        server = Postgres(initdb, folder, fsync=fsync)
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def wait_for(port: int) -> None:
    """Wait until the server takes connections."""
    until = time.monotonic() + 120
    while True:
        try:
            psycopg.connect(host="127.0.0.1", port=port, user="postgres").close()
        except psycopg.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return
