"""The home page: active runs, open questions, charts and first steps."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db.models import Case, Count, Max, Q, QuerySet, Sum, When
from django.db.models.functions import TruncDate
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_GET, require_POST

from runs.htmx import HtmxRequest, render_page_or_part
from runs.llm.registry import PROVIDER_KINDS
from runs.models import (
    Agent,
    DailyRunDurations,
    DailyRunStats,
    Decision,
    Preferences,
    Provider,
    Resume,
    Run,
    Schedule,
)
from runs.models.runs import UNFINISHED_STATUSES
from runs.services.bootstrap import CAUTIOUS, DEMO_SLUGS, HASTY, UNLUCKY
from runs.ui.format import format_day, number, percent_of
from runs.ui.list_state import get_list_state, knows_list_state
from runs.ui.run_list_rows import annotate_current_tool, build_run_rows
from runs.views.approvals.details import DecisionRow, query_open_decisions
from runs.views.charts.chart import (
    STEP,
    OutcomeTotals,
    count_outcomes,
    get_chart_days,
    sum_spending,
)
from runs.views.charts.durations import summarize_durations
from tools.models import Tool, ToolUsage

MAX_ROWS = 8
ACTIVE_STATUSES = ["running", "queued", "waiting"]
"""Statuses of runs that continue without a person."""
OFFLINE_KINDS = [name for name, kind in PROVIDER_KINDS.items() if not kind.needs_server]
"""Kinds of provider without a server: the demo."""

SAMPLE_QUESTIONS = {
    "beijing": gettext_lazy("Plan a day out in Beijing based on the weather"),
    "reykjavik": gettext_lazy("Look at the weather in Reykjavík and plan a day out"),
    "oslo": gettext_lazy("Plan a day out in Oslo that fits the weather"),
}
"""Questions for the demo agent. It answers in their language, and knows the cities."""


class OnboardingStep(NamedTuple):
    """One of the first steps of a new user."""

    title: str
    help: str
    is_done: bool
    url: str
    word: str


class FailureBar(NamedTuple):
    """The failed calls of one day as a bar."""

    x: str
    """Percent of the week."""
    height: str
    """Percent of the worst day among all tools."""
    words: str


class ToolFailures(NamedTuple):
    """The failed calls of one tool, by day."""

    slug: str
    name: str
    calls: int
    failed: int
    days: list[FailureBar]


@require_GET
def home(request: HtmxRequest) -> HttpResponse:
    """Show the home page; HTMX polls only its changing part."""
    mine = request.GET.get("mine") == "1" and request.user.is_superuser
    runs = Run.objects.visible_to(request.user)
    if mine:
        runs = runs.filter(owner=request.user)
    inbox = build_inbox_context(request.user, mine=mine)
    state = get_list_state(runs, inbox["question_count"])
    if knows_list_state(request, state):
        return HttpResponse(status=204)
    context: dict[str, Any] = (
        build_activity_context(runs)
        | inbox
        | {
            "state": state,
            "mine": mine,
            "here": request.get_full_path(),
            "sees_all": request.user.is_superuser,
            "name": request.user.first_name or request.user.username,
        }
    )
    if not mine and not runs.exists():
        return render_page_or_part(
            request,
            "home/start.html",
            "home/_now.html",
            context | build_welcome_context(request.user, request.GET.get("try", "")),
        )
    if not request.htmx:
        asked = request.GET.get("agent", "")
        context |= build_dashboard_context(runs, request.user, mine=mine, agent=asked)
    return render_page_or_part(request, "home/home.html", "home/_now.html", context)


@require_POST
def hide_first_steps(request: HtmxRequest) -> HttpResponse:
    """Hide the first steps for this user, or show them again."""
    is_hidden = "show" not in request.POST
    Preferences.objects.update_or_create(
        user=request.user, defaults={"hides_first_steps": is_hidden}
    )
    return redirect("home")


def build_activity_context(runs: QuerySet[Run]) -> dict[str, Any]:
    """Return active and recent runs, without sub-agent runs."""
    asked = runs.filter(parent_step=None)
    counts = dict(
        asked.filter(status__in=UNFINISHED_STATUSES)
        .values_list("status")
        .annotate(number=Count("pk"))
    )
    working = annotate_current_tool(asked.filter(status__in=ACTIVE_STATUSES))
    ended = annotate_current_tool(asked.exclude(status__in=UNFINISHED_STATUSES))
    return {
        "now": build_run_rows(
            working.order_by(order_running_first(), "-pk")[:MAX_ROWS]
        ),
        "now_count": sum(counts.get(status, 0) for status in ACTIVE_STATUSES),
        "counts": describe_status_counts(counts),
        "last": build_run_rows(ended.order_by("-pk")[:MAX_ROWS]),
    }


def describe_status_counts(counts: dict[str, int]) -> list[str]:
    """Say how many runs have each active status, leaving out those without runs."""
    texts = {
        "running": _("%(count)s running"),
        "queued": _("%(count)s queued"),
        "waiting": _("%(count)s waiting"),
    }
    return [
        text % {"count": number(counts[status])}
        for status, text in texts.items()
        if status in counts
    ]


def build_inbox_context(user: User, *, mine: bool) -> dict[str, Any]:
    """Return the open questions in the order of the inbox."""
    questions = query_open_decisions(
        user, **({"step__run__owner": user} if mine else {})
    )
    return {
        "questions": [DecisionRow(one) for one in questions[:MAX_ROWS]],
        "question_count": questions.count(),
    }


def order_running_first() -> Case:
    """Order running runs first, then waiting, then queued ones."""
    places = {"running": 0, "waiting": 1}
    whens = [When(status=status, then=place) for status, place in places.items()]
    return Case(*whens, default=2)


def build_dashboard_context(
    runs: QuerySet[Run], user: User, *, mine: bool, agent: str
) -> dict[str, Any]:
    """Return charts, failures and first steps, which the page does not poll.

    The charts show one agent if `agent` is the key of an agent with recent runs.
    """
    tallies = DailyRunStats.objects.all()
    durations = DailyRunDurations.objects.all()
    if mine or not user.is_superuser:
        tallies = tallies.filter(owner=user)
        durations = durations.filter(owner=user)
    agents = summarize_agents(tallies)
    chosen = next((row["agent"] for row in agents if str(row["agent"]) == agent), None)
    charted = {"agent": chosen} if chosen else {}
    yesterday = timezone.now() - timedelta(days=1)
    failures = list(
        runs.filter(status="failed", ended_at__gt=yesterday)
        .values("error_code", "error_message", "agent__name")
        .annotate(number=Count("pk"), last=Max("ended_at"), newest=Max("pk"))
        .order_by("-last")
    )
    outcomes = count_outcomes(tallies.filter(**charted))
    is_hidden = has_hidden_first_steps(user)
    return {
        "outcomes": outcomes,
        "outcome_summary": summarize_outcomes(outcomes) if outcomes else "",
        "outcome_label": describe_outcome_chart(outcomes) if outcomes else "",
        "spending": sum_spending(tallies.filter(**charted)),
        "durations": summarize_durations(durations.filter(**charted)),
        "agents": agents,
        "chosen": chosen,
        "charts_query": "?mine=1&" if mine else "?",
        "tools": list_tool_failures(user),
        "failures": failures[:6],
        "failure_count": sum(row["number"] for row in failures),
        "troubles": query_failing_schedules(user, mine=mine),
        "steps": [] if is_hidden else list_first_steps(user),
        "has_hidden_steps": is_hidden,
    }


def summarize_outcomes(outcomes: OutcomeTotals) -> str:
    """Say what the total counts, and the share of runs that did not succeed."""
    total, failed, limited = outcomes.total, outcomes.failed, outcomes.limit_reached
    facts = [
        ngettext("run ended", "runs ended", total),
        _("%(percent)s failed") % {"percent": percent_of(failed, total)}
        if failed
        else _("none failed"),
    ]
    if limited:
        share = {"percent": percent_of(limited, total)}
        facts.append(_("%(percent)s reached a limit") % share)
    return " · ".join(facts)


def describe_outcome_chart(outcomes: OutcomeTotals) -> str:
    """Describe the chart for screen readers."""
    return _(
        "Runs per day by outcome: %(succeeded)s succeeded or canceled, "
        "%(failed)s failed, %(limited)s reached a limit"
    ) % {
        "succeeded": number(outcomes.succeeded),
        "failed": number(outcomes.failed),
        "limited": number(outcomes.limit_reached),
    }


def query_failing_schedules(user: User, *, mine: bool) -> QuerySet[Schedule]:
    """Return the schedules whose last run could not start, newest problem first."""
    rows = Schedule.objects.visible_to(user).exclude(problem="")
    rows = rows.filter(owner=user) if mine else rows
    return rows.defer("inputs").order_by("-problem_at")[:MAX_ROWS]


def summarize_agents(tallies: QuerySet[DailyRunStats]) -> list[dict[str, Any]]:
    """Return the totals of each agent in the last seven days, busiest first."""
    known = tallies.filter(day__gte=get_chart_days()[0], agent__isnull=False)
    recent = known.values("agent", "agent__name")
    return list(
        recent.annotate(
            number=Sum("runs"),
            failed=Sum("runs", filter=Q(status="failed"), default=0),
            used=Sum("tokens"),
            spent=Sum("cost"),
        )
        .filter(number__gt=0)
        .order_by("-number", "agent__name")[:MAX_ROWS]
    )


def list_tool_failures(user: User) -> list[ToolFailures]:
    """Return the tools with the most failed calls in the last seven days."""
    days = get_chart_days()
    since = datetime.combine(days[0], time.min, UTC)
    usage = ToolUsage.objects.filter(
        hour__gte=since, tool__in=Tool.objects.visible_to(user)
    )
    rows = usage.values("tool", "tool__slug", "tool__name").annotate(
        calls=Sum("calls"), failed=Sum("failures")
    )
    worst = rows.filter(failed__gt=0).order_by("-failed", "tool__name")[:MAX_ROWS]
    tools = [row["tool"] for row in worst]
    by_day = usage.filter(tool__in=tools).values_list(
        "tool", TruncDate("hour", tzinfo=UTC)
    )
    summed = by_day.annotate(Sum("calls"), Sum("failures"))
    counts = {(tool, day): numbers for tool, day, *numbers in summed}
    most = max((failed for _, failed in counts.values()), default=0)
    return [
        ToolFailures(
            slug=row["tool__slug"],
            name=row["tool__name"],
            calls=row["calls"],
            failed=row["failed"],
            days=[
                build_failure_bar(
                    place, day, counts.get((row["tool"], day), [0, 0]), most
                )
                for place, day in enumerate(days)
            ],
        )
        for row in worst
    ]


def build_failure_bar(
    place: int, day: date, counts: list[int], most: int
) -> FailureBar:
    calls, failed = counts
    return FailureBar(
        f"{STEP * place:.2f}",
        f"{100 * failed / most:.1f}",
        _("%(day)s: %(failed)s of %(calls)s failed")
        % {
            "day": format_day(day),
            "failed": number(failed),
            "calls": number(calls),
        },
    )


def has_hidden_first_steps(user: User) -> bool:
    return Preferences.objects.filter(user=user, hides_first_steps=True).exists()


def list_first_steps(user: User) -> list[OnboardingStep]:
    """Return the first steps; an empty list once all of them are done.

    Steps of demo agents that do not exist are left out.
    """
    runs = Run.objects.filter(owner=user)
    demos = dict(
        Agent.objects.usable_by(user)
        .filter(slug__in=[one.slug for one in (CAUTIOUS, HASTY, UNLUCKY)])
        .values_list("slug", "pk")
    )
    steps = [
        OnboardingStep(
            _("Run an agent"),
            _("The demo agent needs no API key and no network."),
            runs.exists(),
            reverse("agent-list"),
            _("Agents"),
        ),
        *_list_demo_steps(user, runs, demos),
        OnboardingStep(
            _("Connect your own model"),
            _(
                "Any server with an OpenAI-compatible API, including one on this "
                "machine."
            ),
            Provider.objects.usable_by(user).exclude(kind__in=OFFLINE_KINDS).exists(),
            reverse("provider-create"),
            _("Add provider"),
        ),
        OnboardingStep(
            _("Build an agent"),
            _("Instructions, one or two tools, a limit."),
            Agent.objects.editable_by(user)
            .exclude(slug__in=DEMO_SLUGS)
            .exclude(is_playground=True)
            .exists(),
            reverse("agent-create"),
            _("New agent"),
        ),
    ]
    return [] if all(step.is_done for step in steps) else steps


def _list_demo_steps(
    user: User, runs: QuerySet[Run], demos: dict[str, int]
) -> list[OnboardingStep]:
    """Return the steps whose demo agent exists."""
    answered = Decision.objects.filter(by=user)
    resumed = Resume.objects.filter(by=user)
    shown = {
        CAUTIOUS: (
            _("Approve a call"),
            _("The cautious planner asks for approval before it checks the weather."),
            answered.exists(),
        ),
        HASTY: (
            _("Resume a run that reached a limit"),
            _(
                "The hasty planner reaches its limit. Resume its run with 5 rounds; "
                "completed steps are kept."
            ),
            resumed.exists(),
        ),
        UNLUCKY: (
            _("Fork a failed run"),
            _(
                "The unlucky planner's model is always busy. Fork its run and select "
                "the model demo-planner."
            ),
            runs.filter(forked_from__isnull=False).exists(),
        ),
    }
    return [
        OnboardingStep(title, words, done, reverse("agent-detail", args=[pk]), _("Run"))
        for variant, (title, words, done) in shown.items()
        if (pk := demos.get(variant.slug)) is not None
    ]


def build_welcome_context(user: User, chosen: str) -> dict[str, Any]:
    """Return an agent to try and the first steps, for a user without runs."""
    agents = Agent.objects.usable_by(user).select_related("provider")
    demo = agents.filter(provider__kind__in=OFFLINE_KINDS).order_by("pk").first()
    chosen = chosen if chosen in SAMPLE_QUESTIONS else "beijing"
    agent = demo or agents.order_by("pk").first()
    return {
        "agent": agent,
        "is_demo": demo is not None,
        "question": SAMPLE_QUESTIONS[chosen] if demo else "",
        "questions": [(w, q) for w, q in SAMPLE_QUESTIONS.items() if w != chosen],
        "tools": [use.tool for use in agent.uses.select_related("tool") if use.tool]
        if agent
        else [],
        "steps": list_first_steps(user),
    }
