"""Schedules in the API."""

from typing import Annotated, Any, Literal

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from pydantic import Field

from runs.api.bodies import StrictBody
from runs.api.dispatch import json_response, no_content
from runs.api.problems import ApiProblem, field_problem, not_found
from runs.api.queries import Page, PageQuery, paginate_by_id
from runs.api.route import Route
from runs.api.runs import get_agent_for_user, new_run_json, prefix_field_errors
from runs.api.shapes import RunWithStepsShape, Shape
from runs.models import Agent, Run, Schedule
from runs.serializers import Json, format_timestamp
from runs.services.errors import (
    CronRefused,
    InputsRefused,
    NeverDue,
    RunsError,
    ScheduleConflict,
    ScheduleNameInUse,
    TooManyRuns,
)
from runs.services.runs.start import validate_inputs
from runs.services.schedules.cron import MAX_CRON_CHARS, list_time_zones, validate_cron
from runs.services.schedules.fire import run_schedule_now
from runs.services.schedules.save import (
    create_schedule,
    delete_schedule,
    get_schedule_token,
    pause_schedule,
    resume_schedule,
    update_schedule,
)
from runs.store.specs import load_spec


class ScheduleFields(StrictBody):
    """What can be changed of a schedule; what is left out stays."""

    inputs: dict[str, Any] = {}
    time_zone: Annotated[str, Field(max_length=60)] = "UTC"
    """IANA name, such as `Europe/Berlin`."""
    overlap: Literal["skip", "start"] = "skip"
    """If an earlier run has not ended: skip, or start another one."""


class NewScheduleBody(ScheduleFields):
    """The body of `POST /api/v1/schedules`."""

    agent: str
    """Slug of a published agent."""
    name: Annotated[str, Field(min_length=1, max_length=120)]
    cron: Annotated[str, Field(min_length=1, max_length=MAX_CRON_CHARS)]
    """Minute, hour, day of the month, month, day of the week."""


class ScheduleBody(ScheduleFields):
    """The body of `PATCH /api/v1/schedules/{id}`."""

    name: Annotated[str, Field(min_length=1, max_length=120)] = ""
    cron: Annotated[str, Field(min_length=1, max_length=MAX_CRON_CHARS)] = ""


class ScheduleShape(Shape):
    """An agent, its inputs, and the times at which it runs."""

    id: int
    name: str
    owner: str
    agent: str
    inputs: dict[str, Any]
    cron: str
    time_zone: str
    overlap: Literal["skip", "start"]
    is_paused: bool
    next_at: str | None
    last_at: str | None
    last_run: int | None
    missed: int
    """Times without a worker before `last_at`; one run caught up for all."""
    skipped: int
    """Consecutive times skipped because an earlier run had not ended."""
    problem: str | None
    """Why no run could start."""
    created_at: str
    updated_at: str


def schedule_json(schedule: Schedule) -> Json:
    return {
        "id": schedule.pk,
        "name": schedule.name,
        "owner": schedule.owner.get_username(),
        "agent": schedule.agent.slug,
        "inputs": schedule.inputs,
        "cron": schedule.cron,
        "time_zone": schedule.time_zone,
        "overlap": schedule.overlap,
        "is_paused": not schedule.is_on,
        "next_at": format_timestamp(schedule.next_at),
        "last_at": format_timestamp(schedule.last_at),
        "last_run": schedule.last_run_id,
        "missed": schedule.missed,
        "skipped": schedule.skipped,
        "problem": schedule.problem or None,
        "created_at": format_timestamp(schedule.created_at),
        "updated_at": format_timestamp(schedule.updated_at),
    }


def get_schedule(user: User, pk: str) -> Schedule:
    rows = Schedule.objects.visible_to(user).select_related("agent", "owner")
    found = rows.filter(pk=int(pk)).first()
    if found is None:
        raise not_found("Schedule", pk)
    return found


def list_schedules(request: HttpRequest, user: User, query: PageQuery) -> HttpResponse:
    """Your schedules, the newest first; administrators see all."""
    rows = Schedule.objects.visible_to(user).select_related("agent", "owner")
    return json_response(paginate_by_id(rows, query, schedule_json))


