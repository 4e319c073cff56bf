"""The thread in each worker that sends notifications by e-mail."""

import logging
import threading

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

from runs.services.notifications.send import (
    BATCH_SIZE,
    NotificationPruner,
    send_due_notifications,
)
from runs.store.claims import WorkerState
from runs.store.site_pause import is_site_paused

logger = logging.getLogger(__name__)

IDLE_SECONDS = 2.0
BUSY_SECONDS = 0.1


def run_email_loop(process: WorkerState, stop: threading.Event) -> None:
    """Send until `stop` is set; do nothing on a site without e-mail."""
    if not settings.EMAIL_IS_ON:
        return
    pause, pruner = IDLE_SECONDS, NotificationPruner()
    while not stop.wait(pause):
        pause = IDLE_SECONDS
        try:
            if process.is_stopping.is_set() or is_site_paused():
                continue
            if send_due_notifications() == BATCH_SIZE:
                pause = BUSY_SECONDS
            pruner.prune_if_due()
        except (DatabaseError, InterfaceError) as error:
            logger.warning("no e-mail sent, database not available: %s", error)
        except Exception:  # runs matter more: the worker goes on
            logger.exception("e-mail could not be sent")
        finally:
            connection.close()
