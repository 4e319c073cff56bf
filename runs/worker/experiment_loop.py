"""The thread in each worker that advances experiments."""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.pool import ThreadPool

from django.db import DatabaseError, InterfaceError, connection

from runs.models import ExperimentRun
from runs.services.experiments.advance import (
    ForEach,
    advance_experiment,
    claim_experiment,
)
from runs.store.claims import WorkerState
from runs.store.site_pause import is_site_paused

logger = logging.getLogger(__name__)

IDLE_SECONDS = 3.0
"""Between two looks while no experiment has work."""
BUSY_SECONDS = 0.3
"""Between two turns while nothing has ended."""
NEXT_SECONDS = 0.05
"""After a turn that scored or started something."""
CELL_THREADS = 8
"""That score runs, which may take a call of a model.

Starting runs is work for the processor alone: threads only made live runs wait.
"""


def run_experiment_loop(process: WorkerState, stop: threading.Event) -> None:
    """Advance experiments until `stop` is set."""
    with ThreadPool(CELL_THREADS) as pool:  # daemon threads: none delays the exit

        def in_threads(
            act: Callable[[ExperimentRun], bool], cells: Sequence[ExperimentRun]
        ) -> Iterable[bool]:
            return pool.imap_unordered(lambda cell: act_and_close(act, cell), cells)

        advance_until_stopped(process, stop, for_each=in_threads)


def advance_until_stopped(
    process: WorkerState, stop: threading.Event, *, for_each: ForEach
) -> None:
    pause = IDLE_SECONDS
    while not stop.wait(pause):
        pause = IDLE_SECONDS
        try:
            if process.is_stopping.is_set() or is_site_paused():
                continue
            if (experiment := claim_experiment()) is not None:
                did = advance_experiment(experiment, for_each=for_each)
                pause = NEXT_SECONDS if any(did) else BUSY_SECONDS
        except (DatabaseError, InterfaceError) as error:
            logger.warning("no experiment, database not available: %s", error)
        except Exception:  # runs matter more: the worker goes on
            logger.exception("an experiment could not be advanced")
        finally:
            connection.close()


def act_and_close(act: Callable[[ExperimentRun], bool], cell: ExperimentRun) -> bool:
    """Act, and give the connection of this thread back."""
    try:
        return act(cell)
    finally:
        connection.close()
