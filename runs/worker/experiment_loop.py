"""The thread in each worker that advances experiments."""

import logging
import threading

from django.db import DatabaseError, InterfaceError, connection

from runs.services.experiments.advance import advance_experiment, claim_experiment
from runs.store.claims import WorkerState
from runs.store.site_pause import is_site_paused

logger = logging.getLogger(__name__)

IDLE_SECONDS = 3.0
"""Between two looks while no experiment has work."""
BUSY_SECONDS = 0.3
"""Between two turns of experiments."""


def run_experiment_loop(process: WorkerState, stop: threading.Event) -> None:
    """Advance experiments until `stop` is set."""
    pause = IDLE_SECONDS
    while not stop.wait(pause):
        pause = IDLE_SECONDS
        try:
            if process.is_stopping.is_set() or is_site_paused():
                continue
            if (experiment := claim_experiment()) is not None:
                advance_experiment(experiment)
                pause = BUSY_SECONDS
        except (DatabaseError, InterfaceError) as error:
            logger.warning("no experiment, database not available: %s", error)
        except Exception:  # runs matter more: the worker goes on
            logger.exception("an experiment could not be advanced")
        finally:
            connection.close()
