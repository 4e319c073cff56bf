"""The Celery application: it carries run ids from the web to the workers."""

import logging
import os
from typing import Any

from celery import Celery
from celery.signals import (
    celeryd_init,
    setup_logging,
    worker_ready,
    worker_shutdown,
    worker_shutting_down,
)
from django.db import connections

from agentsite.database import WORKER_PATIENCE
from agentsite.heap import settle_heap

logger = logging.getLogger(__name__)

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")

app = Celery("agentsite")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.set_default()  # else threads of the web server would ring at another broker


@celeryd_init.connect
def be_patient(*, conf: Any, **_: object) -> None:
    """A worker waits on broker and database longer than a web request may.

    It needs no check of each connection it takes: its writes are tried again.
    """
    database = connections.settings["default"]
    database["CONN_HEALTH_CHECKS"] = False
    if "pool" in database["OPTIONS"]:
        database["OPTIONS"]["pool"]["timeout"] = WORKER_PATIENCE
    conf.broker_transport_options = {
        **conf.broker_transport_options,
        "socket_timeout": 10,
        "socket_connect_timeout": 5,
        "max_retries": None,
    }


@setup_logging.connect
def keep_logging(**_: object) -> None:
    """Keep Django's logging: with a receiver here Celery sets up none of its own."""


@worker_ready.connect
def show_life(*, sender: Any, **_: object) -> None:
    """Register the process and start its heartbeat and its sweeper.

    Celery only logs what a receiver raises. A worker without heartbeat would lose its
    runs, so it ends, and whoever started it starts it again.
    """
    from runs.services.worker import start_worker  # noqa: PLC0415  (needs Django set up)

    settle_heap()
    pool = type(sender.pool).__module__.rpartition(".")[2]
    try:
        start_worker(pool=pool, threads=sender.pool.limit)
    except Exception:  # at a border: anything must end the process
        logger.critical("the worker cannot register; it ends", exc_info=True)
        os._exit(1)


@worker_shutting_down.connect
def take_no_more(**_: object) -> None:
    """Let every run go back into the queue at its next commit."""
    from runs.services.worker import stop_worker  # noqa: PLC0415  (needs Django set up)

    stop_worker()


@worker_shutdown.connect
def say_goodbye(**_: object) -> None:
    """Write the last heartbeat."""
    from runs.services.worker import leave  # noqa: PLC0415  (needs Django set up)

    leave()
