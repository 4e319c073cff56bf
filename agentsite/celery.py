"""The Celery application, which carries run ids from the web to the workers."""

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
from celery.worker import state
from django.conf import settings
from django.db import connections

from agentsite.database import wait_as_worker
from agentsite.gc_tuning import freeze_gc
from agentsite.logs import process_fields
from agentsite.watchdog import CHECK_SECONDS, start_watchdog
from agentsite.worker import broker
from agentsite.worker.threads import ThreadPool, wake_consumer

logger = logging.getLogger(__name__)

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")

broker.install()
app = Celery("agentsite")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.set_default()  # otherwise web threads use Celery's default broker


@celeryd_init.connect
def set_worker_timeouts(*, conf: Any, **_: object) -> None:
    """Let workers wait longer for broker and database than a web request may."""
    app.amqp.queues.select(settings.WORKER_QUEUES)  # `-Q` selects others
    wait_as_worker(connections.settings["default"], pool=settings.WORKER_POOL)
    conf.broker_transport_options = {
        **conf.broker_transport_options,
        "socket_timeout": 10,
        "socket_connect_timeout": 5,
        "max_retries": None,
    }


@celeryd_init.connect
def log_received_signals(**_: object) -> None:
    """Log what the signal handlers of Celery would print as plain text."""
    from celery.apps import worker  # noqa: PLC0415  (no other process needs it)

    worker.safe_say = log_signal_message


def log_signal_message(message: str, *_: object) -> None:
    logger.info("%s", message)


@setup_logging.connect
def keep_django_logging(**_: object) -> None:
    """Keep Django's logging: Celery sets up its own only without a receiver."""


@worker_ready.connect
def register_worker(*, sender: Any, **_: object) -> None:
    """Register the process, and start its heartbeat and its sweeper.

    Celery only logs what a receiver raises. A worker without a heartbeat would lose its
    runs, so the process exits, and the supervisor restarts it.
    """
    from runs.store.claims import worker_state  # noqa: PLC0415  (needs Django set up)
    from runs.worker.process import start_worker  # noqa: PLC0415  (needs Django set up)

    freeze_gc()
    module = type(sender.pool).__module__.rpartition(".")[2]
    is_elastic = isinstance(sender.pool, ThreadPool)
    try:
        start_worker(
            pool="threads" if is_elastic else module,
            threads=sender.pool.limit,
            queues=app.amqp.queues.consume_from,
        )
        if is_elastic:
            sender.pool.find_capacity = worker_state.compute_capacity
            worker_state.on_more_capacity = wake_consumer
            broker.slots.has_room_for_many = lambda: worker_state.has_room_for_many(
                busy=len(state.reserved_requests)
            )
        broker.slots.find_delegated = lambda: worker_state.delegated_queues
        if worker_state.worker is not None:
            process_fields["worker"] = worker_state.worker.name
        watch_worker(sender)
    except Exception:  # top-level handler: any error must end the process
        logger.critical("the worker could not register and exits", exc_info=True)
        os._exit(1)


def watch_worker(consumer: Any) -> None:
    """End the process if one of its loops hangs; Celery's waits for the broker."""
    from runs.store.claims import worker_state  # noqa: PLC0415  (needs Django set up)

    def expect_turn() -> None:
        worker_state.expect_turn("the consumer", within=settings.HANG_SECONDS)

    def find_hung() -> list[str]:
        if consumer.connection is None:  # it is reconnecting, however long that takes
            expect_turn()
        return (
            [] if worker_state.is_stopping.is_set() else worker_state.find_hung_loops()
        )

    expect_turn()
    consumer.hub.call_repeatedly(CHECK_SECONDS, expect_turn)
    start_watchdog(find_hung)


@worker_shutting_down.connect
def begin_worker_shutdown(**_: object) -> None:
    """Return every run to the queue at its next commit."""
    from runs.worker.process import drain_worker  # noqa: PLC0415  (needs Django set up)

    drain_worker()


@worker_shutdown.connect
def write_last_heartbeat(**_: object) -> None:
    from runs.worker.process import unregister_worker  # noqa: PLC0415  (needs Django set up)

    unregister_worker()
