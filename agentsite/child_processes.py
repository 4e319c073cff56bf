"""Child processes that are restarted when they exit, and end with their parent.

Standard library only, like `agentsite.supervise`.
"""

import contextlib
import ctypes
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from agentsite.layout import ROOT

GRACE_SECONDS = 25
"""Seconds that web and worker get to exit; a worker stops itself after 20."""
DUPLICATE_SIGNAL_SECONDS = 0.2
"""Seconds in which process group, shell and kernel may all signal one Ctrl-C."""
MAX_RESTART_DELAY = 30
STABLE_SECONDS = 60
"""Seconds of uptime after which earlier crashes no longer count."""
DEFAULT_LOG_BYTES = 20_000_000
OLD_LOGS = 2
"""Rotated files of a log, `.1` being the newest; so many times its size is used."""
PR_SET_PDEATHSIG = 1
HELPER_NICENESS = 19
WORKER_OPTIONS = [
    *("-P", "threads", "-l", "WARNING"),
    *("--without-gossip", "--without-mingle", "--without-heartbeat"),
]
"""Of the command `celery worker`: workers do not communicate with each other."""
WARNING_LINE = re.compile(
    r"level=(warning|error|critical)\b|^(WARNING|ERROR|CRITICAL)\b"
    r'|"level": "(warning|error|critical)"'
)
"""Log lines that are also printed to the console."""

libc = ctypes.CDLL(None)


@dataclass
class Child:
    """A program that is restarted when it exits."""

    name: str
    command: list[str]
    log: Path
    parent_death_signal: signal.Signals = signal.SIGKILL
    """Sent by the kernel when this process dies."""
    process: "subprocess.Popen[bytes] | None" = None
    started: float = 0
    crashes: int = 0
    restart_at: float = 0
    log_offset: int = 0
    """Bytes of the log that were read."""
    max_log_bytes: int = DEFAULT_LOG_BYTES
    alive_file: Path | None = None
    """Touched by the program every few seconds; None if it does not do that."""
    hang_seconds: float = 60
    touched_at: float | None = None
    """When the file was last touched, by the clock of the disk."""
    silent_seconds: float = 0
    checked_at: float = 0

    def start(self) -> None:
        """Start the program; its output goes to the log."""
        self.log_offset = self.log.stat().st_size if self.log.exists() else 0
        environment = dict(os.environ)
        if self.alive_file is not None:
            self.alive_file.unlink(missing_ok=True)
            environment["AGENTSITE_ALIVE_FILE"] = str(self.alive_file)
        self.touched_at, self.silent_seconds = None, 0
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env=environment,
                process_group=0,  # Ctrl-C is ours to pass on, in order
                preexec_fn=die_with_parent(self.parent_death_signal),
            )
        self.started = time.monotonic()

    @property
    def is_running(self) -> bool:
        """Whether the process is alive; reap it if not."""
        return self.process is not None and self.process.poll() is None

    def is_hung(self) -> bool:
        """Whether the program touched its file once, but not for `hang_seconds`.

        Counts only time in which this process runs too, so that a machine that was
        suspended does not look like a hung program.
        """
        try:
            touched = self.alive_file.stat().st_mtime if self.alive_file else None
        except FileNotFoundError:  # it has not started yet
            touched = None
        now = time.monotonic()
        if touched is None or touched != self.touched_at:
            self.silent_seconds = 0
        else:
            self.silent_seconds += min(now - self.checked_at, 1)
        self.touched_at, self.checked_at = touched, now
        return self.silent_seconds > self.hang_seconds

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process group, so that grandchildren get it too."""
        if self.process is not None and self.is_running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)


class SignalEvent:
    """An event that signal handlers set.

    Not a `threading.Event`: its lock is held while the first handler runs, so a second
    signal would deadlock.
    """

    def __init__(self) -> None:
        self._read_fd, self._write_fd = os.pipe()
        os.set_blocking(self._read_fd, False)
        os.set_blocking(self._write_fd, False)

    def set(self) -> None:
        """Set the event; safe in a signal handler."""
        with contextlib.suppress(BlockingIOError):  # the pipe is full: the event is set
            os.write(self._write_fd, b"!")

    def clear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self._read_fd, 4096):
                pass

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds`; return whether the event is set."""
        return bool(select.select([self._read_fd], [], [], seconds)[0])

    def is_set(self) -> bool:
        return self.wait(0)


