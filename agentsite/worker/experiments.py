"""The program that advances experiments; a worker starts it while there are any.

python -m agentsite.worker.experiments
"""

import os
import signal

import django
from django.conf import settings
from django.db import connections

from agentsite.child_processes import SignalEvent, die_with_parent
from agentsite.database import wait_as_worker
from agentsite.gc_tuning import collect_rarely, freeze_gc

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")


def main() -> None:
    """Run until there is no work left, a signal arrives, or the worker dies."""
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

    wait_as_worker(
        connections.settings["default"],
        pool=settings.DATABASE_POOL or CELL_THREADS + 1,
    )
    freeze_gc()
    advance_until_idle(stop)


if __name__ == "__main__":
    main()
