"""The form of a schedule: a new one, a stored one, and the times as they are typed."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from runs.engine.types import AgentSpec
from runs.forms.schedule import ScheduleForm, WhenForm, initial_of_schedule
from runs.htmx import HtmxRequest, page_or_part
from runs.models import Agent, AgentVersion, Preferences, Schedule
from runs.services.cron_words import words_of
from runs.services.errors import NameTaken, RunsError
from runs.services.freeze_agent import spec_of
from runs.services.save_schedule import change_schedule, make_schedule, token_of
from runs.views.schedules import coming_of, shown
from runs.whole_number import whole_number


@require_http_methods(["GET", "POST"])
def schedule_create(request: HtmxRequest) -> HttpResponse:
    """Ask for a new schedule of the agent in the address; first of all, which one."""
    agents = Agent.objects.usable_by(request.user)
    chosen = whole_number(request.GET.get("agent", ""))
    if chosen is None:
        return choose_agent(request)
    agent = get_object_or_404(agents, pk=chosen)
    version = newest(agent)
    if version is None:
        return choose_agent(request, draft=agent)
    schedule = Schedule(owner=request.user, agent=agent)
    form = ScheduleForm(
        spec_of(version.spec), request.POST or None, initial=start_of(request, agent)
    )
    if form.is_valid():
        try:
            made = make_schedule(form.fill(schedule))
        except RunsError as refused:
            tell(form, refused)
        else:
            messages.success(request, f"{made} is on.")
            return redirect("schedule-detail", pk=made.pk)
    context = {"agent": agent, "version": version, "form": form}
    return render(request, "schedules/form.html", context | preview_of(form))


@require_http_methods(["GET", "POST"])
def schedule_edit(request: HtmxRequest, pk: int) -> HttpResponse:
    """Show a schedule to change; its agent stays."""
    schedule = shown(request, pk)
    version = newest(schedule.agent)
    form = ScheduleForm(
        spec_of(version.spec) if version else AgentSpec(kind=schedule.agent.kind),
        request.POST or None,
        initial=initial_of_schedule(schedule),
    )
    seen = request.POST.get("seen", token_of(schedule))
    if form.is_valid():
        try:
            change_schedule(form.fill(schedule), seen=seen)
        except RunsError as refused:
            tell(form, refused)
        else:
            messages.success(request, f"{schedule} is saved.")
            return redirect("schedule-detail", pk=pk)
    context = {
        "agent": schedule.agent,
        "version": version,
        "schedule": shown(request, pk),
        "seen": seen,
        "form": form,
    }
    return render(request, "schedules/form.html", context | preview_of(form))


@require_POST
def schedule_times(request: HtmxRequest) -> HttpResponse:
    """Show when it would be due as it is typed; nothing is saved."""
    form = WhenForm(request.POST)
    return page_or_part(
        request, "schedules/times.html", "schedules/_times.html", preview_of(form)
    )


def choose_agent(request: HtmxRequest, draft: Agent | None = None) -> HttpResponse:
    """Show the agents that can be scheduled, and those that have to be published."""
    agents = Agent.objects.usable_by(request.user).order_by("name")
    published = AgentVersion.objects.values("agent")
    editable = Agent.objects.editable_by(request.user).values_list("pk", flat=True)
    context = {
        "agents": agents.filter(pk__in=published).select_related("owner"),
        "drafts": agents.exclude(pk__in=published).select_related("owner"),
        "editable": set(editable),
        "draft": draft,
    }
    return render(request, "schedules/agent.html", context)


def newest(agent: Agent) -> AgentVersion | None:
    """Return the version that a schedule would run."""
    return agent.versions.select_related("spec").first()


def start_of(request: HtmxRequest, agent: Agent) -> dict[str, Any]:
    """Return what a new schedule begins with: the zone of the last one."""
    last = Schedule.objects.filter(owner=request.user).order_by("-pk")
    zone = last.values_list("time_zone", flat=True).first()
    chosen = Preferences.objects.filter(user=request.user).exclude(time_zone="")
    zone = zone or chosen.values_list("time_zone", flat=True).first()
    return {"name": agent.name, "time_zone": zone or "UTC", "is_known": bool(zone)}


def tell(form: ScheduleForm, refused: RunsError) -> None:
    """Show why it was not saved: at the name, or above all fields."""
    form.add_error("name" if isinstance(refused, NameTaken) else None, str(refused))


def preview_of(form: WhenForm) -> dict[str, Any]:
    """Return the words and the next times of what is in the form."""
    if not form.is_bound:
        form = WhenForm(form.initial)
    form.is_valid()
    cron, zone = form.expression, form.cleaned_data.get("time_zone", "")
    shown_errors = [
        str(error)
        for name in WhenForm.base_fields
        for error in form.errors.get(name, [])
    ]
    return {
        "mistakes": shown_errors,
        "cron": cron,
        "words": words_of(cron) if cron else "",
        "zone": zone,
        "coming": coming_of(cron, zone) if cron and zone else [],
    }
