"""The thread in each worker of the bulk queue that scores real runs by rules."""

import logging
import threading

from django.db import DatabaseError, InterfaceError, connection

from runs.models import Run
from runs.services.scoring.score_runs import advance_scoring_rule, claim_scoring_rule
from runs.store.claims import WorkerState
from runs.store.site_pause import is_site_paused

logger = logging.getLogger(__name__)

IDLE_SECONDS = 5.0
"""Between two looks while no rule has runs to score."""
BUSY_SECONDS = 0.3


def run_scoring_loop(process: WorkerState, stop: threading.Event) -> None:
    """Score runs until `stop` is set."""
    pause = IDLE_SECONDS
    while not stop.wait(pause):
        pause = IDLE_SECONDS
        if Run.Queue.BULK not in process.queues:
            continue
        try:
            if process.is_stopping.is_set() or is_site_paused():
                continue
            if (rule := claim_scoring_rule()) is not None:
                advance_scoring_rule(rule)
                pause = BUSY_SECONDS
        except (DatabaseError, InterfaceError) as error:
            logger.warning("no scores, database not available: %s", error)
        except Exception:  # runs matter more: the worker goes on
            logger.exception("a scoring rule could not be advanced")
        finally:
            connection.close()
