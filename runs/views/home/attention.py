"""What needs the viewer's attention; equal items are one row with a count."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Count, F, QuerySet, Window
from django.db.models.functions import RowNumber
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.models import Decision, Provider, ProviderOutage, Schedule, Webhook
from runs.ui.error_labels import describe_error
from runs.ui.format import number
from runs.views.approvals.details import (
    DECISION_ORDER,
    DecisionRow,
    query_open_decisions,
)
from tools.text.translatable import translate_text

MAX_ITEMS = 8
"""Of each kind."""
WEBHOOK_PATIENCE = timedelta(minutes=10)
"""A single failure, after which a delivery is sent again, needs nobody."""


class AttentionItem(NamedTuple):
    """One row of the card."""

    key: str
    """Unique on the page."""
    status: str
    """Of a run, whose shape is drawn; empty for the row that counts the others."""
    title: str
    tool: str = ""
    """In fixed-width letters after the title."""
    number: int = 1
    text: str = ""
    at: datetime | None = None
    expires_at: datetime | None = None
    url: str = ""
    button: str = ""

    @property
    def subject(self) -> str:
        """What the button is about, for screen readers."""
        return f"{self.title} {self.tool}" if self.status else self.text


class AttentionGroup(NamedTuple):
    """The rows of one kind, and how many items of that kind there are."""

    rows: list[AttentionItem]
    total: int
    label: str
    url: str
    """Of the list that has them all."""

    @property
    def items(self) -> list[AttentionItem]:
        """Return the rows; if they are not all, the last one counts the others."""
        left = self.total - sum(row.number for row in self.rows)
        return [*self.rows, _describe_others(self, left)] if left else self.rows


class Attention(NamedTuple):
    """The card; without items it is not shown."""

    items: list[AttentionItem]
    total: int
    state: str
    """Changes with the items."""


def list_attention(user: User, *, mine: bool = False) -> Attention:
    """Return open decisions, then what fails: schedules, providers, webhooks."""
    groups = (
        _list_decisions(user, mine=mine),
        _list_schedules(user, mine=mine),
        _list_outages(user, mine=mine),
        _list_webhooks(user, mine=mine),
    )
    items = [item for group in groups for item in group.items]
    parts = [f"{item.key}.{item.number}.{item.at}" for item in items]
    return Attention(items, sum(group.total for group in groups), "-".join(parts))


def _describe_others(group: AttentionGroup, count: int) -> AttentionItem:
    title = ngettext("%(count)s more", "%(count)s more", count)
    return AttentionItem(
        f"more{group.url.replace('/', '-')}list",
        "",
        title % {"count": number(count)},
        number=count,
        text=group.label,
        url=group.url,
        button=_("Show all"),
    )


def _count_all(rows: QuerySet[Any], listed: Sequence[Any]) -> int:
    """Count `rows`, of which at most `MAX_ITEMS` are listed."""
    return len(listed) if len(listed) < MAX_ITEMS else rows.count()


class _DecisionKind(NamedTuple):
    """Open decisions with the same question about the same tool."""

    first: int
    """Key of the most urgent one."""
    number: int


def _list_decisions(user: User, *, mine: bool) -> AttentionGroup:
    only = {"step__run__owner": user} if mine else {}
    rows = query_open_decisions(user, **only)
    kinds = _group_decisions(rows)
    numbers = dict(kinds[:MAX_ITEMS])
    found = rows.filter(pk__in=numbers) if numbers else ()
    return AttentionGroup(
        [_describe_decision(one, numbers[one.pk]) for one in found],
        sum(kind.number for kind in kinds),
        _("Approvals"),
        reverse("approval-list"),
    )


def _group_decisions(rows: QuerySet[Decision]) -> list[_DecisionKind]:
    """Return the kinds of decisions, the most urgent first."""
    alike = [F("question"), F("step__tool")]
    place = Window(RowNumber(), partition_by=alike, order_by=DECISION_ORDER)
    number = Window(Count("pk"), partition_by=alike)
    counted = rows.select_related(None).annotate(place=place, number=number)
    firsts = counted.filter(place=1).values_list("pk", "number")
    return [_DecisionKind(*kind) for kind in firsts]


def _describe_decision(decision: Decision, count: int) -> AttentionItem:
    is_outcome = decision.question == Decision.Question.OUTCOME
    row, agent = DecisionRow(decision), decision.step.run.agent
    parts = (agent.name, row.words, row.tool_summary)
    detail = " · ".join(part for part in parts if part)
    return AttentionItem(
        f"decision-{decision.pk}",
        "awaiting_decision" if is_outcome else "awaiting_approval",
        _("Unknown outcome:") if is_outcome else _("Approval required:"),
        decision.step.tool,
        count,
        detail,
        decision.asked_at,
        decision.expires_at,
        reverse("approval-detail", args=[decision.pk])
        if count == 1
        else f"{reverse('approval-list')}?{urlencode({'q': decision.step.tool})}",
        _("Decide") if is_outcome else _("Review"),
    )


def _list_schedules(user: User, *, mine: bool) -> AttentionGroup:
    """Return schedules that could not start a run, or whose last run failed."""
    rows = Schedule.objects.visible_to(user).select_related("agent").defer("inputs")
    rows = rows.filter(owner=user) if mine else rows
    refused = rows.exclude(problem="").order_by("-problem_at")
    failed = rows.on().filter(problem="", last_run__status="failed")
    failed = failed.select_related("agent", "last_run").order_by("-last_run")
    first, second = list(refused[:MAX_ITEMS]), list(failed[:MAX_ITEMS])
    return AttentionGroup(
        [
            *(_describe_refused_run(one) for one in first),
            *(_describe_failed_run(one) for one in second),
        ],
        _count_all(refused, first) + _count_all(failed, second),
        _("Schedules"),
        reverse("schedule-list"),
    )


def _describe_refused_run(schedule: Schedule) -> AttentionItem:
    return AttentionItem(
        f"schedule-{schedule.pk}",
        "failed",
        _("%(schedule)s could not start a run") % {"schedule": schedule.name},
        text=f"{schedule.agent.name} · {translate_text(schedule.problem, _)}",
        at=schedule.problem_at,
        url=reverse("schedule-detail", args=[schedule.pk]),
        button=_("Open"),
    )


def _describe_failed_run(schedule: Schedule) -> AttentionItem:
    run = schedule.last_run
    assert run is not None
    why = describe_error(run.error_message, run.error_code)
    return AttentionItem(
        f"run-{run.pk}",
        "failed",
        _("The last run of %(schedule)s failed") % {"schedule": schedule.name},
        text=f"{schedule.agent.name} · {why}",
        at=run.ended_at,
        url=reverse("run-detail", args=[run.pk]),
        button=_("Open"),
    )


def _list_outages(user: User, *, mine: bool) -> AttentionGroup:
    """Return providers that do not respond now."""
    visible = Provider.objects.visible_to(user)
    visible = visible.filter(owner=user) if mine else visible
    rows = ProviderOutage.objects.filter(ended_at=None, provider__in=visible)
    found = list(rows.select_related("provider").order_by("started_at")[:MAX_ITEMS])
    items = [
        AttentionItem(
            f"outage-{outage.pk}",
            "waiting",
            describe_outage(outage),
            text=describe_error(outage.error_message, outage.error_code),
            at=outage.started_at,
            url=reverse("provider-detail", args=[outage.provider_id]),
            button=_("Open"),
        )
        for outage in found
    ]
    total, url = _count_all(rows, found), reverse("provider-list")
    return AttentionGroup(items, total, _("Providers"), url)


def describe_outage(outage: ProviderOutage) -> str:
    names = {"provider": outage.provider.name, "model": outage.model}
    if outage.model:
        return _("Model %(model)s of %(provider)s is unavailable") % names
    return _("%(provider)s is unavailable") % names


def _list_webhooks(user: User, *, mine: bool) -> AttentionGroup:
    """Return webhooks of which no delivery has succeeded for some time."""
    rows = Webhook.objects.visible_to(user)
    rows = rows.filter(owner=user) if mine else rows
    before = timezone.now() - WEBHOOK_PATIENCE
    failing = rows.filter(is_on=True, failing_since__lt=before)
    found = list(failing.order_by("failing_since")[:MAX_ITEMS])
    items = [
        AttentionItem(
            f"webhook-{one.pk}",
            "failed",
            _("Deliveries to the webhook %(webhook)s fail") % {"webhook": one.name},
            at=one.failing_since,
            url=reverse("webhook-detail", args=[one.pk]),
            button=_("Open"),
        )
        for one in found
    ]
    total, url = _count_all(failing, found), reverse("webhook-list")
    return AttentionGroup(items, total, _("Webhooks"), url)
