"""The form of a new or stored schedule, with a preview of its times."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from runs.engine.types import AgentSpec
from runs.forms.schedule import ScheduleForm, ScheduleTimesForm, initial_of_schedule
from runs.htmx import HtmxRequest, render_page_or_part
from runs.models import Agent, AgentVersion, Preferences, Schedule
from runs.services.errors import RunsError, ScheduleNameInUse
from runs.services.schedules.recurrence import describe_cron
from runs.services.schedules.save import (
    create_schedule,
    get_schedule_token,
    update_schedule,
)
from runs.store.specs import load_spec
from runs.views.schedules.page import get_visible_schedule, list_upcoming_times
from runs.whole_number import parse_whole_number


@require_http_methods(["GET", "POST"])
def schedule_create(request: HtmxRequest) -> HttpResponse:
    """Create a schedule of the agent in the query; without one, offer agents."""
    agents = Agent.objects.usable_by(request.user)
    chosen = parse_whole_number(request.GET.get("agent", ""))
    if chosen is None:
        return render_agent_choice(request)
    agent = get_object_or_404(agents, pk=chosen)
    version = get_schedulable_version(agent)
    if version is None:
        return render_agent_choice(request, draft=agent)
    schedule = Schedule(owner=request.user, agent=agent)
    form = ScheduleForm(
        load_spec(version.spec),
        request.POST or None,
        initial=get_schedule_initial(request, agent),
    )
    if form.is_valid():
        try:
            made = create_schedule(form.apply_to(schedule))
        except RunsError as refused:
            add_save_error(form, refused)
        else:
            messages.success(request, _("Schedule %(name)s created.") % {"name": made})
            return redirect("schedule-detail", pk=made.pk)
    context = {"agent": agent, "version": version, "form": form}
    return render(
        request, "schedules/form.html", context | build_schedule_preview(form)
    )


@require_http_methods(["GET", "POST"])
def schedule_edit(request: HtmxRequest, pk: int) -> HttpResponse:
    """Edit a schedule; its agent cannot be changed."""
    schedule = get_visible_schedule(request, pk)
    version = get_schedulable_version(schedule.agent)
    form = ScheduleForm(
        load_spec(version.spec) if version else AgentSpec(kind=schedule.agent.kind),
        request.POST or None,
        initial=initial_of_schedule(schedule),
    )
    seen = request.POST.get("seen", get_schedule_token(schedule))
    if form.is_valid():
        try:
            update_schedule(form.apply_to(schedule), seen=seen)
        except RunsError as refused:
            add_save_error(form, refused)
        else:
            messages.success(
                request, _("Schedule %(name)s saved.") % {"name": schedule}
            )
            return redirect("schedule-detail", pk=pk)
    context = {
        "agent": schedule.agent,
        "version": version,
        "schedule": get_visible_schedule(request, pk),
        "seen": seen,
        "form": form,
    }
    return render(
        request, "schedules/form.html", context | build_schedule_preview(form)
    )


@require_POST
def schedule_times(request: HtmxRequest) -> HttpResponse:
    """Show the upcoming times of the unsaved form."""
    form = ScheduleTimesForm(request.POST)
    return render_page_or_part(
        request,
        "schedules/times.html",
        "schedules/_times.html",
        build_schedule_preview(form),
    )


def render_agent_choice(
    request: HtmxRequest, draft: Agent | None = None
) -> HttpResponse:
    """Offer the agents that can be scheduled, and list those not published yet."""
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


def get_schedulable_version(agent: Agent) -> AgentVersion | None:
    return agent.versions.select_related("spec").first()


def get_schedule_initial(request: HtmxRequest, agent: Agent) -> dict[str, Any]:
    """Return the initial values of a new schedule, in the zone of the last one."""
    last = Schedule.objects.filter(owner=request.user).order_by("-pk")
    zone = last.values_list("time_zone", flat=True).first()
    chosen = Preferences.objects.filter(user=request.user).exclude(time_zone="")
    zone = zone or chosen.values_list("time_zone", flat=True).first()
    return {"name": agent.name, "time_zone": zone or "UTC", "is_known": bool(zone)}


def add_save_error(form: ScheduleForm, refused: RunsError) -> None:
    """Show why saving failed: at the name, or above all fields."""
    form.add_error(
        "name" if isinstance(refused, ScheduleNameInUse) else None, str(refused)
    )


def build_schedule_preview(form: ScheduleTimesForm) -> dict[str, Any]:
    """Return the description and the next times of the unsaved form."""
    if not form.is_bound:
        form = ScheduleTimesForm(form.initial)
    form.is_valid()
    cron, zone = form.expression, form.cleaned_data.get("time_zone", "")
    shown_errors = [
        str(error)
        for name in ScheduleTimesForm.base_fields
        for error in form.errors.get(name, [])
    ]
    return {
        "mistakes": shown_errors,
        "cron": cron,
        "words": describe_cron(cron) if cron else "",
        "zone": zone,
        "coming": list_upcoming_times(cron, zone) if cron and zone else [],
    }
