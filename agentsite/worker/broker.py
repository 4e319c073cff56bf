"""How a worker reads messages, whatever they contain."""

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from queue import Empty
from typing import Any

from celery.concurrency import ALIASES as POOLS
from kombu.transport import TRANSPORT_ALIASES as TRANSPORTS
from kombu.transport import redis

logger = logging.getLogger(__name__)

MALFORMED = (AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What parsing a message of somebody else raises."""


FEW_SLOTS_SECONDS = 0.1
"""How long a worker with few free slots waits for a message before it looks again."""


@dataclass
class Slots:
    """What a worker that is nearly full, or has a helper, may take."""

    has_room_for_many: Callable[[], bool] = lambda: True
    """Whether there is room for runs of users who have started many."""
    find_delegated: Callable[[], Collection[str]] = lambda: ()
    """Queues whose messages are left to another process."""


slots = Slots()


class PriorityChannel(redis.Channel):
    """Keeps the last slots for users who have started few runs.

    Reads no queue that a helper of the worker reads.

    Discards messages that cannot be parsed, which would end the worker.

    Messages that a worker took and did not acknowledge are not kept in Redis: they
    are acknowledged before the task starts, and the sweep finds a run that got lost.
    """

    ack_emulation = False

    def _brpop_start(self, timeout: float | None = None) -> None:
        """Take messages of the first priority only if hardly any slot is free."""
        cycle, delegated = self._queue_cycle, slots.find_delegated()
        every, queues = self.priority_steps, cycle.items
        try:
            if not slots.has_room_for_many():
                self.priority_steps, timeout = every[:1], FEW_SLOTS_SECONDS
            cycle.items = [queue for queue in queues if queue not in delegated]
            super()._brpop_start(timeout)  # type: ignore[no-untyped-call]  # Kombu has no types
        finally:
            self.priority_steps, cycle.items = every, queues

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[no-untyped-call]  # Kombu has no types
        except MALFORMED as error:
            logger.error("discarded a malformed message in the queue: %s", error)
            raise Empty from None


class Transport(redis.Transport):
    Channel = PriorityChannel


def install() -> None:
    """Let Celery use these classes by the names `redis`, `rediss` and `threads`."""
    TRANSPORTS["redis"] = TRANSPORTS["rediss"] = f"{__name__}:Transport"
    POOLS["threads"] = "agentsite.worker.threads:ThreadPool"
