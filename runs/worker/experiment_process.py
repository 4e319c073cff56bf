"""The process that advances experiments; a worker starts it."""

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from multiprocessing.pool import ThreadPool
from typing import Protocol

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

from runs.models import Experiment
from runs.services.errors import ScoringInterrupted
from runs.services.evaluation.score_run import do_nothing
from runs.services.experiments.advance import (
    Cells,
    ForEach,
    SlowScoring,
    advance_experiment,
)
from runs.services.experiments.claim import (
    claim_experiments,
    release_experiments,
    renew_leases,
)
from runs.store.site_pause import is_site_paused
from runs.worker.scoring_threads import ScoringThreads
from tools.sandbox import abandoned_calls

logger = logging.getLogger(__name__)

IDLE_SECONDS = 1.0
"""Between two looks while no experiment has work."""
BUSY_SECONDS = 0.3
"""Between two turns while nothing has ended."""
NEXT_SECONDS = 0.05
"""After a turn that scored or started few runs, so that the next one has more."""
FEW_RUNS = 10
LAST_IDLE_SECONDS = 60.0
"""Without work, before the process ends."""
CELL_THREADS = 8
"""That score runs whose evaluators only compute, and store what they say.

Starting runs is work for the processor alone, so threads would only slow it down.
"""
MAX_TURN_SECONDS = 300.0
"""Of one experiment; then leases are no longer renewed, and others take over."""


class StopRequest(Protocol):
    """Whether the process should end; a `threading.Event`, or one for signals."""

    def is_set(self) -> bool: ...

    def wait(self, seconds: float, /) -> bool: ...


class LeaseKeeper:
    """Renews the leases of a process while its turns or its judges take long."""

    def __init__(self, holder: uuid.UUID) -> None:
        self.holder = holder
        self.turned_at = time.monotonic()
        """When the last turn of an experiment began or ended."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Return when nothing is renewed from then on."""
        self._ended.set()
        self._thread.join()

    def _renew(self) -> None:
        while not self._ended.wait(settings.HEARTBEAT_SECONDS):
            if time.monotonic() - self.turned_at > MAX_TURN_SECONDS:
                continue
            try:
                renew_leases(self.holder)
            except (DatabaseError, InterfaceError) as error:
                logger.warning("leases are not renewed: %s", error)
            finally:
                connection.close()


def advance_until_idle(stop: StopRequest) -> None:
    """Advance experiments until `stop` is set or there has been no work for a while."""
    keeper, slow = LeaseKeeper(uuid.uuid4()), ScoringThreads()
    with ThreadPool(CELL_THREADS) as pool:  # daemon threads: none delays the exit

        def in_threads(
            act: Callable[[Cells], int], batches: Iterable[Cells]
        ) -> Iterable[int]:
            return pool.imap_unordered(
                lambda cells: 0 if stop.is_set() else act_and_close(act, cells),
                batches,
            )

        def check() -> None:
            if stop.is_set():
                raise ScoringInterrupted

        pause, worked_at = 0.0, time.monotonic()
        keeper.start()
        try:
            while not stop.wait(pause):
                if abandoned_calls.has_too_many_abandoned_calls():
                    logger.error(
                        "%s evaluators hang; this process ends",
                        abandoned_calls.count_abandoned_calls(),
                    )
                    return  # a worker starts another one
                pause = do_turns(keeper, in_threads, slow, before_effect=check)
                if pause < IDLE_SECONDS:
                    worked_at = time.monotonic()
                elif time.monotonic() - worked_at > LAST_IDLE_SECONDS:
                    return
        finally:
            keeper.end()
            release_experiments(keeper.holder)
            connection.close()


def do_turns(
    keeper: LeaseKeeper,
    for_each: ForEach,
    slow: SlowScoring,
    *,
    before_effect: Callable[[], object] = do_nothing,
) -> float:
    """Do one turn of each experiment; return the seconds until the next ones."""
    pauses = [IDLE_SECONDS]
    try:
        keeper.turned_at = time.monotonic()
        if is_site_paused():
            return IDLE_SECONDS
        for each in claim_experiments(keeper.holder):
            pauses.append(do_turn(each, for_each, slow, before_effect))
            keeper.turned_at = time.monotonic()
        return min(pauses)
    except (DatabaseError, InterfaceError) as error:
        logger.warning("no experiment, database not available: %s", error)
        return IDLE_SECONDS
    finally:
        connection.close()


def do_turn(
    experiment: Experiment,
    for_each: ForEach,
    slow: SlowScoring,
    before_effect: Callable[[], object],
) -> float:
    """Do one turn; return the seconds until the next one."""
    try:
        did = advance_experiment(
            experiment, for_each=for_each, slow=slow, before_effect=before_effect
        )
    except (DatabaseError, InterfaceError):
        raise
    except ScoringInterrupted:
        return BUSY_SECONDS
    except Exception:  # the others continue
        logger.exception("experiment %s could not be advanced", experiment.pk)
        return IDLE_SECONDS
    if max(did) > FEW_RUNS:
        return 0.0
    return NEXT_SECONDS if any(did) else BUSY_SECONDS


def act_and_close(act: Callable[[Cells], int], cells: Cells) -> int:
    """Act, and give the connection of this thread back."""
    try:
        return act(cells)
    finally:
        connection.close()
