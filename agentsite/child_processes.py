"""Child processes that are kept running, and end with their parent.

Standard library only, as `agentsite.supervise`.
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

ROOT = Path(__file__).resolve().parent.parent
GRACE = 25
"""Seconds that web and worker get to end; a worker ends itself after 20."""
ONE_GESTURE = 0.2
"""Seconds in which a group, a shell and the kernel may all tell of one wish to stop."""
LONGEST_PAUSE = 30
STEADY = 60
"""Seconds after which a child counts as well again."""
LONGEST_LOG = 20_000_000
PR_SET_PDEATHSIG = 1
LOUD = re.compile(r"level=(warning|error|critical)\b|^(WARNING|ERROR|CRITICAL)\b")
"""Log lines that are shown at the console, too."""

libc = ctypes.CDLL(None)


@dataclass
class Child:
    """A program that is kept running."""

    name: str
    command: list[str]
    log: Path
    death: signal.Signals = signal.SIGKILL
    """What the kernel sends it when this process is gone."""
    process: "subprocess.Popen[bytes] | None" = None
    started: float = 0
    crashes: int = 0
    start_at: float = 0
    seen: int = 0
    """Bytes of the log that were looked at."""

    def start(self) -> None:
        """Start it; its words go to the log."""
        self.seen = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                process_group=0,  # Ctrl-C is ours to pass on, in order
                preexec_fn=die_with_parent(self.death),
            )
        self.started = time.monotonic()

    @property
    def is_running(self) -> bool:
        """Whether the process is alive; reaps it where it is not."""
        return self.process is not None and self.process.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the whole group, for a child of the child too."""
        if self.process is not None and self.is_running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)


class Wish:
    """A wish that signals express, and that is waited for.

    Not a `threading.Event`: a second signal finds its lock taken by the first one's
    handler, and waits for it for ever.
    """

    def __init__(self) -> None:
        self._heard, self._said = os.pipe()
        os.set_blocking(self._heard, False)
        os.set_blocking(self._said, False)

    def set(self) -> None:
        """Express it; a signal handler may."""
        with contextlib.suppress(BlockingIOError):  # it was said often enough
            os.write(self._said, b"!")

    def clear(self) -> None:
        """Forget it."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self._heard, 4096):
                pass

    def wait(self, seconds: float) -> bool:
        """Wait so long at most; return whether it was expressed."""
        return bool(select.select([self._heard], [], [], seconds)[0])

    def is_set(self) -> bool:
        """Return whether it was expressed."""
        return self.wait(0)


@dataclass
class Family:
    """All children, and the wish to stop."""

    children: list[Child] = field(default_factory=list)
    asked: Wish = field(default_factory=Wish)

    def add(self, child: Child) -> None:
        """Start a child and keep it running from now on."""
        self.children.append(child)
        child.start()

    def look(self) -> None:
        """Look after every child once."""
        for child in self.children:
            show_new_lines(child)
            if not child.is_running:
                revive(child)
            elif child.crashes and time.monotonic() - child.started > STEADY:
                child.crashes = 0

    def stop(self) -> None:
        """End web and worker together, then Valkey; a second Ctrl-C ends the wait."""
        time.sleep(ONE_GESTURE)
        self.asked.clear()
        first = [child for child in self.children if child.name != "valkey"]
        rest = [child for child in self.children if child.name == "valkey"]
        for group in (first, rest):
            for child in group:
                child.send(signal.SIGTERM)
            until = time.monotonic() + GRACE
            while any(child.is_running for child in group):
                if self.asked.wait(0.05) or time.monotonic() > until:
                    break
            for child in group:
                child.send(signal.SIGKILL)
            for child in group:
                if child.process is not None:
                    child.process.wait()
                show_new_lines(child)


def die_with_parent(number: signal.Signals) -> Callable[[], None]:
    """Return what a child does first: ask the kernel to send it `number` with us."""
    parent = os.getpid()

    def bind() -> None:
        if sys.platform == "linux":
            libc.prctl(PR_SET_PDEATHSIG, number)
        if os.getppid() != parent and os.getpid() != parent:
            os._exit(1)  # the parent was gone before the kernel knew of the wish

    return bind


def revive(child: Child) -> None:
    """Start a child that ended: soon the first time, then ever more slowly."""
    now = time.monotonic()
    if not child.start_at:
        code = child.process.returncode if child.process else 0
        pause = min(0.5 * 2**child.crashes, LONGEST_PAUSE) if code else 0
        child.crashes += bool(code)
        child.start_at = now + pause
        say(f"The {child.name} ended ({ending(code)}); it starts again in {pause:g} s.")
        if code > 0:
            say(f"The end of {child.log}:\n{last_words(child.log)}")
    if now >= child.start_at:
        child.start_at = 0
        child.start()


def ending(code: int) -> str:
    """Say in words how a process ended."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def last_words(log: Path) -> str:
    """Return the last lines of a log, indented."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 2_000))
        lines = file.read().decode(errors="replace").splitlines()
    return "\n".join(f"  {line}" for line in lines[-8:])


def show_new_lines(child: Child) -> None:
    """Show warnings from the child's log at the console; cut a log that grew long."""
    with contextlib.suppress(FileNotFoundError), child.log.open("rb") as log:
        log.seek(child.seen)
        new = log.read(1_000_000)
        whole = new[: new.rfind(b"\n") + 1]
        child.seen += len(whole)
        for line in whole.decode(errors="replace").splitlines():
            if LOUD.search(line):
                say(f"{child.name}: {line}")
        if child.seen > LONGEST_LOG:
            shutil.copyfile(child.log, child.log.with_suffix(".log.1"))
            os.truncate(child.log, 0)
            child.seen = 0


def say(sentence: str) -> None:
    """Print to the console, which may be gone."""
    with contextlib.suppress(OSError):
        print(sentence, flush=True)
