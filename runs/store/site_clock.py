"""The database's clock without a query: this machine's, corrected by what it is wrong.

Only times that are shown come from it; leases and other conditions ask the database.
"""

from datetime import UTC, datetime, timedelta

from runs.store.database_clock import read_database_time

MAX_IGNORED = timedelta(seconds=1)
"""Less may be the time of the query."""


class SiteClock:
    """The clock of a process, right once it was compared with the database's."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)
        """How much this machine's clock is ahead, negative if it is behind."""

    def compare(self) -> timedelta:
        """Ask the database for the time; return how far this machine is ahead."""
        before = read_machine_time()
        right = read_database_time()
        ahead = before + (read_machine_time() - before) / 2 - right
        self.ahead = ahead if abs(ahead) > MAX_IGNORED else timedelta(0)
        return ahead

    def now(self) -> datetime:
        """Return the current moment."""
        return read_machine_time() - self.ahead


def read_machine_time() -> datetime:
    """Return what the clock of this machine says."""
    return datetime.now(UTC)


site_clock = SiteClock()
