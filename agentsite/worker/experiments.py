"""The program that advances experiments; a worker starts it while there are any.

python -m agentsite.worker.experiments PARENT
"""

import os
import signal
import sys

import django
from django.conf import settings
from django.db import connections

from agentsite.child_processes import SignalEvent, become_helper
from agentsite.database import wait_as_worker
from agentsite.gc_tuning import collect_rarely, freeze_gc

POOL_SIZE = 5
"""Connections to PostgreSQL: a thread that waits for a judge holds none."""

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")


def main() -> None:
    """Run until there is no work left, a signal arrives, or the worker dies."""
    stop = SignalEvent()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    become_helper(int(sys.argv[1]))
    collect_rarely()
    django.setup()
    from runs.worker.experiment_process import advance_until_idle  # noqa: PLC0415  (needs Django set up)

    wait_as_worker(
        connections.settings["default"], pool=settings.DATABASE_POOL or POOL_SIZE
    )
    freeze_gc()
    advance_until_idle(stop)


if __name__ == "__main__":
    main()
