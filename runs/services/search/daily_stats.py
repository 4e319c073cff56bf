"""Count ended runs by day, agent, user, outcome and duration, for the charts.

The counters change in the transaction that indexes, deletes or prunes the runs, so a
crash never counts a run twice or not at all.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, date
from decimal import Decimal
from typing import NamedTuple

from django.db.models import F

from runs.models import DailyRunDurations, DailyRunStats, RunSearchRow
from runs.services.search.duration_buckets import get_duration_bucket
from runs.services.search.slot_stats import update_slot_stats


class DailyStatsKey(NamedTuple):
    """The row in which a run is counted."""

    day: date
    agent_id: int
    owner_id: int
    status: str


class DailyDurationsKey(NamedTuple):
    """The row in which its duration is counted."""

    day: date
    agent_id: int
    owner_id: int
    bucket: int


class DailyStatsDelta(NamedTuple):
    """What is added to a row."""

    runs: int = 0
    tokens: int = 0
    cost: Decimal = Decimal(0)

    def add_row(self, card: RunSearchRow, sign: int) -> "DailyStatsDelta":
        """Return the sums with a row added, or subtracted if `sign` is -1."""
        return DailyStatsDelta(
            self.runs + sign,
            self.tokens + sign * card.tokens,
            self.cost + sign * Decimal(card.cost),
        )


def update_daily_stats(
    added: Iterable[RunSearchRow], *, removed: Iterable[RunSearchRow] = ()
) -> None:
    """Add rows and subtract others, in a transaction, so that none counts twice.

    Each row comes with its `run`. Counters are updated in one order to prevent
    deadlocks.
    """
    added, removed = list(added), list(removed)
    changes: dict[DailyStatsKey, DailyStatsDelta] = defaultdict(DailyStatsDelta)
    durations = Counter[DailyDurationsKey]()
    for sign, cards in ((1, added), (-1, removed)):
        for card in cards:
            place = get_daily_stats_key(card)
            changes[place] = changes[place].add_row(card, sign)
            durations[get_daily_durations_key(card)] += sign
    rows = [DailyRunStats(**place._asdict()) for place in sorted(changes)]
    DailyRunStats.objects.bulk_create(rows, ignore_conflicts=True)
    for place in sorted(changes):
        sums = changes[place]
        DailyRunStats.objects.filter(**place._asdict()).update(
            runs=F("runs") + sums.runs,
            tokens=F("tokens") + sums.tokens,
            cost=F("cost") + sums.cost,
        )
    add_daily_durations(durations)
    update_slot_stats(added, removed)


def add_daily_durations(durations: Counter[DailyDurationsKey]) -> None:
    places = sorted(place for place, runs in durations.items() if runs)
    rows = [DailyRunDurations(**place._asdict()) for place in places]
    DailyRunDurations.objects.bulk_create(rows, ignore_conflicts=True)
    for place in places:
        DailyRunDurations.objects.filter(**place._asdict()).update(
            runs=F("runs") + durations[place]
        )


def mark_pruned(cards: Iterable[RunSearchRow]) -> None:
    """Note in the counters that these runs, which they still count, are gone."""
    counts = Counter(get_daily_stats_key(card) for card in cards)
    for place in sorted(counts):
        DailyRunStats.objects.filter(**place._asdict()).update(
            pruned=F("pruned") + counts[place]
        )


def get_daily_stats_key(card: RunSearchRow) -> DailyStatsKey:
    day = card.ended_at.astimezone(UTC).date()
    return DailyStatsKey(day, card.run.agent_id, card.run.owner_id, card.status)


def get_daily_durations_key(card: RunSearchRow) -> DailyDurationsKey:
    day = card.ended_at.astimezone(UTC).date()
    bucket = get_duration_bucket(card.seconds)
    return DailyDurationsKey(day, card.run.agent_id, card.run.owner_id, bucket)
