"""The retention rules as a value, the rows that they no longer keep, and changes."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import Exists, Model, OuterRef, Q, QuerySet
from pydantic import BaseModel, ConfigDict

from runs.models import (
    Agent,
    AgentRetention,
    Conversation,
    Delivery,
    IdempotencyKey,
    RetentionRule,
    Run,
    Worker,
)
from runs.models.runs import FINISHED_STATUSES
from tools.models import AuditEntry

Kind = RetentionRule.Kind

RUN_STATUSES: dict[str, list[str]] = {
    Kind.SUCCEEDED_RUNS: ["succeeded"],
    Kind.FAILED_RUNS: ["failed", "limit_reached"],
    Kind.CANCELED_RUNS: ["canceled"],
}


class RetentionRules(BaseModel):
    """Days by kind, and by agent; what is not named is kept forever."""

    model_config = ConfigDict(frozen=True)

    days: dict[str, int] = {}
    """By `RetentionRule.Kind`."""
    agents: dict[int, int | None] = {}
    """By key of the agent, for its runs and conversations; null: forever."""

    @property
    def is_empty(self) -> bool:
        return not self.days and not any(self.agents.values())


def load_rules() -> RetentionRules:
    return RetentionRules(
        days=dict(RetentionRule.objects.order_by("kind").values_list("kind", "days")),
        agents=dict(AgentRetention.objects.values_list("agent", "days")),
    )


class RunGroup(NamedTuple):
    """Runs and conversations under one rule."""

    kind: str
    """Empty for the rule of an agent."""
    runs: Q
    """Of runs outside conversations, without their age."""
    conversations: Q
    cutoff: datetime
    """Those that ended earlier are deleted."""


NOTHING = Q(pk__in=[])


def list_run_groups(rules: RetentionRules, at: datetime) -> Iterator[RunGroup]:
    """Yield the rules for runs and conversations; no row is under two of them."""
    others = ~Q(agent__in=list(rules.agents))
    for agent, days in rules.agents.items():
        if days is not None:
            own = Q(agent=agent)
            yield RunGroup("", own, own, at - timedelta(days=days))
    for kind, days in rules.days.items():
        cutoff = at - timedelta(days=days)
        if kind in RUN_STATUSES:
            wanted = others & Q(is_test=False, status__in=RUN_STATUSES[kind])
            yield RunGroup(kind, wanted, NOTHING, cutoff)
        elif kind == Kind.TEST_RUNS:
            tests = others & Q(is_test=True)
            yield RunGroup(kind, tests, tests, cutoff)
        elif kind == Kind.CONVERSATIONS:
            yield RunGroup(kind, NOTHING, others & Q(is_test=False), cutoff)


def select_prunable_runs(groups: Iterable[RunGroup]) -> QuerySet[Run]:
    """Return the runs that may go with their sub-agent runs.

    Runs of conversations go with these, sub-agent runs with their parent. Until a run
    is indexed, the daily figures lack it.
    """
    old = NOTHING
    for group in groups:
        old |= group.runs & Q(ended_at__lt=group.cutoff)
    return Run.objects.filter(
        old,
        status__in=FINISHED_STATUSES,
        parent_step=None,
        conversation=None,
        keep_forever=False,
        indexed=True,
    )


def select_prunable_conversations(group: RunGroup) -> QuerySet[Conversation]:
    """Return the roots of conversations that may go with their branches and runs.

    A branch shares turns with the conversation that it left, so that they go together:
    when the last run of all has ended long enough ago and none is kept forever.
    """
    needed = (
        Q(ended_at=None)
        | Q(ended_at__gte=group.cutoff)
        | Q(keep_forever=True)
        | Q(indexed=False)
    )
    runs = Run.objects.filter(needed)
    return Conversation.objects.filter(
        ~Exists(runs.filter(conversation=OuterRef("pk"))),
        ~Exists(runs.filter(conversation__root=OuterRef("pk"))),
        group.conversations,
        root=None,
        created_at__lt=group.cutoff,
    )


def select_prunable_rows(
    kind: str, rules: RetentionRules, at: datetime
) -> QuerySet[Model]:
    """Return the rows of one kind that may go, of kinds without rows of their own."""
    cutoff = at - timedelta(days=rules.days[kind])
    rows: QuerySet[Model]
    match kind:
        case Kind.AUDIT_ENTRIES:
            rows = AuditEntry.objects.filter(at__lt=cutoff).order_by("at")
        case Kind.SESSIONS:
            rows = Session.objects.filter(expire_date__lt=cutoff)
        case Kind.IDEMPOTENCY_KEYS:
            rows = IdempotencyKey.objects.filter(at__lt=cutoff)
        case Kind.WORKERS:
            has_runs = Exists(Run.objects.filter(worker=OuterRef("pk")))
            rows = Worker.objects.filter(~has_runs, last_heartbeat__lt=cutoff)
        case Kind.DELIVERIES:
            over = Delivery.objects.exclude(status=Delivery.Status.WAITING)
            rows = over.filter(created_at__lt=cutoff)
        case _:
            raise ValueError(kind)
    return rows


@transaction.atomic
def save_rules(days: Mapping[str, int | None]) -> bool:
    """Set the days of each kind, None for no rule; return whether anything changed."""
    known = {rule.kind: rule for rule in RetentionRule.objects.select_for_update()}
    changed = False
    for kind, count in days.items():
        rule = known.get(kind)
        if count == (rule.days if rule else None):
            continue
        changed = True
        if count is None and rule is not None:
            rule.delete()
        elif count is not None:
            rule = rule or RetentionRule(kind=kind)
            rule.days = count
            rule.save()
    return changed


@transaction.atomic
def save_agent_retention(agent: Agent, days: int | None) -> None:
    """Set how long runs of an agent are kept; None for forever."""
    row = AgentRetention.objects.select_for_update().filter(agent=agent).first()
    row = row or AgentRetention(agent=agent)
    row.days = days
    row.save()
