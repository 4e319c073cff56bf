"""Schedules: the list, one schedule with its times and runs, and what can be done."""

from datetime import datetime, tzinfo
from itertools import chain, islice
from typing import NamedTuple

from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import Case, F, QuerySet, When
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from runs.htmx import HtmxRequest, page_or_part
from runs.models import Agent, Provider, Run, Schedule
from runs.services.cron import MOST_COUNTED, times, zone_of
from runs.services.cron_words import words_of
from runs.services.errors import RunsError
from runs.services.freeze_agent import spec_of
from runs.services.save_schedule import (
    delete_schedule,
    pause_schedule,
    resume_schedule,
)
from runs.services.start_due import run_now
from runs.views.list_rows import rows_of, with_doing

RECENT = 15
MOST = 200
"""Schedules in a list."""
SHOWN = 5
"""Times to come."""


class Moment(NamedTuple):
    """A time of a schedule: as the clocks of its zone show it, and the moment."""

    local: str
    at: datetime


class Mend(NamedTuple):
    """A page on which one can mend what keeps a schedule from starting runs."""

    word: str
    url: str


class ScheduleRow(NamedTuple):
    """One schedule in a list."""

    schedule: Schedule
    words: str


@require_GET
def schedule_list(request: HtmxRequest) -> HttpResponse:
    """Show the schedules one may see."""
    visible = Schedule.objects.visible_to(request.user)
    rows = schedule_rows(visible)
    context = {
        "rows": rows,
        "more": visible.count() - len(rows) if len(rows) == MOST else 0,
        "here": request.get_full_path(),
        "others": any(row.schedule.owner != request.user for row in rows),
    }
    return page_or_part(request, "schedules/list.html", "schedules/_list.html", context)


@require_GET
def schedule_detail(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show one schedule; the part is what moves: its state, times and last runs."""
    schedule = shown(request, pk)
    runs = Run.objects.visible_to(request.user).filter(schedule=schedule)
    context = {
        "schedule": schedule,
        "here": request.get_full_path(),
        "words": words_of(schedule.cron),
        "coming": coming_of(schedule.cron, schedule.time_zone, first=schedule.next_at),
        "last": last_of(schedule),
        "most_missed": MOST_COUNTED,
        "mends": mends_of(schedule, request.user) if schedule.problem else [],
        "rows": rows_of(with_doing(runs).order_by("-pk")[:RECENT]),
    }
    return page_or_part(
        request, "schedules/detail.html", "schedules/_now.html", context
    )


@require_POST
def schedule_pause(request: HtmxRequest, pk: int) -> HttpResponse:
    """Start nothing any more until it goes on."""
    schedule = shown(request, pk)
    pause_schedule(schedule)
    messages.success(request, f"{schedule} is paused. Runs under way go on.")
    return redirect("schedule-detail", pk=pk)


@require_POST
def schedule_resume(request: HtmxRequest, pk: int) -> HttpResponse:
    """Start runs again."""
    schedule = shown(request, pk)
    try:
        resume_schedule(schedule)
    except RunsError as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, f"{schedule} goes on from its next time.")
    return redirect("schedule-detail", pk=pk)


@require_POST
def schedule_run(request: HtmxRequest, pk: int) -> HttpResponse:
    """Start a run now, and go to its page; the next time stays as it is."""
    schedule = shown(request, pk)
    try:
        run = run_now(schedule)
    except RunsError as refused:
        messages.error(request, str(refused))
        return redirect("schedule-detail", pk=pk)
    except Schedule.DoesNotExist:  # deleted since it was looked up above
        raise Http404 from None
    return redirect("run-detail", pk=run.pk)


@require_http_methods(["GET", "POST"])
def schedule_delete(request: HtmxRequest, pk: int) -> HttpResponse:
    """Ask whether it is meant; POST deletes."""
    schedule = shown(request, pk)
    if request.method == "POST":
        delete_schedule(schedule)
        messages.success(request, f"{schedule} is deleted. Its runs are kept.")
        return redirect("schedule-list")
    number = Run.objects.filter(schedule=schedule).count()
    context = {"schedule": schedule, "number": number}
    return render(request, "schedules/delete.html", context)


def shown(request: HtmxRequest, pk: int) -> Schedule:
    """Return a schedule that the person may see, and so change; else there is none."""
    rows = Schedule.objects.visible_to(request.user)
    return get_object_or_404(rows.select_related("agent", "owner", "last_run"), pk=pk)


def mends_of(schedule: Schedule, user: User) -> list[Mend]:
    """Return where to go, the likeliest first, as far as `user` may go there."""
    agent, mends = schedule.agent, []
    version = agent.versions.select_related("spec").order_by("-number").first()
    page = reverse("agent-detail", args=[agent.pk])
    if version is None:
        return [Mend("Publish a version", f"{page}#agent-versions")]
    chosen = spec_of(version.spec).model.provider_id
    away = Provider.objects.visible_to(user).filter(archived_at__isnull=False)
    if provider := away.filter(pk=chosen or 0).first():
        url = reverse("provider-detail", args=[provider.pk])
        mends.append(Mend("Open the provider", url))
    if Agent.objects.visible_to(user).filter(pk=agent.pk).exists():
        mends.append(Mend("Open the agent", page))
    edit = Mend("Edit the schedule", reverse("schedule-edit", args=[schedule.pk]))
    return mends if provider or agent.archived_at else [*mends, edit]


def schedule_rows(schedules: QuerySet[Schedule]) -> list[ScheduleRow]:
    """Return rows of lists: those with a problem first, then by their next time."""
    found = schedules.select_related("agent", "owner", "last_run").defer("inputs")
    is_fine = Case(When(problem="", then=1), default=0)
    ordered = found.order_by(is_fine, F("next_at").asc(nulls_last=True), "name", "pk")
    return [ScheduleRow(one, words_of(one.cron)) for one in ordered[:MOST]]


def coming_of(
    cron: str, zone_name: str, *, first: datetime | None = None
) -> list[Moment]:
    """Return the next times; none where the zone is not known any more.

    `first` is the one that a schedule stands at: while no worker is there, it is past.
    """
    zone = known_zone(zone_name)
    if zone is None:
        return []
    later = times(cron, zone, after=first or timezone.now())
    found = chain([first], later) if first else later
    return [Moment(clock(at.astimezone(zone)), at) for at in islice(found, SHOWN)]


def last_of(schedule: Schedule) -> Moment | None:
    """Return the last time; none before the first, or where the zone is gone."""
    zone = known_zone(schedule.time_zone)
    if zone is None or schedule.last_at is None:
        return None
    return Moment(clock(schedule.last_at.astimezone(zone)), schedule.last_at)


def known_zone(name: str) -> tzinfo | None:
    """Return the zone of this name, if there is one."""
    try:
        return zone_of(name)
    except KeyError:
        return None


def clock(local: datetime) -> str:
    """Write a moment as a clock on the wall shows it: Mon 23 Nov 2026, 09:00."""
    return f"{local:%a} {local.day} {local:%b %Y, %H:%M}"


def of_agent(agent: Agent, *, user: User) -> list[ScheduleRow]:
    """Return the schedules of an agent that `user` may see."""
    return schedule_rows(Schedule.objects.visible_to(user).filter(agent=agent))
