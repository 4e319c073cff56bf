"""The runs that this process has claimed, and how their threads learn to end."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from django.conf import settings

from runs import wakeup
from runs.models import Run, Worker

MAX_ACTIVE_RUNS = 50
"""Runs of a process that compute, call tools or write, and so share one core."""
KEPT_SLOTS = 10
DELIVERY_MARGIN = 10
"""Threads that may be busy with something else than runs."""

EndReason = Literal["canceled", "lost"]


class LeaseLost(Exception):
    """Another worker has claimed the run, or its state was changed."""


class RunCanceled(Exception):
    """A person canceled the run."""


class ShuttingDown(Exception):
    """The process is shutting down; the run goes back to the queue."""


@dataclass
class ClaimedRun:
    """One claimed run in one thread."""

    run_id: int
    fence: int
    flag: threading.Event = field(default_factory=threading.Event)
    end_reason: EndReason | None = None
    deadline: float | None = None
    """Monotonic time after which the current operation counts as hung."""
    limits: tuple[Any, ...] = ()
    """Limits on concurrent runs, of each of which it occupies a place."""
    crash_slot: "threading.Lock | None" = None
    """Held by a crash suspect: a run that may have killed its worker twice."""
    last_write_at: float = field(default_factory=time.monotonic)
    """Monotonic start of the last successful write: the lease was ours then."""

    def release_crash_slot(self) -> None:
        """Let the next crash suspect run: this run made progress or has ended."""
        turn, self.crash_slot = self.crash_slot, None
        if turn is not None:
            turn.release()
            worker_state.enqueue_waiting_suspects()

    def end(self, why: EndReason) -> None:
        """Signal the run's thread to end, whatever it is doing."""
        self.end_reason = self.end_reason or why
        self.flag.set()

    def raise_if_ended(self) -> None:
        """Raise why the run must end; do nothing if it may continue."""
        if self.end_reason == "lost":
            raise LeaseLost
        if self.end_reason == "canceled":
            raise RunCanceled
        if worker_state.is_stopping.is_set():
            raise ShuttingDown

    def is_stale(self) -> bool:
        """Whether the last write is so old that another worker may have the run."""
        sure = settings.LEASE_SECONDS - settings.HEARTBEAT_SECONDS
        return time.monotonic() - self.last_write_at > sure

    def is_alive(self) -> bool:
        """Whether the current operation is within its deadline."""
        return self.deadline is None or time.monotonic() < self.deadline


class WorkerState:
    """What one worker process has claimed."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.claims: dict[int, ClaimedRun] = {}
        self.is_stopping = threading.Event()
        self.worker: Worker | None = None
        self.threads = 1
        """Most runs at once."""
        self.queues = frozenset(settings.QUEUES)
        """Those that this process serves."""
        self.delegated_queues = frozenset[str]()
        """Those of them that a helper serves at the moment."""
        self.is_helper = False
        """Whether another worker started this process."""
        self.model_waits = 0
        """Runs that wait for a model, of those that are claimed."""
        self.on_more_capacity: Callable[[], None] = lambda: None
        """Called when one more run can be taken."""
        self.crash_slot = threading.Lock()
        """Crash suspects run one at a time: a crash affects no other suspect."""
        self.waiting_suspects = set[int]()
        """Crash suspects that found the slot in use."""
        self.deadlines = dict[str, float]()
        """Monotonic time until which each loop of the process must have a turn."""
        self.unavailable_providers = frozenset[int]()
        """Providers that had an outage at the last sweep, or have had one since."""
        self.swept_at: float | None = None
        """Monotonic time at which the sweeper last finished."""
        self.database_away_at: float | None = None
        """Monotonic time at which the database was last found to be away or slow."""

    def add_claim(self, claim: ClaimedRun) -> None:
        """Start renewing the lease of a run, unless a newer claim of it is held."""
        with self.lock:
            known = self.claims.get(claim.run_id)
            if known is None or known.fence < claim.fence:
                self.claims[claim.run_id] = claim

    def remove_claim(self, claim: ClaimedRun) -> None:
        """Stop renewing; a newer claim of the same run in this process stays."""
        with self.lock:
            if self.claims.get(claim.run_id) is claim:
                del self.claims[claim.run_id]

    def compute_capacity(self) -> int:
        """Return how many runs this process may execute now.

        It grows with the runs that wait for a model, which cost only memory.
        """
        return min(self.threads, MAX_ACTIVE_RUNS + self.model_waits)

    def has_room_for_many(self, *, busy: int) -> bool:
        """Whether runs of users who have started many others may take a slot.

        `busy` counts the tasks that this process has taken.

        A fifth of the slots, but not more than ten, is kept for everyone's first runs.
        """
        capacity = self.compute_capacity()
        return capacity - busy > min(KEPT_SLOTS, capacity // 5)

    def count_free_slots(self) -> int:
        return self.compute_capacity() - len(self.claims)

    @contextmanager
    def waiting_for_model(self) -> Iterator[None]:
        """Make room for another run while this one waits for a model."""
        with self.lock:
            was_full = self.count_free_slots() <= DELIVERY_MARGIN
            self.model_waits += 1
        if was_full:
            self.on_more_capacity()
        try:
            yield
        finally:
            with self.lock:
                self.model_waits -= 1

    def enqueue_waiting_suspects(self) -> None:
        """Enqueue the waiting suspects; the sweeper finds those that get lost here."""
        with self.lock:
            waiting, self.waiting_suspects = self.waiting_suspects, set()
        rows = Run.objects.filter(pk__in=waiting) if waiting else Run.objects.none()
        for run_id, queue in rows.values_list("pk", "queue"):
            wakeup.enqueue_run(run_id, queue=queue)

    def note_database_away(self) -> None:
        """Leave the runs of other workers alone for one lease."""
        self.database_away_at = time.monotonic()

    def may_recover_runs(self) -> bool:
        """Whether a lease that has expired shows that its worker is gone.

        While the database is away nobody can renew a lease. When it is back, live
        workers need a while to do so.
        """
        since = self.database_away_at
        return since is None or time.monotonic() - since > settings.LEASE_SECONDS

    def expect_turn(self, loop: str, *, within: float) -> None:
        """Let `loop` count as hung if it does not call this again in that time."""
        self.deadlines[loop] = time.monotonic() + within

    def find_hung_loops(self) -> list[str]:
        """Return the loops that missed their deadline."""
        now = time.monotonic()
        return [name for name, end in list(self.deadlines.items()) if end < now]

    def list_claims(self) -> list[ClaimedRun]:
        with self.lock:
            return list(self.claims.values())


worker_state = WorkerState()
