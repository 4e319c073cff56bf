"""What is broken, in an order that only depends on the seed."""

import random
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from tests.soak.machines import LEASE_SECONDS, WORKERS, Machines

MODEL_AWAY_SECONDS = 8.0


class Loss(NamedTuple):
    """A worker that was killed or frozen, and when, by the monotonic clock."""

    worker: str
    pid: int
    at: float


class Chaos(threading.Thread):
    """Breaks one thing after another until all faults of the plan were made."""

    def __init__(
        self,
        machines: Machines,
        *,
        seed: int,
        faults: int,
        on_loss: Callable[[Loss], None],
    ) -> None:
        super().__init__(name="chaos", daemon=True)
        self._machines, self._on_loss = machines, on_loss
        dice = random.Random(f"chaos:{seed}")
        names, weights = zip(*PLAN.items(), strict=True)
        self.plan = dice.choices(names, weights, k=faults)
        self._pauses = [dice.uniform(0.5, 2.0) for _ in range(faults)]
        self._workers = [dice.choice(WORKERS) for _ in range(faults)]
        self.made = 0
        self.error: BaseException | None = None

    def run(self) -> None:
        """Make every fault; an error here is kept for the report."""
        try:
            for name, pause, worker in zip(
                self.plan, self._pauses, self._workers, strict=True
            ):
                time.sleep(pause)
                getattr(self, name)(worker)
                self.made += 1
        except BaseException as error:
            self.error = error
            raise

    def kill_worker(self, worker: str) -> None:
        """`kill -9`, and a new one a moment later."""
        self._lost(worker)
        self._machines.kill(worker)
        self._machines.start(worker)

    def freeze_worker(self, worker: str) -> None:
        """Let it miss its lease and come back as a zombie."""
        self._lost(worker)
        self._machines.pause(worker, LEASE_SECONDS * 1.7)

    def end_worker(self, worker: str) -> None:
        """A deployment."""
        self._machines.end_gently(worker)
        self._machines.start(worker)

    def kill_web(self, worker: str) -> None:
        """Also in the middle of a request."""
        self._machines.kill("web")
        self._machines.start("web")

    def wipe_redis(self, worker: str) -> None:
        """Lose every doorbell, notice and draft."""
        self._machines.wipe()

    def kill_redis(self, worker: str) -> None:
        """The broker is away for a while."""
        self._machines.kill("redis")
        time.sleep(2)
        self._machines.start("redis")

    def hang_redis(self, worker: str) -> None:
        """The broker takes connections and answers nothing."""
        self._machines.pause("redis", 4)

    def crash_database(self, worker: str) -> None:
        """PostgreSQL ends without a shutdown and recovers from its log.

        On SQLite, all that have the file open end at the same moment.
        """
        if self._machines.database is None:
            for each in WORKERS:
                self._lost(each)
        self._machines.kill("database")
        time.sleep(2)
        self._machines.start("database")

    def refuse_model(self, worker: str) -> None:
        """Nobody listens at the address of the provider."""
        self._machines.kill("model")
        time.sleep(MODEL_AWAY_SECONDS)
        self._machines.start("model")

    def hang_model(self, worker: str) -> None:
        """The provider takes requests, and does not answer them."""
        self._machines.planner.is_hanging.set()
        time.sleep(MODEL_AWAY_SECONDS)
        self._machines.planner.is_hanging.clear()

    def _lost(self, worker: str) -> None:
        pid = self._machines.processes[worker].pid
        self._on_loss(Loss(worker, pid, time.monotonic()))


PLAN = {
    "refuse_model": 5,
    "hang_model": 5,
    "kill_worker": 32,
    "freeze_worker": 12,
    "end_worker": 10,
    "kill_web": 8,
    "wipe_redis": 8,
    "kill_redis": 8,
    "hang_redis": 6,
    "crash_database": 6,
}
"""How often each fault is chosen, in percent."""
