"""Figures of a scoring rule: by day, and by version of the agent."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from typing import Any, NamedTuple

from django.db.models import Avg, Count, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce, TruncDate
from django.utils import timezone

from runs.evaluation.statistics import Interval, wilson_interval
from runs.models import ScoredRun, ScoringRule

SHOWN_DAYS = 30

PASSED = Count("pk", filter=Q(passed=True))
DECIDED = Count("pk", filter=Q(passed__isnull=False))


class DayScores(NamedTuple):
    """The scores of a day (in the viewer's zone)."""

    day: date
    runs: int
    passed: int
    decided: int
    mean: float | None

    @property
    def failed(self) -> int:
        return self.decided - self.passed


class VersionScores(NamedTuple):
    """The scores of a version of the agent; without a number, of its draft."""

    number: int | None
    runs: int
    passed: int
    decided: int
    mean: float | None
    interval: Interval

    @property
    def low(self) -> int:
        return round(100 * self.interval.low)

    @property
    def high(self) -> int:
        return round(100 * self.interval.high)


class RuleTotals(NamedTuple):
    """What a rule has done in the shown days."""

    runs: int
    passed: int
    decided: int
    cost: float
    waiting: int
    skipped: int
    unscored: int

    @property
    def failed(self) -> int:
        return self.decided - self.passed


def read_first_shown_day() -> date:
    """Return the first of the shown days (in the viewer's zone)."""
    return timezone.localdate() - timedelta(days=SHOWN_DAYS - 1)


def filter_shown_days(rows: QuerySet[ScoredRun]) -> QuerySet[ScoredRun]:
    """Return those of the shown days, by a moment that the index by day can find."""
    midnight = datetime.combine(read_first_shown_day(), time.min)
    return rows.filter(scored_at__gte=timezone.make_aware(midnight))


def count_scored_runs(**which: bool) -> Coalesce:
    """Return the number of scored runs of the outer rule in the shown days."""
    done = ScoredRun.objects.filter(
        rule=OuterRef("pk"), state=ScoredRun.State.DONE, **which
    )
    rows = filter_shown_days(done).order_by().values("rule")
    return Coalesce(Subquery(rows.annotate(runs=Count("pk")).values("runs")), 0)


def load_scores_by_day(scored: QuerySet[ScoredRun]) -> list[DayScores]:
    """Return the last 30 days, those without scores too."""
    first = read_first_shown_day()
    rows = (
        filter_shown_days(scored.filter(state=ScoredRun.State.DONE))
        .order_by()
        .annotate(day=TruncDate("scored_at"))
        .values("day")
        .annotate(runs=Count("pk"), ok=PASSED, decided=DECIDED, mean=Avg("value"))
    )
    found = {row["day"]: row for row in rows}
    days = [first + timedelta(days=place) for place in range(SHOWN_DAYS)]
    return [
        DayScores(day, row["runs"], row["ok"], row["decided"], row["mean"])
        if (row := found.get(day))
        else DayScores(day, 0, 0, 0, None)
        for day in days
    ]


def load_scores_by_version(rule: ScoringRule) -> list[VersionScores]:
    """Return the versions with scores in the shown days, the newest first."""
    rows = (
        filter_shown_days(rule.scored.filter(state=ScoredRun.State.DONE))
        .order_by()
        .values("run__version__number")
        .annotate(runs=Count("pk"), ok=PASSED, decided=DECIDED, mean=Avg("value"))
        .order_by("-run__version__number")
    )
    return [build_version_scores(row) for row in rows]


def build_version_scores(row: dict[str, Any]) -> VersionScores:
    return VersionScores(
        row["run__version__number"],
        row["runs"],
        row["ok"],
        row["decided"],
        row["mean"],
        wilson_interval(row["ok"], row["decided"]),
    )


class RuleScores(NamedTuple):
    """The newest scored versions of a rule's agent, the newest first; two at most."""

    rule: ScoringRule
    versions: list[VersionScores]

    @property
    def change(self) -> float | None:
        """Of the pass rate since the version before; null without one."""
        rates = [one.passed / one.decided for one in self.versions if one.decided]
        return rates[0] - rates[1] if len(rates) == 2 else None


def load_scores_by_rule(rules: QuerySet[ScoringRule], *, most: int) -> list[RuleScores]:
    """Return rules with scores of published versions, those that fell first."""
    done = ScoredRun.objects.filter(
        rule__in=rules, state=ScoredRun.State.DONE, run__version__isnull=False
    )
    rows = (
        filter_shown_days(done)
        .order_by()
        .values("rule", "run__version__number")
        .annotate(runs=Count("pk"), ok=PASSED, decided=DECIDED, mean=Avg("value"))
        .order_by("-run__version__number")
    )
    found: dict[int, list[VersionScores]] = defaultdict(list)
    for row in rows:
        if len(found[row["rule"]]) < 2:
            found[row["rule"]].append(build_version_scores(row))
    named = ScoringRule.objects.select_related("agent").in_bulk(list(found))
    scores = [
        RuleScores(named[pk], versions) for pk, versions in found.items() if pk in named
    ]
    return sorted(scores, key=lambda one: (one.change or 0.0, one.rule.name))[:most]


class AgentScores(NamedTuple):
    """What the scoring rules of an agent say of its runs in a period."""

    passed: int
    decided: int


def load_scores_by_agent(
    rules: QuerySet[ScoringRule],
    agents: Iterable[int],
    begin: datetime,
    end: datetime | None,
) -> dict[int, AgentScores]:
    """Return the scores of agents that have any from `begin` until before `end`."""
    rows = ScoredRun.objects.filter(
        rule__in=rules.filter(agent__in=agents),
        state=ScoredRun.State.DONE,
        scored_at__gte=begin,
    )
    if end is not None:
        rows = rows.filter(scored_at__lt=end)
    counted = rows.order_by().values_list("rule__agent")
    return {
        agent: AgentScores(ok, decided)
        for agent, ok, decided in counted.annotate(ok=PASSED, decided=DECIDED)
        if decided
    }


def load_rule_totals(rule: ScoringRule) -> RuleTotals:
    done = Q(state=ScoredRun.State.DONE)
    found = filter_shown_days(rule.scored.all()).aggregate(
        runs=Count("pk", filter=done),
        ok=Count("pk", filter=done & Q(passed=True)),
        decided=Count("pk", filter=done & Q(passed__isnull=False)),
        cost=Sum("cost", filter=done),
        skipped=Count("pk", filter=Q(state=ScoredRun.State.SKIPPED)),
        unscored=Count("pk", filter=Q(state=ScoredRun.State.UNSCORED)),
    )
    return RuleTotals(
        found["runs"],
        found["ok"],
        found["decided"],
        float(found["cost"] or 0),
        rule.scored.filter(state=ScoredRun.State.WAITING).count(),
        found["skipped"],
        found["unscored"],
    )
