"""The common time scale of a run's rows: seconds of work, long waits cut out."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

BASE_SECONDS = 16.0
"""Seconds that fill the whole width if bars are not squeezed."""
LONGEST_WAIT = 30.0
"""Seconds in which nothing ran; more is cut."""
SHOWN_WAIT = 2.0
"""Seconds a cut wait takes on the scale."""
HOUR, DAY = 3600.0, 86400.0
TICK_INTERVALS = (
    *(0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0),
    *(60.0, 120.0, 300.0, 600.0, 900.0, 1800.0),
    *(HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 3 * DAY, 10 * DAY, 30 * DAY),
)
"""Seconds between two lines of the axis, by scale; `run.js` and `run.css` know them."""


@dataclass
class Timeline:
    """Where a moment stands; fed with what ran, in the order of its beginning."""

    began: datetime | None
    last: datetime | None = None
    """When the latest piece of work ended, as far as known."""
    cuts: list[tuple[datetime, float]] = field(default_factory=list)
    """(end of the wait, seconds cut)."""
    busy: dict[str, float] = field(default_factory=dict)
    """Seconds in which something ran, by `model`, `tool` and `run`, which is another
    agent; each instant once."""

    def add(
        self, start: datetime | None, seconds: float | None, kind: str = "tool"
    ) -> None:
        """Take in a piece of work; without `seconds` it is still running."""
        if start is None:
            return
        if self.began is None:
            self.began = start
        last = self.last or self.began
        waited = (start - last).total_seconds()
        if waited > LONGEST_WAIT:
            self.cuts.append((start, waited - SHOWN_WAIT))
        end = start if seconds is None else start + timedelta(seconds=seconds)
        alone = (end - max(start, last)).total_seconds()
        self.busy[kind] = self.busy.get(kind, 0.0) + max(alone, 0.0)
        self.last = max(last, end, start)

    def resume_work(self, queued_at: datetime) -> None:
        """Take in that a run which waited or was resumed is worked on again."""
        if self.last is not None:
            self.add(queued_at, 0.0, "model")

    def at(self, moment: datetime) -> float:
        """Return the seconds on the scale at which `moment` stands."""
        if self.began is None:
            return 0.0
        cut = sum(seconds for end, seconds in self.cuts if end <= moment)
        return max((moment - self.began).total_seconds() - cut, 0.0)

    @property
    def waited(self) -> float:
        """How long nothing ran, in seconds, from the beginning to the last work."""
        if self.began is None or self.last is None:
            return 0.0
        whole = (self.last - self.began).total_seconds()
        return max(whole - sum(self.busy.values()), 0.0)

    def end(self, now: datetime | None = None) -> float:
        """Return where the scale ends: with the last work, or `now`."""
        last = self.last or self.began
        if last is None:
            return 0.0
        return self.at(max(now, last) if now is not None else last)


@dataclass(frozen=True)
class TimeScale:
    """A width of the axis: four quarters of a length that people count in."""

    number: int

    @classmethod
    def fitting(cls, seconds: float) -> "TimeScale":
        """Return the smallest scale that shows `seconds`."""
        wide = (n for n, quarter in enumerate(TICK_INTERVALS) if quarter * 4 >= seconds)
        return cls(next(wide, len(TICK_INTERVALS) - 1))

    @property
    def name(self) -> str:
        """The word the style sheet knows it by."""
        return f"s{self.number}"

    @property
    def ticks(self) -> list[float]:
        """Seconds at the four lines of the axis."""
        return [TICK_INTERVALS[self.number] * line for line in range(4)]


def format_percent(seconds: float) -> str:
    """Return a place or width of a bar that is not squeezed."""
    return f"{seconds / BASE_SECONDS * 100:.3f}%"
