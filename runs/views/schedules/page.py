"""The list of schedules, the page of a schedule, and its actions."""

from datetime import datetime, tzinfo
from itertools import chain, islice
from typing import NamedTuple

from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import Case, F, Q, QuerySet, When
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import pgettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.htmx import HtmxRequest, render_page_or_part
from runs.models import Agent, Provider, Run, Schedule
from runs.services.errors import RunsError
from runs.services.schedules.cron import (
    MAX_COUNTED_TIMES,
    get_time_zone,
    iter_due_times,
)
from runs.services.schedules.fire import run_schedule_now
from runs.services.schedules.recurrence import describe_cron
from runs.services.schedules.save import (
    delete_schedule,
    pause_schedule,
    resume_schedule,
)
from runs.store.specs import load_spec
from runs.ui.frame.undo import add_message_with_undo
from runs.ui.list_search import get_search_text, search_rows
from runs.ui.run_list_rows import annotate_current_tool, build_run_rows

MAX_RECENT_RUNS = 15
MAX_SCHEDULES = 200
"""Schedules in a list."""
MAX_UPCOMING_TIMES = 5
"""Upcoming times on a page."""


class LocalTime(NamedTuple):
    """A time of a schedule: formatted in the schedule's zone, and the moment."""

    local: str
    at: datetime


class FixLink(NamedTuple):
    """A page where the problem of a schedule can be fixed."""

    label: str
    url: str


class ScheduleRow(NamedTuple):
    schedule: Schedule
    words: str


@require_GET
def schedule_list(request: HtmxRequest) -> HttpResponse:
    query = get_search_text(request)
    visible = search_rows(
        Schedule.objects.visible_to(request.user),
        query,
        *("name", "agent__name", "owner__username"),
    )
    rows = build_schedule_rows(visible)
    context = {
        "rows": rows,
        "q": query,
        "more": visible.count() - len(rows) if len(rows) == MAX_SCHEDULES else 0,
        "here": request.get_full_path(),
        "actions": ["pause", "resume", "delete"],
        "others": any(row.schedule.owner != request.user for row in rows),
    }
    return render_page_or_part(
        request, "schedules/list.html", "schedules/_list.html", context
    )


