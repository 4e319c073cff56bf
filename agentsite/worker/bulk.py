"""The worker of the queue `bulk` that another one starts while there are experiments.

python -m agentsite.worker.bulk PARENT THREADS
"""

import os
import sys

from celery import current_app
from django import setup

from agentsite.child_processes import WORKER_OPTIONS, become_helper

QUEUE = "bulk"
POOL_SIZE = "15"
"""Connections to PostgreSQL, unless the environment says how many."""

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
os.environ["AGENTSITE_DATABASE_POOL"] = (
    os.environ.get("AGENTSITE_DATABASE_POOL") or POOL_SIZE
)


def main() -> None:
    """Execute runs until a signal arrives or the other worker dies."""
    parent, threads = sys.argv[1:]
    become_helper(int(parent))
    setup()
    from runs.store.claims import worker_state  # noqa: PLC0415  (needs Django set up)

    worker_state.is_helper = True
    options = ["-Q", QUEUE, "-c", threads, *WORKER_OPTIONS]
    current_app.worker_main(["-q", "worker", *options])


if __name__ == "__main__":
    main()
