"""What a sandbox takes from the machine, looked at from outside while it works."""

import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

OWN_MEMORY = 16 << 20
"""Bytes an interpreter takes that does nothing: Monty 9 MB, CPython 12 MB."""

TICKS = os.sysconf("SC_CLK_TCK")


class Taken:
    """What processes took: wall clock, CPU of the busiest, memory of the largest."""

    def __init__(self) -> None:
        self.seconds, self.cpu, self.memory = 0.0, 0.0, 0

    def assert_memory_within(self, memory: int) -> None:
        """Raise if more than a fifth over the limit was taken."""
        most = memory * 1.2 + OWN_MEMORY
        assert self.memory <= most, f"{self.memory >> 20} MB of {int(most) >> 20}"


@contextmanager
def looked_at(pids: Callable[[], Iterable[int]]) -> Iterator[Taken]:
    """Look at the processes again and again until the block ends."""
    taken, is_over = Taken(), threading.Event()

    def look() -> None:
        for pid in pids():
            memory, cpu = memory_and_cpu(pid)
            taken.memory = max(taken.memory, memory)
            taken.cpu = max(taken.cpu, cpu)

    def look_on() -> None:
        while not is_over.wait(0.002):
            look()

    look()
    thread = threading.Thread(target=look_on, daemon=True)
    thread.start()
    began = time.monotonic()
    try:
        yield taken
    finally:
        taken.seconds = time.monotonic() - began
        is_over.set()
        thread.join()
        look()


def memory_and_cpu(pid: int) -> tuple[int, float]:
    """Return the most bytes a process ever had at once, and its seconds of CPU.

    Nothing where it is gone.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0.0
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    cpu = (int(stat[11]) + int(stat[12])) / TICKS
    return (int(peak[1]) << 10 if peak else 0), cpu


def below(pid: int) -> list[int]:
    """Return the processes a process started, and all below them."""
    found: list[int] = []
    with suppress(FileNotFoundError, ProcessLookupError):  # it may end meanwhile
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            found += [int(child) for child in children.read_text().split()]
    return [*found, *(one for child in found for one in below(child))]


def program_of(pid: int) -> str:
    """Return the path of the program a process runs; empty where it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().partition("\0")[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def can_make_namespaces() -> bool:
    """Whether bubblewrap is installed, and may make the namespaces it needs."""
    program = shutil.which("bwrap")
    if program is None:
        return False
    words = [program, "--unshare-all", "--ro-bind", "/", "/", "true"]
    return subprocess.run(words, check=False).returncode == 0


needs_bubblewrap = pytest.mark.skipif(
    not can_make_namespaces(),
    reason="this machine has no bubblewrap, or lets it make no namespaces",
)
