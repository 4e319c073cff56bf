"""The first page: what runs, what needs a person, how to start."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db.models import Case, Count, Max, Q, QuerySet, Sum, When
from django.db.models.functions import TruncDate
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from runs.htmx import HtmxRequest, page_or_part
from runs.llm.registry import KINDS
from runs.models import (
    Agent,
    Decision,
    Preferences,
    Provider,
    Resume,
    Run,
    RunTally,
    Schedule,
)
from runs.models.runs import UNFINISHED
from runs.services.bootstrap import CAUTIOUS, DEMO_SLUGS, HASTY, UNLUCKY
from runs.views.charts import STEP, outcomes_of, spending_of, week
from runs.views.duration_chart import durations_of
from runs.views.list_rows import rows_of, with_doing
from runs.views.questions import Asked, open_questions
from tools.models import Tool, ToolUsage

LAST = 8
WORKING = ["running", "queued", "waiting"]
"""Statuses of runs that go on without a person."""
OFFLINE = [name for name, kind in KINDS.items() if not kind.base_url]
"""Kinds of provider that are nowhere: the demo."""

QUESTIONS = {
    "beijing": "根据北京的天气情况，制定一个出游计划",
    "reykjavik": "Look at the weather in Reykjavík and plan a day out",
    "oslo": "Plan a day out in Oslo that fits the weather",
}
"""What a newcomer can ask the demo agent."""


class Step(NamedTuple):
    """One of the first steps of a newcomer."""

    title: str
    help: str
    is_done: bool
    url: str
    word: str


class FailedDay(NamedTuple):
    """How often it failed on one day, as a bar."""

    x: str
    """Percent of the week."""
    height: str
    """Percent of the worst day of all tools."""
    words: str


class ToolFailures(NamedTuple):
    """How often one tool failed."""

    slug: str
    name: str
    calls: int
    failed: int
    days: list[FailedDay]


@require_GET
def home(request: HtmxRequest) -> HttpResponse:
    """Show the first page; the part is what moves."""
    mine = request.GET.get("mine") == "1" and request.user.is_superuser
    runs = Run.objects.visible_to(request.user)
    if mine:
        runs = runs.filter(owner=request.user)
    context: dict[str, Any] = (
        now_of(runs)
        | asked_of(request.user, mine=mine)
        | {
            "mine": mine,
            "here": request.get_full_path(),
            "sees_all": request.user.is_superuser,
            "name": request.user.first_name or request.user.username,
        }
    )
    if not mine and not runs.exists():
        return page_or_part(
            request,
            "home/start.html",
            "home/_now.html",
            context | start_of(request.user, request.GET.get("try", "")),
        )
    if not request.htmx:
        asked = request.GET.get("agent", "")
        context |= rest_of(runs, request.user, mine=mine, agent=asked)
    return page_or_part(request, "home/home.html", "home/_now.html", context)


@require_POST
def hide_first_steps(request: HtmxRequest) -> HttpResponse:
    """Take the card with the first steps away for good."""
    Preferences.objects.update_or_create(
        user=request.user, defaults={"hides_first_steps": True}
    )
    return redirect("home")


def now_of(runs: QuerySet[Run]) -> dict[str, Any]:
    """Return what changes while one looks; a called agent's run is its caller's."""
    asked = runs.filter(parent_step=None)
    counts = dict(
        asked.filter(status__in=UNFINISHED)
        .values_list("status")
        .annotate(number=Count("pk"))
    )
    working = with_doing(asked.filter(status__in=WORKING))
    ended = with_doing(asked.exclude(status__in=UNFINISHED))
    return {
        "now": rows_of(working.order_by(running_first(), "-pk")[:LAST]),
        "now_count": sum(counts.get(status, 0) for status in WORKING),
        "counts": [
            f"{counts[status]:,} {status}" for status in WORKING if status in counts
        ],
        "last": rows_of(ended.order_by("-pk")[:LAST]),
    }


def asked_of(user: User, *, mine: bool) -> dict[str, Any]:
    """Return the questions of the inbox, in its order."""
    questions = open_questions(user, **({"step__run__owner": user} if mine else {}))
    return {
        "questions": [Asked(one) for one in questions[:LAST]],
        "question_count": questions.count(),
    }


def running_first() -> Case:
    """Order by what happens now, then what waits for a time, then the queue."""
    places = {"running": 0, "waiting": 1}
    whens = [When(status=status, then=place) for status, place in places.items()]
    return Case(*whens, default=2)


def rest_of(
    runs: QuerySet[Run], user: User, *, mine: bool, agent: str
) -> dict[str, Any]:
    """Return what stays while one looks: charts, failures, first steps.

    The charts are of one agent, where `agent` is the number of one that ran.
    """
    tallies = RunTally.objects.all()
    if mine or not user.is_superuser:
        tallies = tallies.filter(owner=user)
    agents = agents_of(tallies)
    chosen = next((row["agent"] for row in agents if str(row["agent"]) == agent), None)
    charted = {"agent": chosen} if chosen else {}
    yesterday = timezone.now() - timedelta(days=1)
    failures = list(
        runs.filter(status="failed", ended_at__gt=yesterday)
        .values("error_code", "error_message", "agent__name")
        .annotate(number=Count("pk"), last=Max("ended_at"), newest=Max("pk"))
        .order_by("-last")
    )
    return {
        "outcomes": outcomes_of(tallies.filter(**charted)),
        "spending": spending_of(tallies.filter(**charted)),
        "durations": durations_of(runs.filter(**charted)),
        "agents": agents,
        "chosen": chosen,
        "charts_of": "?mine=1&" if mine else "?",
        "tools": tools_of(user),
        "failures": failures[:6],
        "failure_count": sum(row["number"] for row in failures),
        "troubles": troubles_of(user, mine=mine),
        "steps": [] if hides_steps(user) else first_steps(user),
    }


def troubles_of(user: User, *, mine: bool) -> QuerySet[Schedule]:
    """Return the schedules whose last run could not be started, the newest first."""
    rows = Schedule.objects.visible_to(user).exclude(problem="")
    rows = rows.filter(owner=user) if mine else rows
    return rows.defer("inputs").order_by("-problem_at")[:LAST]


def agents_of(tallies: QuerySet[RunTally]) -> list[dict[str, Any]]:
    """Return what the agents did in seven days, the busiest first."""
    recent = tallies.filter(day__gte=week()[0]).values("agent", "agent__name")
    return list(
        recent.annotate(
            number=Sum("runs"),
            failed=Sum("runs", filter=Q(status="failed"), default=0),
            used=Sum("tokens"),
            spent=Sum("cost"),
        )
        .filter(number__gt=0)
        .order_by("-number", "agent__name")[:LAST]
    )


def tools_of(user: User) -> list[ToolFailures]:
    """Return the tools that failed most in seven days, with each of the days."""
    days = week()
    since = datetime.combine(days[0], time.min, UTC)
    usage = ToolUsage.objects.filter(
        hour__gte=since, tool__in=Tool.objects.visible_to(user)
    )
    rows = usage.values("tool", "tool__slug", "tool__name").annotate(
        calls=Sum("calls"), failed=Sum("failures")
    )
    worst = rows.filter(failed__gt=0).order_by("-failed", "tool__name")[:LAST]
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
                failed_day(place, day, counts.get((row["tool"], day), [0, 0]), most)
                for place, day in enumerate(days)
            ],
        )
        for row in worst
    ]


def failed_day(place: int, day: date, counts: list[int], most: int) -> FailedDay:
    """Return the bar of one day."""
    calls, failed = counts
    return FailedDay(
        f"{STEP * place:.2f}",
        f"{100 * failed / most:.1f}",
        f"{day:%d %b}: {failed:,} of {calls:,} failed",
    )


def hides_steps(user: User) -> bool:
    """Whether the person sent the first steps away."""
    return Preferences.objects.filter(user=user, hides_first_steps=True).exists()


def first_steps(user: User) -> list[Step]:
    """Return the first steps, and which of them are done; none when all are.

    What the demo agents show is left out where they are not there.
    """
    runs = Run.objects.filter(owner=user)
    demos = dict(
        Agent.objects.usable_by(user)
        .filter(slug__in=[one.slug for one in (CAUTIOUS, HASTY, UNLUCKY)])
        .values_list("slug", "pk")
    )
    steps = [
        Step(
            "Run an agent",
            "The demo agent needs no key and no network.",
            runs.exists(),
            reverse("agent-list"),
            "Agents",
        ),
        *_demo_steps(user, runs, demos),
        Step(
            "Connect a model of your own",
            "Any server that speaks the OpenAI format, also one on this machine.",
            Provider.objects.usable_by(user).exclude(kind__in=OFFLINE).exists(),
            reverse("provider-create"),
            "Add provider",
        ),
        Step(
            "Build an agent",
            "Instructions, one or two tools, a limit.",
            Agent.objects.editable_by(user)
            .exclude(slug__in=DEMO_SLUGS)
            .exclude(is_playground=True)
            .exists(),
            reverse("agent-create"),
            "New agent",
        ),
    ]
    return [] if all(step.is_done for step in steps) else steps


def _demo_steps(user: User, runs: QuerySet[Run], demos: dict[str, int]) -> list[Step]:
    """Return the steps for which a demo agent is there."""
    answered = Decision.objects.filter(by=user)
    resumed = Resume.objects.filter(by=user)
    shown = {
        CAUTIOUS: (
            "Answer a question",
            "The cautious planner asks before it looks at the weather.",
            answered.exists(),
        ),
        HASTY: (
            "Resume a run that stopped",
            "The hasty planner reaches its limit. Resume its run with 5 rounds: what "
            "was done is kept.",
            resumed.exists(),
        ),
        UNLUCKY: (
            "Fork a run that failed",
            "The unlucky planner's model is always busy. Fork its run, and choose the "
            "model demo-planner.",
            runs.filter(forked_from__isnull=False).exists(),
        ),
    }
    return [
        Step(title, words, done, reverse("agent-detail", args=[pk]), "Run it")
        for variant, (title, words, done) in shown.items()
        if (pk := demos.get(variant.slug)) is not None
    ]


def start_of(user: User, chosen: str) -> dict[str, Any]:
    """Return what stands on a page without any run: an agent to try, and what then."""
    agents = Agent.objects.usable_by(user).select_related("provider")
    demo = agents.filter(provider__kind__in=OFFLINE).order_by("pk").first()
    question = QUESTIONS.get(chosen, QUESTIONS["beijing"])
    agent = demo or agents.order_by("pk").first()
    return {
        "agent": agent,
        "is_demo": demo is not None,
        "question": question if demo else "",
        "questions": [(w, q) for w, q in QUESTIONS.items() if q != question],
        "tools": [use.tool for use in agent.uses.select_related("tool") if use.tool]
        if agent
        else [],
        "steps": first_steps(user),
    }
