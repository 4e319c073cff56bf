"""Threads that score runs while turns continue: a judge may take minutes.

Each experiment has threads of its own, so one whose judge waits for a reply, or for its
turn at a provider, holds up no other one. They are daemons: none delays the exit, and
what they have not stored is scored again.
"""

import threading
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from django.db import connection

from runs.models import ExperimentRun

THREADS_PER_EXPERIMENT = 8
MOST_THREADS = 256
"""Of all experiments. One that waits holds no connection."""


@dataclass
class OpenScores:
    """What the threads of one experiment have to do, and what they have done."""

    jobs: deque[tuple[int, Callable[[], int]]] = field(default_factory=deque)
    cells: set[int] = field(default_factory=set)
    """Keys of those that are scored, or will be."""
    threads: int = 0
    count: int = 0
    """Scored since the last turn asked."""
    error: Exception | None = None


class ScoringThreads:
    """The threads, and the runs that they score, by experiment."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads = 0
        self._open: dict[int, OpenScores] = {}

    def list_cells(self, experiment: int) -> Collection[int]:
        """Return the keys of runs that are scored, or will be."""
        with self._lock:
            found = self._open.get(experiment)
            return set(found.cells) if found else ()

    def add(self, cell: ExperimentRun, score: Callable[[], int]) -> None:
        """Score a run soon; not yet if other experiments use all threads."""
        with self._lock:
            mine = self._open.setdefault(cell.experiment_id, OpenScores())
            is_full = self._threads >= MOST_THREADS
            if is_full and not mine.threads:
                return
            if not is_full and mine.threads < THREADS_PER_EXPERIMENT:
                threading.Thread(
                    target=self._work, args=(mine,), name="score", daemon=True
                ).start()  # it waits for the lock
                mine.threads += 1
                self._threads += 1
            mine.jobs.append((cell.pk, score))
            mine.cells.add(cell.pk)

    def take_count(self, experiment: int) -> int:
        """Return how many runs were scored since this was last asked.

        Raises what scoring one of them has raised.
        """
        with self._lock:
            found = self._open.get(experiment)
            if found is None:
                return 0
            if not found.threads:
                del self._open[experiment]
            count, error = found.count, found.error
            found.count, found.error = 0, None
        if error is not None:
            raise error
        return count

    def _work(self, mine: OpenScores) -> None:
        """Score one run after the other, until none is left."""
        while True:
            with self._lock:
                if not mine.jobs:
                    mine.threads -= 1
                    self._threads -= 1
                    return
                cell, score = mine.jobs.popleft()
            count, error = 0, None
            try:
                count = score()
            except Exception as raised:  # noqa: BLE001  # the next turn reports it
                error = raised
            finally:
                connection.close()
            with self._lock:
                mine.cells.discard(cell)
                mine.count += count
                mine.error = error or mine.error
