"""How long runs of a lost worker waited until another one had them."""

import threading
import time
from contextlib import suppress

from django.db import Error as DatabaseError
from django.db import close_old_connections, connection

from runs.models import Run
from tests.soak.chaos import Loss


class Recovery(threading.Thread):
    """Watches the runs of each lost worker until they are claimed again or parked."""

    def __init__(self) -> None:
        super().__init__(name="recovery", daemon=True)
        self._new: list[Loss] = []
        self._waiting: dict[tuple[int, int], float] = {}
        self.seconds: list[float] = []
        self.is_done = threading.Event()

    def note(self, loss: Loss) -> None:
        """Remember the runs that the lost worker had at this moment."""
        with suppress(DatabaseError):
            rows = Run.objects.filter(
                status="running", worker__pid=loss.pid, worker__stopped_at=None
            )
            for key in rows.values_list("pk", "fence"):
                self._waiting[key] = loss.at
        connection.close()

    def run(self) -> None:
        """Look five times a second who has them."""
        while not self.is_done.wait(0.2):
            with suppress(DatabaseError):
                close_old_connections()
                self._look()
        connection.close()

    def _look(self) -> None:
        waiting = dict(self._waiting)
        fences = Run.objects.filter(pk__in=[pk for pk, _ in waiting])
        now = {
            pk: (fence, s)
            for pk, fence, s in fences.values_list("pk", "fence", "status")
        }
        for (pk, fence), at in waiting.items():
            claim, status = now[pk]
            if claim != fence or status != "running":
                self.seconds.append(time.monotonic() - at)
                del self._waiting[pk, fence]

    def p99(self) -> float:
        """Return the 99th percentile in seconds; 0 where nothing was lost."""
        found = sorted(self.seconds)
        return found[min(len(found) - 1, int(len(found) * 0.99))] if found else 0.0
