"""The program that advances experiments; a worker starts it while there are any.

python -m agentsite.worker.experiments
"""

import os
import signal

import django
from django.conf import settings
from django.db import connections

from agentsite.child_processes import SignalEvent, die_with_parent
from agentsite.database import WORKER_POOL_TIMEOUT
from agentsite.gc_tuning import collect_rarely, freeze_gc

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")


def main() -> None:
    """Run until there is no more work, or a signal arrives, or the worker has died."""
    stop = SignalEvent()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    die_with_parent(signal.SIGKILL)()
    collect_rarely()
    django.setup()
    from runs.worker.experiment_process import (  # noqa: PLC0415  (needs Django set up)
        CELL_THREADS,
        advance_until_idle,
    )

    limit_connections(CELL_THREADS + 1)
    freeze_gc()
    advance_until_idle(stop)


def limit_connections(most: int) -> None:
    """Let the process take so many connections, and treat them as a worker does."""
    database = connections.settings["default"]
    database["CONN_HEALTH_CHECKS"] = False
    options = database["OPTIONS"]
    if "pool" in options:
        size = settings.DATABASE_POOL or most
        options["pool"].update(max_size=size, timeout=WORKER_POOL_TIMEOUT)


if __name__ == "__main__":
    main()
