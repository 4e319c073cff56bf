"""What needs the viewer's attention; equal items are one row with a count."""

from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Count
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from runs.models import Decision, Provider, ProviderOutage, Schedule, Webhook
from runs.ui.error_labels import get_error_label
from runs.views.approvals.details import DecisionRow, query_open_decisions

MAX_ITEMS = 8
"""Of each kind."""
WEBHOOK_PATIENCE = timedelta(minutes=10)
"""A single failure, after which a delivery is sent again, needs nobody."""


class AttentionItem(NamedTuple):
    """One row of the card."""

    key: str
    """Unique on the page."""
    status: str
    """Of a run, whose shape is drawn."""
    title: str
    tool: str = ""
    """In fixed-width letters after the title."""
    number: int = 1
    text: str = ""
    at: datetime | None = None
    expires_at: datetime | None = None
    url: str = ""
    button: str = ""


class Attention(NamedTuple):
    """The card; without items it is not shown."""

    items: list[AttentionItem]
    total: int
    state: str
    """Changes with the items."""


def list_attention(user: User, *, mine: bool = False) -> Attention:
    """Return open decisions, then what fails: schedules, providers, webhooks."""
    items = [
        *_list_decisions(user, mine=mine),
        *_list_schedules(user, mine=mine),
        *_list_outages(user, mine=mine),
        *_list_webhooks(user, mine=mine),
    ]
    parts = [f"{item.key}.{item.number}.{item.at}" for item in items]
    return Attention(items, sum(item.number for item in items), "-".join(parts))


def _list_decisions(user: User, *, mine: bool) -> list[AttentionItem]:
    only = {"step__run__owner": user} if mine else {}
    rows = query_open_decisions(user, **only)
    first = list(rows[: 5 * MAX_ITEMS])
    if not first:
        return []
    groups = rows.order_by().values_list("question", "step__tool")
    counted = groups.annotate(n=Count("pk"))
    counts = {(question, tool): n for question, tool, n in counted}
    found: dict[tuple[str, str], AttentionItem] = {}
    for decision in first:
        key = (decision.question, decision.step.tool)
        if key not in found:
            found[key] = _describe_decision(decision, counts.get(key, 1))
    return list(found.values())[:MAX_ITEMS]


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


def _list_schedules(user: User, *, mine: bool) -> list[AttentionItem]:
    """Return schedules that could not start a run, or whose last run failed."""
    rows = Schedule.objects.visible_to(user).select_related("agent").defer("inputs")
    rows = rows.filter(owner=user) if mine else rows
    refused = rows.exclude(problem="").order_by("-problem_at")[:MAX_ITEMS]
    failed = rows.on().filter(problem="", last_run__status="failed")
    failed = failed.select_related("agent", "last_run").order_by("-last_run")
    return [
        *(
            AttentionItem(
                f"schedule-{one.pk}",
                "failed",
                _("%(schedule)s could not start a run") % {"schedule": one.name},
                text=f"{one.agent.name} · {one.problem}",
                at=one.problem_at,
                url=reverse("schedule-detail", args=[one.pk]),
                button=_("Open"),
            )
            for one in refused
        ),
        *(_describe_failed_run(one) for one in failed[:MAX_ITEMS]),
    ]


def _describe_failed_run(schedule: Schedule) -> AttentionItem:
    run = schedule.last_run
    assert run is not None
    why = run.error_message or get_error_label(run.error_code)
    return AttentionItem(
        f"run-{run.pk}",
        "failed",
        _("The last run of %(schedule)s failed") % {"schedule": schedule.name},
        text=f"{schedule.agent.name} · {why}",
        at=run.ended_at,
        url=reverse("run-detail", args=[run.pk]),
        button=_("Open"),
    )


def _list_outages(user: User, *, mine: bool) -> list[AttentionItem]:
    """Return providers that do not respond now."""
    visible = Provider.objects.visible_to(user)
    visible = visible.filter(owner=user) if mine else visible
    rows = ProviderOutage.objects.filter(ended_at=None, provider__in=visible)
    return [
        AttentionItem(
            f"provider-{outage.provider_id}",
            "waiting",
            _("%(provider)s is unavailable") % {"provider": outage.provider.name},
            text=outage.error_message or get_error_label(outage.error_code),
            at=outage.started_at,
            url=reverse("provider-detail", args=[outage.provider_id]),
            button=_("Open"),
        )
        for outage in rows.select_related("provider").order_by("started_at")[:MAX_ITEMS]
    ]


def _list_webhooks(user: User, *, mine: bool) -> list[AttentionItem]:
    """Return webhooks of which no delivery has succeeded for some time."""
    rows = Webhook.objects.visible_to(user)
    rows = rows.filter(owner=user) if mine else rows
    before = timezone.now() - WEBHOOK_PATIENCE
    failing = rows.filter(is_on=True, failing_since__lt=before)
    return [
        AttentionItem(
            f"webhook-{one.pk}",
            "failed",
            _("Deliveries to the webhook %(webhook)s fail") % {"webhook": one.name},
            at=one.failing_since,
            url=reverse("webhook-detail", args=[one.pk]),
            button=_("Open"),
        )
        for one in failing.order_by("failing_since")[:MAX_ITEMS]
    ]