@dataclass
class ProcessGroup:
    """All child processes, and the request to stop."""

    children: list[Child] = field(default_factory=list)
    stop_requested: SignalEvent = field(default_factory=SignalEvent)

    def add(self, child: Child) -> None:
        """Start a child, and restart it from now on when it exits."""
        self.children.append(child)
        child.start()

    def check_children(self) -> None:
        """Print new warnings of each child, and restart those that exited."""
        for child in self.children:
            print_new_warnings(child)
            if not child.is_running:
                restart_child(child)
            elif child.is_hung():
                print_line(f"{child.name} does not respond and is killed.")
                child.silent_seconds = 0
                child.send(signal.SIGKILL)
            elif child.crashes and time.monotonic() - child.started > STABLE_SECONDS:
                child.crashes = 0

    def stop(self) -> None:
        """Stop web and worker together, then Valkey; a second Ctrl-C stops waiting."""
        time.sleep(DUPLICATE_SIGNAL_SECONDS)
        self.stop_requested.clear()
        first = [child for child in self.children if child.name != "valkey"]
        rest = [child for child in self.children if child.name == "valkey"]
        for group in (first, rest):
            for child in group:
                child.send(signal.SIGTERM)
            until = time.monotonic() + GRACE_SECONDS
            while any(child.is_running for child in group):
                if self.stop_requested.wait(0.05) or time.monotonic() > until:
                    break
            for child in group:
                child.send(signal.SIGKILL)
            for child in group:
                if child.process is not None:
                    child.process.wait()
                print_new_warnings(child)


def die_with_parent(
    number: signal.Signals, *, parent: int | None = None
) -> Callable[[], None]:
    """Return a `preexec_fn`: the kernel sends `number` when the parent dies.

    The parent is this process, unless its id is given.
    """
    parent = parent or os.getpid()

    def bind() -> None:
        if sys.platform == "linux":
            libc.prctl(PR_SET_PDEATHSIG, number)
        if os.getppid() != parent and os.getpid() != parent:
            os._exit(1)  # the parent died before prctl was called

    return bind


def become_helper(parent: int) -> None:
    """End with the parent, and let what people wait for have the processors first."""
    die_with_parent(signal.SIGKILL, parent=parent)()
    os.nice(HELPER_NICENESS)


def restart_child(child: Child) -> None:
    """Restart a child that exited, with a delay that grows with each crash."""
    now = time.monotonic()
    if not child.restart_at:
        code = child.process.returncode if child.process else 0
        pause = min(0.5 * 2**child.crashes, MAX_RESTART_DELAY) if code else 0
        child.crashes += bool(code)
        child.restart_at = now + pause
        print_line(
            f"{child.name} exited ({describe_exit(code)}), restarting in {pause:g} s."
        )
        if code > 0:
            print_line(f"Last lines of {child.log}:\n{read_log_tail(child.log)}")
    if now >= child.restart_at:
        child.restart_at = 0
        child.start()


def describe_exit(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def read_log_tail(log: Path) -> str:
    """Return the last lines of a log, indented."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 2_000))
        lines = file.read().decode(errors="replace").splitlines()
    return "\n".join(f"  {line}" for line in lines[-8:])


def print_new_warnings(child: Child) -> None:
    """Print new warnings of the child's log; rotate a log that grew too long."""
    with contextlib.suppress(FileNotFoundError), child.log.open("rb") as log:
        log.seek(child.log_offset)
        new = log.read(1_000_000)
        whole = new[: new.rfind(b"\n") + 1]
        child.log_offset += len(whole)
        for line in whole.decode(errors="replace").splitlines():
            if WARNING_LINE.search(line):
                print_line(f"{child.name}: {line}")
        if os.fstat(log.fileno()).st_size > child.max_log_bytes:
            rotate_log(child)


def rotate_log(child: Child) -> None:
    """Copy the log and empty it: the program keeps the file open, and appends."""
    old = [child.log.with_suffix(f".log.{n}") for n in range(1, OLD_LOGS + 1)]
    try:
        for newer, older in reversed(list(zip(old, old[1:], strict=False))):
            if newer.exists():
                newer.replace(older)
        shutil.copyfile(child.log, old[0])
        old[0].chmod(0o600)
    except OSError as error:  # such as no space: new lines are worth more than old ones
        print_line(f"{child.log} was emptied and not kept: {error.strerror}.")
        with contextlib.suppress(OSError):
            old[0].unlink()  # a part of a copy
    os.truncate(child.log, 0)
    child.log_offset = 0


def print_line(sentence: str) -> None:
    """Print to the console, which may be closed."""
    with contextlib.suppress(OSError):
        print(sentence, flush=True)
