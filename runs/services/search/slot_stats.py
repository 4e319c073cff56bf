"""Count ended runs by the quarter of an hour in which they started.

Changed in the same transaction as the daily figures.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

from django.db import connection, models

from runs.models import (
    RunDurationSlot,
    RunSearchRow,
    RunStatsDay,
    RunStatsSlot,
    RunSumsSlot,
    Spec,
)
from runs.models.run_slots import EVERYONE
from runs.services.search.duration_buckets import get_duration_bucket
from runs.store.fast_insert import quote_name

ROWS_PER_STATEMENT = 80
"""SQLite allows a thousand parameters."""


class SlotStatsKey(NamedTuple):
    """The row in which a run is counted."""

    owner_number: int
    slot: datetime
    agent_number: int
    model: str
    is_child: bool
    is_test: bool


class SlotSumsKey(NamedTuple):
    """The row in which it is counted without agent and model."""

    owner_number: int
    slot: datetime
    is_child: bool
    is_test: bool


class DayStatsKey(NamedTuple):
    """The row in which it is counted by day."""

    owner_number: int
    day: date
    agent_number: int
    model: str
    is_child: bool
    is_test: bool


class SlotDurationKey(NamedTuple):
    """The row in which its duration is counted."""

    owner_number: int
    slot: datetime
    bucket: int
    is_test: bool


class SlotStatsDelta(NamedTuple):
    """What is added to a row; the first names are statuses."""

    succeeded: int = 0
    limit_reached: int = 0
    failed: int = 0
    canceled: int = 0
    tokens: int = 0
    cost: Decimal = Decimal(0)

    def add_row(self, card: RunSearchRow, sign: int) -> "SlotStatsDelta":
        """Return the sums with a row added, or subtracted if `sign` is -1."""
        runs = {card.status: getattr(self, card.status) + sign}
        return self._replace(
            **runs,
            tokens=self.tokens + sign * card.tokens,
            cost=self.cost + sign * Decimal(card.cost),
        )

    def plus(self, other: "SlotStatsDelta") -> "SlotStatsDelta":
        """Return the sums of both."""
        both: Iterable[tuple[Any, Any]] = zip(self, other, strict=True)
        return SlotStatsDelta(*(one + more for one, more in both))


def get_run_slot(at: datetime) -> datetime:
    """Return the beginning of the quarter of an hour of a moment."""
    at = at.astimezone(UTC)
    return at.replace(minute=at.minute // 15 * 15, second=0, microsecond=0)


def update_slot_stats(
    added: Sequence[RunSearchRow], removed: Sequence[RunSearchRow]
) -> None:
    """Add rows and subtract others; each comes with its `run`."""
    models_of = load_spec_models([*added, *removed])
    sums: dict[SlotStatsKey, SlotStatsDelta] = defaultdict(SlotStatsDelta)
    durations = Counter[SlotDurationKey]()
    for sign, cards in ((1, added), (-1, removed)):
        for card in cards:
            run, slot = card.run, get_run_slot(card.run.created_at)
            is_child = run.parent_step_id is not None
            model = models_of.get(run.spec_id, "")
            bucket = get_duration_bucket(card.seconds)
            for owner in (EVERYONE, run.owner_id):
                key = SlotStatsKey(
                    owner, slot, run.agent_id, model, is_child, run.is_test
                )
                sums[key] = sums[key].add_row(card, sign)
                if not is_child:
                    timed = SlotDurationKey(owner, slot, bucket, run.is_test)
                    durations[timed] += sign
    by_slot: dict[SlotSumsKey, SlotStatsDelta] = defaultdict(SlotStatsDelta)
    by_day: dict[DayStatsKey, SlotStatsDelta] = defaultdict(SlotStatsDelta)
    for key, delta in sums.items():
        owner, slot, agent, model, is_child, is_test = key
        whole = SlotSumsKey(owner, slot, is_child, is_test)
        day = DayStatsKey(owner, slot.date(), agent, model, is_child, is_test)
        by_slot[whole] = by_slot[whole].plus(delta)
        by_day[day] = by_day[day].plus(delta)
    add_to_rows(RunStatsSlot, sums)
    add_to_rows(RunSumsSlot, by_slot)
    add_to_rows(RunStatsDay, by_day)
    add_to_rows(RunDurationSlot, {key: (runs,) for key, runs in durations.items()})


def load_spec_models(cards: Iterable[RunSearchRow]) -> dict[int, str]:
    specs = Spec.objects.filter(pk__in={card.run.spec_id for card in cards})
    found = specs.values_list("pk", "body__model__model")
    return {pk: str(model or "")[:200] for pk, model in found}


def add_to_rows(
    model: type[models.Model], amounts: Mapping[Any, tuple[Any, ...]]
) -> None:
    """Add to counters, in one order, so that two workers do not deadlock.

    The keys are tuples of the columns that are unique together.
    """
    keys = sorted(key for key, values in amounts.items() if any(values))
    for start in range(0, len(keys), ROWS_PER_STATEMENT):
        _upsert(model, {key: amounts[key] for key in keys[start:][:ROWS_PER_STATEMENT]})


def _upsert(model: type[models.Model], amounts: Mapping[Any, tuple[Any, ...]]) -> None:
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    columns = [quote_name(field.column) for field in fields]
    width = len(next(iter(amounts)))
    table = quote_name(model._meta.db_table)
    row = f"({', '.join(['%s'] * len(columns))})"
    sums = ", ".join(
        f"{name} = {table}.{name} + excluded.{name}" for name in columns[width:]
    )
    sql = (
        f"INSERT INTO {table} ({', '.join(columns)}) "  # noqa: S608  (our own names)
        f"VALUES {', '.join([row] * len(amounts))} "
        f"ON CONFLICT ({', '.join(columns[:width])}) DO UPDATE SET {sums}"
    )
    values = [
        field.get_db_prep_save(value, connection)
        for key, added in amounts.items()
        for field, value in zip(fields, (*key, *added), strict=True)
    ]
    with connection.cursor() as cursor:
        cursor.execute(sql, values)


def forget_slots_of(owner: int) -> None:
    """Delete the counters of a person who is erased; those of everyone stay."""
    for model in (RunStatsSlot, RunSumsSlot, RunStatsDay, RunDurationSlot):
        model.objects.filter(owner_number=owner).delete()