@require_GET
def schedule_detail(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show one schedule; the part holds what changes: state, times, recent runs."""
    schedule = get_visible_schedule(request, pk)
    runs = Run.objects.visible_to(request.user).filter(schedule=schedule)
    context = {
        "schedule": schedule,
        "here": request.get_full_path(),
        "words": describe_cron(schedule.cron),
        "coming": list_upcoming_times(
            schedule.cron, schedule.time_zone, first=schedule.next_at
        ),
        "last": get_last_time(schedule),
        "most_missed": MAX_COUNTED_TIMES,
        "fix_links": list_fix_links(schedule, request.user) if schedule.problem else [],
        "rows": build_run_rows(
            annotate_current_tool(runs).order_by("-pk")[:MAX_RECENT_RUNS]
        ),
    }
    return render_page_or_part(
        request, "schedules/detail.html", "schedules/_now.html", context
    )


@require_POST
def schedule_pause(request: HtmxRequest, pk: int) -> HttpResponse:
    """Start no more runs until the schedule is resumed."""
    schedule = get_visible_schedule(request, pk)
    pause_schedule(schedule)
    add_message_with_undo(
        request,
        _("Schedule %(name)s paused. Runs that have started continue.")
        % {"name": schedule},
        reverse("schedule-resume", args=[pk]),
    )
    return redirect("schedule-detail", pk=pk)


@require_POST
def schedule_resume(request: HtmxRequest, pk: int) -> HttpResponse:
    schedule = get_visible_schedule(request, pk)
    try:
        resume_schedule(schedule)
    except RunsError as refused:
        messages.error(request, str(refused))
    else:
        add_message_with_undo(
            request,
            _("Schedule %(name)s resumed. It starts a run at the next scheduled time.")
            % {"name": schedule},
            reverse("schedule-pause", args=[pk]),
        )
    return redirect("schedule-detail", pk=pk)


@require_POST
def schedule_run(request: HtmxRequest, pk: int) -> HttpResponse:
    """Start a run now and show it; the next scheduled time does not change."""
    schedule = get_visible_schedule(request, pk)
    try:
        run = run_schedule_now(schedule)
    except RunsError as refused:
        messages.error(request, str(refused))
        return redirect("schedule-detail", pk=pk)
    except Schedule.DoesNotExist:  # deleted since it was looked up above
        raise Http404 from None
    return redirect("run-detail", pk=run.pk)


@require_http_methods(["GET", "POST"])
def schedule_delete(request: HtmxRequest, pk: int) -> HttpResponse:
    """Ask for confirmation; POST deletes."""
    schedule = get_visible_schedule(request, pk)
    if request.method == "POST":
        delete_schedule(schedule)
        messages.success(
            request,
            _("Schedule %(name)s deleted. Its runs are kept.") % {"name": schedule},
        )
        return redirect("schedule-list")
    number = Run.objects.filter(schedule=schedule).count()
    context = {"schedule": schedule, "number": number}
    return render(request, "schedules/delete.html", context)


def get_visible_schedule(request: HtmxRequest, pk: int) -> Schedule:
    """Return a schedule that the user may see, and so edit; otherwise raise 404."""
    rows = Schedule.objects.visible_to(request.user)
    return get_object_or_404(rows.select_related("agent", "owner", "last_run"), pk=pk)


def list_fix_links(schedule: Schedule, user: User) -> list[FixLink]:
    """Return the pages that `user` may open to fix the problem, likeliest first."""
    agent, fix_links = schedule.agent, []
    version = agent.versions.select_related("spec").order_by("-number").first()
    page = reverse("agent-detail", args=[agent.pk])
    if version is None:
        return [FixLink(_("Publish a version"), f"{page}#agent-versions")]
    chosen = load_spec(version.spec).model.provider_id
    away = Provider.objects.visible_to(user).filter(archived_at__isnull=False)
    if provider := away.filter(pk=chosen or 0).first():
        url = reverse("provider-detail", args=[provider.pk])
        fix_links.append(FixLink(_("Open the provider"), url))
    if Agent.objects.visible_to(user).filter(pk=agent.pk).exists():
        fix_links.append(FixLink(_("Open the agent"), page))
    edit = FixLink(_("Edit the schedule"), reverse("schedule-edit", args=[schedule.pk]))
    return fix_links if provider or agent.archived_at else [*fix_links, edit]


def build_schedule_rows(schedules: QuerySet[Schedule]) -> list[ScheduleRow]:
    """Return rows for lists: those with a problem first, then by next time."""
    found = schedules.select_related("agent", "owner", "last_run").defer("inputs")
    is_paused_or_active = Q(next_at=None) | Q(owner__is_active=True)
    is_fine = Case(When(is_paused_or_active, problem="", then=1), default=0)
    ordered = found.order_by(is_fine, F("next_at").asc(nulls_last=True), "name", "pk")
    return [
        ScheduleRow(one, describe_cron(one.cron)) for one in ordered[:MAX_SCHEDULES]
    ]


def list_upcoming_times(
    cron: str, zone_name: str, *, first: datetime | None = None
) -> list[LocalTime]:
    """Return the next times; none if the time zone is unknown.

    `first` is the stored next time; it is in the past while no worker runs.
    """
    zone = find_time_zone(zone_name)
    if zone is None:
        return []
    later = iter_due_times(cron, zone, after=first or timezone.now())
    found = chain([first], later) if first else later
    return [
        LocalTime(format_local_time(at.astimezone(zone)), at)
        for at in islice(found, MAX_UPCOMING_TIMES)
    ]


def get_last_time(schedule: Schedule) -> LocalTime | None:
    """Return the last time; None before the first, or if the zone is unknown."""
    zone = find_time_zone(schedule.time_zone)
    if zone is None or schedule.last_at is None:
        return None
    return LocalTime(
        format_local_time(schedule.last_at.astimezone(zone)), schedule.last_at
    )


def find_time_zone(name: str) -> tzinfo | None:
    """Return the zone with this name; None if there is none."""
    try:
        return get_time_zone(name)
    except KeyError:
        return None


def format_local_time(local: datetime) -> str:
    """Format a local time with its weekday: Mon 23 Nov 2026, 09:00."""
    return date_format(local, pgettext("date format", "D j M Y, H:i"))


def list_agent_schedules(agent: Agent, *, user: User) -> list[ScheduleRow]:
    return build_schedule_rows(Schedule.objects.visible_to(user).filter(agent=agent))
