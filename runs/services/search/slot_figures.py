"""Figures of the runs that started in a period, from their slots."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import chain
from typing import Any, Literal, NamedTuple

from django.contrib.auth.models import User
from django.db.models import F, Q, QuerySet, Sum
from django.db.models.functions import Trunc

from runs.models import Run, RunDurationSlot, RunStatsDay, RunStatsSlot, RunSumsSlot
from runs.models.run_slots import EVERYONE

OUTCOMES = ("succeeded", "limit_reached", "failed", "canceled")
ALL_OUTCOMES = F("succeeded") + F("limit_reached") + F("failed") + F("canceled")
ChartUnit = Literal["hour", "day"]
UsageColumn = Literal["agent_number", "owner_number", "model"]
"""What usage is split by."""


class RunSums(NamedTuple):
    """Runs by outcome, and what they used."""

    succeeded: int = 0
    limit_reached: int = 0
    failed: int = 0
    canceled: int = 0
    tokens: int = 0
    """With those of runs that other runs started, as the cost."""
    cost: Decimal = Decimal(0)
    pending: int = 0
    """Runs without an outcome yet."""
    tests: int = 0
    """Ended test runs and runs of experiments, counted above or not."""
    test_cost: Decimal = Decimal(0)
    """Their part of the cost."""

    @property
    def total(self) -> int:
        """How many runs the list of runs shows."""
        return self.ended + self.canceled + self.pending

    @property
    def ended(self) -> int:
        """Runs that nobody canceled."""
        return self.succeeded + self.limit_reached + self.failed

    @property
    def success_rate(self) -> float | None:
        """From 0 to 1; None without ended runs."""
        return self.succeeded / self.ended if self.ended else None


class SlotRange(NamedTuple):
    """Whose runs, and when they started."""

    owner_number: int
    begin: datetime
    end: datetime | None = None
    """Exclusive; both are the beginning of a slot."""
    counts_tests: bool = True
    """Whether test runs count as runs; what they used always counts."""

    def select(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        return self.select_times(rows.filter(owner_number=self.owner_number))

    def select_durations(self) -> QuerySet[RunDurationSlot]:
        rows = self.select(RunDurationSlot.objects.order_by())
        return rows if self.counts_tests else rows.filter(is_test=False)

    @property
    def is_counted(self) -> Q:
        return Q() if self.counts_tests else Q(is_test=False)

    def select_times(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        rows = rows.filter(slot__gte=self.begin)
        return rows if self.end is None else rows.filter(slot__lt=self.end)


def get_slots_owner(user: User, *, mine: bool = False) -> int:
    """Return whose slots a user sees: administrators see everyone's, unless `mine`."""
    return EVERYONE if user.is_superuser and not mine else user.pk


def sum_runs(asked: SlotRange) -> RunSums:
    sums = asked.select(RunSumsSlot.objects.all()).aggregate(**build_run_sums(asked))
    return _read_sums(sums)


def sum_runs_by_time(asked: SlotRange, unit: ChartUnit) -> dict[datetime, RunSums]:
    """Return the sums of ended runs by hour or day of the active time zone."""
    rows = asked.select(RunSumsSlot.objects.all()).annotate(at=Trunc("slot", unit))
    sums = rows.order_by().values("at").annotate(**build_run_sums(asked))
    return {row.pop("at").astimezone(UTC): _read_sums(row) for row in sums}


def _read_sums(row: dict[str, Any]) -> RunSums:
    sums: dict[str, Any] = {
        name.removeprefix("all_"): value or 0 for name, value in row.items()
    }
    return RunSums(**sums)


def add_run_sums(many: Iterable[RunSums]) -> RunSums:
    columns: list[Any] = [sum(column) for column in zip(*many, strict=True)]
    return RunSums(*columns)


def build_run_sums(asked: SlotRange) -> dict[str, Sum]:
    asked_for = Q(is_child=False) & asked.is_counted
    is_test = Q(is_test=True)
    return {
        **{f"all_{one}": Sum(one, filter=asked_for) for one in OUTCOMES},
        "all_tokens": Sum("tokens"),
        "all_cost": Sum("cost"),
        "tests": Sum(ALL_OUTCOMES, filter=Q(is_child=False) & is_test),
        "test_cost": Sum("cost", filter=is_test),
    }


def count_durations_by_time(
    asked: SlotRange, unit: ChartUnit
) -> dict[datetime, Counter[int]]:
    """Return how many runs are in which bucket of durations, by hour or day."""
    rows = asked.select_durations().annotate(at=Trunc("slot", unit))
    counts = rows.values_list("at", "bucket").annotate(Sum("runs"))
    found: dict[datetime, Counter[int]] = defaultdict(Counter)
    for at, bucket, runs in counts:
        if runs > 0:
            found[at.astimezone(UTC)][bucket] = runs
    return found


def count_durations(asked: SlotRange) -> Counter[int]:
    rows = asked.select_durations().values_list("bucket")
    counted = rows.annotate(Sum("runs"))
    return Counter({bucket: runs for bucket, runs in counted if runs > 0})


class AgentModelSums(NamedTuple):
    """What an agent did with a model."""

    agent_number: int
    model: str = ""
    runs: int = 0
    succeeded: int = 0
    ended: int = 0
    """Without canceled runs."""
    tokens: int = 0
    cost: Decimal = Decimal(0)

    def plus(self, other: "AgentModelSums") -> "AgentModelSums":
        """Return the sums of both, which have the same agent."""
        return self._replace(
            runs=self.runs + other.runs,
            succeeded=self.succeeded + other.succeeded,
            ended=self.ended + other.ended,
            tokens=self.tokens + other.tokens,
            cost=self.cost + other.cost,
        )


