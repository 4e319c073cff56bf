"""How a worker takes messages: only with a free thread, and whatever they contain."""

import logging
from concurrent.futures import Future
from queue import Empty
from typing import Any

from celery.concurrency import ALIASES as POOLS
from celery.concurrency.thread import ApplyResult, TaskPool
from kombu.asynchronous import get_event_loop
from kombu.transport import TRANSPORT_ALIASES as TRANSPORTS
from kombu.transport import redis

logger = logging.getLogger(__name__)

MALFORMED = (AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What parsing a message of somebody else raises."""


class Channel(redis.Channel):
    """Discards messages that cannot be parsed, which would end the worker.

    Messages that a worker took and did not acknowledge are not kept in Redis: they
    are acknowledged before the task starts, and the sweep finds a run that got lost.
    """

    ack_emulation = False

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[no-untyped-call]  # Kombu has no types
        except MALFORMED as error:
            logger.error("discarded a malformed message in the queue: %s", error)
            raise Empty from None


class Transport(redis.Transport):
    Channel = Channel


class ThreadPool(TaskPool):  # type: ignore[misc]  # Celery has no types
    """Tells the consumer of a free thread; otherwise it looks once per second."""

    def on_apply(self, *args: Any, **options: Any) -> ApplyResult:
        result = super().on_apply(*args, **options)
        result.f.add_done_callback(_wake_consumer)
        return result


def _wake_consumer(_: "Future[Any]") -> None:
    if (loop := get_event_loop()) is not None:
        loop.call_soon(_do_nothing)  # type: ignore[no-untyped-call]  # Kombu has no types


def _do_nothing() -> None:
    """The event loop was woken, which is all that was wanted."""


def install() -> None:
    """Let Celery use these classes by the names `redis`, `rediss` and `threads`."""
    TRANSPORTS["redis"] = TRANSPORTS["rediss"] = f"{__name__}:Transport"
    POOLS["threads"] = f"{__name__}:ThreadPool"