def read_schedule(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """One schedule, with an ETag."""
    return respond_with_schedule(user, int(pk))


def respond_with_schedule(user: User, pk: int, status: int = 200) -> HttpResponse:
    schedule = get_schedule(user, str(pk))
    headers = {"ETag": f'"{get_schedule_token(schedule)}"'}
    if status == 201:
        headers["Location"] = reverse("api-schedule", args=[pk])
    return json_response(schedule_json(schedule), status, **headers)


def create_agent_schedule(
    request: HttpRequest, user: User, body: NewScheduleBody
) -> HttpResponse:
    """Run a published agent at set times."""
    agent = get_agent_for_user(user, body.agent)
    schedule = Schedule(owner=user, agent=agent)
    apply_body(schedule, body, agent)
    try:
        made = create_schedule(schedule)
    except (NeverDue, ScheduleNameInUse) as error:
        raise schedule_problem(error) from None
    return respond_with_schedule(user, made.pk, 201)


def change_schedule(
    request: HttpRequest, user: User, pk: str, body: ScheduleBody
) -> HttpResponse:
    """Change a schedule; its agent stays."""
    schedule = get_schedule(user, pk)
    token = get_schedule_token(schedule)
    sent = request.headers.get("If-Match", "*").strip()
    apply_body(schedule, body, schedule.agent)
    try:
        update_schedule(schedule, seen=token if sent == "*" else sent.strip('"'))
    except ScheduleConflict as error:
        raise field_problem("If-Match", str(error), 412) from None
    except (NeverDue, ScheduleNameInUse) as error:
        raise schedule_problem(error) from None
    return respond_with_schedule(user, schedule.pk)


def apply_body(
    schedule: Schedule, body: NewScheduleBody | ScheduleBody, agent: Agent
) -> None:
    """Set the fields that the body has; raise a 422."""
    sent = body.model_fields_set
    for name in sent & {"name", "overlap"}:
        setattr(schedule, name, getattr(body, name))
    if "time_zone" in sent:
        if body.time_zone not in list_time_zones():
            message = f"Time zone {body.time_zone!r} not found."
            raise field_problem("time_zone", message)
        schedule.time_zone = body.time_zone
    if "cron" in sent:
        try:
            schedule.cron = validate_cron(body.cron)
        except CronRefused as error:
            raise field_problem("cron", str(error)) from None
    if "inputs" in sent or not schedule.pk:
        schedule.inputs = check_inputs(agent, body.inputs)


def check_inputs(agent: Agent, inputs: dict[str, Any]) -> dict[str, str]:
    """Return the inputs as the published version takes them; raise a 422."""
    version = agent.versions.select_related("spec").first()
    if version is None:
        message = f"Agent {agent.slug!r} is not published. Publish it first."
        raise field_problem("agent", message)
    try:
        return validate_inputs(load_spec(version.spec), inputs)
    except InputsRefused as error:
        raise ApiProblem(422, prefix_field_errors("inputs", error.errors)) from None


def schedule_problem(error: RunsError) -> ApiProblem:
    return field_problem("cron" if isinstance(error, NeverDue) else "name", str(error))


def pause_schedule_for_user(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """Start no more runs until it is resumed."""
    pause_schedule(get_schedule(user, pk))
    return respond_with_schedule(user, int(pk))


def resume_schedule_for_user(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """Start runs again; times during the pause are not caught up."""
    try:
        resume_schedule(get_schedule(user, pk))
    except NeverDue as error:
        raise field_problem("cron", str(error), 409) from None
    return respond_with_schedule(user, int(pk))


def run_schedule(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """Start a run now; the next scheduled time does not change."""
    try:
        run = run_schedule_now(get_schedule(user, pk))
    except Schedule.DoesNotExist:  # deleted since it was looked up
        raise not_found("Schedule", pk) from None
    except TooManyRuns:
        raise
    except RunsError as error:
        raise field_problem("agent", str(error), 409) from None
    row = Run.objects.select_related("agent", "version").get(pk=run.pk)
    location = reverse("api-run", args=[run.pk])
    return json_response(new_run_json(row), 201, Location=location)


def delete_schedule_for_user(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """Delete a schedule; its runs stay."""
    delete_schedule(get_schedule(user, pk))
    return no_content()


ROUTES = [
    Route(
        "GET",
        "schedules",
        list_schedules,
        "List schedules",
        Page[ScheduleShape],
        query=PageQuery,
    ),
    Route(
        "POST",
        "schedules",
        create_agent_schedule,
        "Create a schedule",
        ScheduleShape,
        body=NewScheduleBody,
        status=201,
        is_idempotent=True,
    ),
    Route(
        "GET",
        "schedules/{id}",
        read_schedule,
        "Read a schedule",
        ScheduleShape,
        has_etag=True,
    ),
    Route(
        "PATCH",
        "schedules/{id}",
        change_schedule,
        "Change a schedule",
        ScheduleShape,
        body=ScheduleBody,
        has_etag=True,
    ),
    Route(
        "DELETE",
        "schedules/{id}",
        delete_schedule_for_user,
        "Delete a schedule",
        status=204,
    ),
    Route(
        "POST",
        "schedules/{id}/pause",
        pause_schedule_for_user,
        "Pause a schedule",
        ScheduleShape,
    ),
    Route(
        "POST",
        "schedules/{id}/resume",
        resume_schedule_for_user,
        "Resume a schedule",
        ScheduleShape,
        errors=(409,),
    ),
    Route(
        "POST",
        "schedules/{id}/run",
        run_schedule,
        "Run a schedule now",
        RunWithStepsShape,
        status=201,
        errors=(409, 429),
        is_idempotent=True,
    ),
]