def sum_agents_and_models(asked: SlotRange) -> list[AgentModelSums]:
    """Return the sums of each agent with each model, with runs that runs started."""
    found: dict[tuple[int, str], AgentModelSums] = {}
    for rows in split_by_day(asked):
        for one in _sum_agents_and_models(rows, asked):
            key = (one.agent_number, one.model)
            found[key] = found[key].plus(one) if key in found else one
    return list(found.values())


def split_by_day(asked: SlotRange) -> list[QuerySet[Any]]:
    """Return the days that are in the range, and the slots before and after them."""
    owner, slots = Q(owner_number=asked.owner_number), RunStatsSlot.objects.order_by()
    first = _next_midnight(asked.begin)
    days = RunStatsDay.objects.order_by().filter(owner, day__gte=first.date())
    if asked.end is None:
        return [slots.filter(owner, slot__gte=asked.begin, slot__lt=first), days]
    last = asked.end.astimezone(UTC).replace(hour=0, minute=0)
    if last <= first:
        return [asked.select(slots)]
    return [
        slots.filter(owner, slot__gte=asked.begin, slot__lt=first),
        days.filter(day__lt=last.date()),
        slots.filter(owner, slot__gte=last, slot__lt=asked.end),
    ]


def _next_midnight(at: datetime) -> datetime:
    """Return the beginning of the day in UTC, or of the next one."""
    midnight = at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight if midnight == at else midnight + timedelta(days=1)


def _sum_agents_and_models(
    rows: QuerySet[Any], asked: SlotRange
) -> Iterator[AgentModelSums]:
    counts = {
        f"all_{one}": Sum(one, filter=asked.is_counted, default=0) for one in OUTCOMES
    }
    keyed = rows.values_list("agent_number", "model")
    for row in keyed.annotate(**counts, all_tokens=Sum("tokens"), all_cost=Sum("cost")):
        agent, model, succeeded, limited, failed, canceled, tokens, cost = row
        ended = succeeded + limited + failed
        yield AgentModelSums(
            agent, model, ended + canceled, succeeded, ended, tokens, cost
        )


class UsageSums(NamedTuple):
    """What the runs of an agent, a person or a model used."""

    runs: int = 0
    """Without runs that other runs started."""
    tokens: int = 0
    cost: Decimal = Decimal(0)

    def __add__(self, other: object) -> "UsageSums":
        if not isinstance(other, UsageSums):
            return NotImplemented
        return UsageSums(
            self.runs + other.runs, self.tokens + other.tokens, self.cost + other.cost
        )


def sum_usage(asked: SlotRange, column: UsageColumn) -> dict[int | str, UsageSums]:
    rows = _select_usage(asked, column).values_list(column)
    return {
        key: UsageSums(runs, tokens, cost)
        for key, runs, tokens, cost in rows.annotate(**USAGE_SUMS)
    }


def sum_usage_by_time(
    asked: SlotRange, column: UsageColumn, unit: ChartUnit
) -> dict[tuple[datetime, int | str], UsageSums]:
    """Return the sums of each agent, person or model by hour or day."""
    rows = _select_usage(asked, column).annotate(at=Trunc("slot", unit))
    sums = rows.values_list("at", column).annotate(**USAGE_SUMS)
    return {
        (at.astimezone(UTC), key): UsageSums(runs, tokens, cost)
        for at, key, runs, tokens, cost in sums
    }


def _select_usage(
    asked: SlotRange, column: UsageColumn
) -> QuerySet[RunStatsSlot, RunStatsSlot]:
    """Return the slots; to split everyone's by person, those of each person."""
    rows = RunStatsSlot.objects.order_by()
    if column != "owner_number" or asked.owner_number != EVERYONE:
        return asked.select(rows)
    # by the keys of people, so that the index on owner and slot finds the rows
    rows = rows.filter(owner_number__in=User.objects.values("pk"))
    return asked.select_times(rows)


USAGE_SUMS = {
    "runs": Sum(
        ALL_OUTCOMES,
        filter=Q(is_child=False),
        default=0,
    ),
    "all_tokens": Sum("tokens"),
    "all_cost": Sum("cost"),
}


class PendingRun(NamedTuple):
    """A run that no slot counts yet."""

    started_at: datetime
    agent_number: int
    is_child: bool
    """Whether another run started it."""


def list_pending_runs(
    runs: QuerySet[Run], begin: datetime, end: datetime | None
) -> list[PendingRun]:
    """Return the runs that started from `begin` on, and before `end`.

    A resumed run is not among them: it is still counted with its last outcome.
    """
    rows = runs.filter(indexed=False, search_row=None, created_at__gte=begin)
    if end is not None:
        rows = rows.filter(created_at__lt=end)
    found = rows.order_by().values_list("created_at", "agent_id", "parent_step_id")
    return [PendingRun(at, agent, parent is not None) for at, agent, parent in found]


def sum_by_agent(
    sums: Iterable[AgentModelSums], pending: Iterable[PendingRun]
) -> dict[int, AgentModelSums]:
    """Return the sums of each agent, whose runs are those of its list of runs."""
    started = (AgentModelSums(run.agent_number, runs=1) for run in pending)
    found: dict[int, AgentModelSums] = {}
    for one in chain(sums, started):
        before = found.get(one.agent_number)
        found[one.agent_number] = one if before is None else before.plus(one)
    return found
