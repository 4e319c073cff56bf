"""The thread in each worker that exports ended runs as traces."""

import logging
import threading

from django.db import DatabaseError, InterfaceError, connection

from runs.services.telemetry.export import (
    BATCH_SIZE,
    CollectorAway,
    export_due_runs,
    get_collector,
)
from runs.store.claims import WorkerState
from runs.store.site_pause import is_site_paused

logger = logging.getLogger(__name__)

IDLE_SECONDS = 2.0
"""Between two looks while no run is due."""
BUSY_SECONDS = 0.1
AWAY_SECONDS = 5.0
"""After the first failure; each further one doubles it."""
MAX_AWAY_SECONDS = 60.0


def run_trace_export_loop(process: WorkerState, stop: threading.Event) -> None:
    """Export until `stop` is set; do nothing without a collector."""
    collector = get_collector()
    if collector is None:
        return
    pause, away = IDLE_SECONDS, 0.0
    while not stop.wait(pause):
        pause = IDLE_SECONDS
        try:
            if process.is_stopping.is_set() or is_site_paused():
                continue
            if export_due_runs(collector) == BATCH_SIZE:
                pause = BUSY_SECONDS
            away = 0.0
        except CollectorAway as error:
            away = min(2 * away or AWAY_SECONDS, MAX_AWAY_SECONDS)
            pause = away
            logger.warning("no traces exported, the collector is away: %s", error)
        except (DatabaseError, InterfaceError) as error:
            logger.warning("no traces exported, database not available: %s", error)
        except Exception:  # runs matter more: the worker goes on
            logger.exception("traces could not be exported")
        finally:
            connection.close()
