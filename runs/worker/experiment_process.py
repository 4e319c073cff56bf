"""The process that advances experiments; a worker starts it."""

import logging
import time
import uuid
from collections.abc import Callable, Iterable
from multiprocessing.pool import ThreadPool
from typing import Protocol

from django.db import DatabaseError, InterfaceError, connection

from runs.models import Experiment
from runs.services.errors import ScoringInterrupted
from runs.services.evaluation.score_run import do_nothing
from runs.services.experiments.advance import Cells, ForEach, advance_experiment
from runs.services.experiments.claim import (
    claim_experiments,
    release_experiments,
    renew_lease,
)
from runs.store.site_pause import is_site_paused

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
"""That score runs, which may take a call of a model.

Starting runs is work for the processor alone, so threads would only slow it down.
"""


class StopRequest(Protocol):
    """Whether the process should end; a `threading.Event`, or one for signals."""

    def is_set(self) -> bool: ...

    def wait(self, seconds: float, /) -> bool: ...


def advance_until_idle(stop: StopRequest) -> None:
    """Advance experiments until `stop` is set or there has been no work for a while."""
    holder = uuid.uuid4()
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
        try:
            while not stop.wait(pause):
                pause = do_turns(holder, for_each=in_threads, before_effect=check)
                if pause < IDLE_SECONDS:
                    worked_at = time.monotonic()
                elif time.monotonic() - worked_at > LAST_IDLE_SECONDS:
                    return
        finally:
            release_experiments(holder)
            connection.close()


def do_turns(
    holder: uuid.UUID,
    *,
    for_each: ForEach,
    before_effect: Callable[[], object] = do_nothing,
) -> float:
    """Do one turn of each experiment; return the seconds until the next ones."""
    try:
        if is_site_paused():
            return IDLE_SECONDS
        pauses = [
            do_turn(each, for_each, before_effect) for each in claim_experiments(holder)
        ]
        return min(pauses, default=IDLE_SECONDS)
    except (DatabaseError, InterfaceError) as error:
        logger.warning("no experiment, database not available: %s", error)
        return IDLE_SECONDS
    finally:
        connection.close()


def do_turn(
    experiment: Experiment, for_each: ForEach, before_effect: Callable[[], object]
) -> float:
    """Do one turn; return the seconds until the next one."""
    try:
        did = advance_experiment(
            experiment, for_each=for_each, before_effect=before_effect
        )
        renew_lease(experiment, leases=1)  # another process has it soon if this dies
    except (DatabaseError, InterfaceError):
        raise
    except ScoringInterrupted:
        return BUSY_SECONDS
    except Exception:  # the others go on
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
