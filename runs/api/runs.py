"""Runs in the API: start, read, cancel, resume."""

from typing import Annotated, Literal

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from pydantic import Field

from runs.api.bodies import (
    KeepRunBody,
    ResumeRunBody,
    StartRunBody,
    read_idempotency_key,
)
from runs.api.dispatch import json_response
from runs.api.problems import ApiProblem, field_problem, run_not_found
from runs.api.route import Route
from runs.api.shapes import RunShape, RunWithStepsShape
from runs.api.waiting import WaitQuery, check_wait, wait_for_run
from runs.models import Agent, Conversation, Run
from runs.serializers import (
    MAX_STEPS,
    RUN_RELATIONS,
    STEP_FIELDS,
    Json,
    annotate_child_runs,
    run_json,
    step_json,
)
from runs.services.errors import (
    CannotResume,
    FieldError,
    InputsRefused,
    NotAllowed,
    NotResumable,
    SpecRefused,
    VersionNotFound,
)
from runs.services.runs.cancel import cancel_run
from runs.services.runs.idempotency import IdempotencyKeyReused, start_run_once
from runs.services.runs.keep import keep_runs
from runs.services.runs.limits import get_current_limits
from runs.services.runs.resume import resume_run
from runs.services.runs.start import freeze_version, start_run
from runs.services.tool_modes.select_mode import get_recorded_run
from runs.store.fast_select import select_row


class StepsQuery(WaitQuery):
    """How long to wait, and which steps of a run."""

    steps: Literal["", "none"] = ""
    """`none` leaves them out."""
    steps_after: Annotated[int, Field(ge=-1, lt=2**31)] = -1
    """Only steps with a higher index."""


ALL_STEPS = StepsQuery()


def create_run(
    request: HttpRequest, user: User, body: StartRunBody, query: WaitQuery
) -> HttpResponse:
    """Start a run; with the same `Idempotency-Key` again, 200 and the same run."""
    check_wait(request, user, query)
    key = read_idempotency_key(request)
    agent = get_agent_for_user(user, body.agent)
    conversation = find_own_conversation(user, agent, body.conversation)
    check_tool_mode(user, body)

    def start() -> Run:
        return start_run(
            agent,
            by=user,
            inputs=body.inputs,
            conversation=conversation,
            source=Run.Source.API,
            keep_forever=body.keep_forever,
            tool_mode=body.mode,
            frozen=None
            if body.version is None
            else freeze_version(agent, body.version),
        )

    try:
        started = start_run_once(start, user=user, key=key, body_digest=body.digest)
    except InputsRefused as error:
        raise ApiProblem(422, prefix_field_errors("inputs", error.errors)) from None
    except SpecRefused as error:
        raise ApiProblem(422, prefix_field_errors("agent", error.errors)) from None
    except VersionNotFound as error:
        raise field_problem("version", str(error)) from None
    except NotAllowed as error:
        raise field_problem("agent", str(error), 403) from None
    except IdempotencyKeyReused as error:
        raise field_problem("Idempotency-Key", str(error), 409) from None
    status = 201 if started.is_new else 200
    location = reverse("api-run", args=[started.run.pk])

    def respond(run: Run) -> HttpResponse:
        is_new = started.is_new and run is started.run
        shape = new_run_json(run) if is_new else run_with_steps_json(run)
        return json_response(shape, status, Location=location)

    return wait_for_run(
        *(request, user, started.run, query, respond),
        reload=lambda: get_run_for_user(user, started.run.pk),
    )


def new_run_json(run: Run) -> Json:
    """Return the JSON of a run without steps."""
    return {**run_json(run), "steps": [], "steps_next": None}


def read_run(
    request: HttpRequest, user: User, pk: str, query: StepsQuery
) -> HttpResponse:
    """The run, with at most 500 of its steps."""
    check_wait(request, user, query)

    def read() -> Run:
        return get_run_for_user(user, int(pk))

    def respond(run: Run) -> HttpResponse:
        return json_response(run_with_steps_json(run, query))

    return wait_for_run(request, user, read(), query, respond, reload=read)


def cancel_run_for_user(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """Request a cancel; a run that has ended stays as it is."""
    cancel_run(get_run_for_user(user, int(pk)), by=user)
    return json_response(run_json(get_run_for_user(user, int(pk))))


def resume_run_for_user(
    request: HttpRequest, user: User, pk: str, body: ResumeRunBody
) -> HttpResponse:
    """Queue a run again that failed or reached a limit; completed steps are kept."""
    run = get_run_for_user(user, int(pk))
    limits = body.limits.changed_options(get_current_limits(run))
    try:
        resume_run(run, by=user, limits=limits)
    except NotAllowed as error:
        raise field_problem("agent", str(error), 403) from None
    except NotResumable as error:
        raise field_problem("status", str(error), 409) from None
    except CannotResume as error:
        raise field_problem("limits", str(error)) from None
    return json_response(run_json(get_run_for_user(user, run.pk)))


def keep_run_for_user(
    request: HttpRequest, user: User, pk: str, body: KeepRunBody
) -> HttpResponse:
    """Keep a run, so that retention rules do not delete it, or no longer."""
    run = get_run_for_user(user, int(pk))
    keep_runs([run], keep=body.keep_forever, by=user)
    return json_response(run_json(get_run_for_user(user, run.pk)))


def get_run_for_user(user: User, pk: int) -> Run:
    """Return the run, if `user` may see it; raise a 404."""
    run = select_row(Run, RUN_RELATIONS, id=pk)
    if run is None or not _may_see_run(user, run):
        raise run_not_found(pk)
    return run


def _may_see_run(user: User, run: Run) -> bool:
    """Whether `user` may see `run`; the common cases need no query."""
    if user.is_superuser or run.owner_id == user.pk:
        return True
    return Run.objects.visible_to(user).filter(pk=run.pk).exists()


def get_agent_for_user(user: User, slug: str) -> Agent:
    """Return the agent, if `user` may run it; raise a 422."""
    agent = select_row(Agent, slug=slug) if "\0" not in slug else None
    if agent is not None and agent.archived_at is not None:
        agent = None
    if agent is not None and not (user.is_superuser or agent.owner_id == user.pk):
        agent = Agent.objects.usable_by(user).filter(pk=agent.pk).first()
    if agent is None:
        raise field_problem("agent", f"Agent {slug!r} not found.")
    return agent


def check_tool_mode(user: User, body: StartRunBody) -> None:
    """Raise a 422 if `user` may not see the run to replay."""
    if body.tool_mode is not None and body.conversation is not None:
        text = "A run with a tool mode cannot be part of a conversation."
        raise field_problem("conversation", text)
    try:
        get_recorded_run(body.mode, by=user)
    except NotAllowed as error:
        raise field_problem("tool_mode.recording", str(error)) from None


def find_own_conversation(
    user: User, agent: Agent, pk: int | None
) -> Conversation | None:
    """Return the conversation, if it is this user's with this agent; raise a 422."""
    if pk is None:
        return None
    found = Conversation.objects.filter(pk=pk, owner=user, agent=agent).first()
    if found is None:
        raise field_problem(
            "conversation", f"Conversation {pk} with this agent not found."
        )
    return found


def prefix_field_errors(field: str, errors: list[FieldError]) -> list[FieldError]:
    """Return the errors under the name of the body's field that contains them."""
    return [
        FieldError(f"{field}.{error.field}" if error.field else field, error.message)
        for error in errors
    ]


def run_with_steps_json(run: Run, window: StepsQuery = ALL_STEPS) -> Json:
    """Return the run as JSON; `steps_next` is the next `?steps_after=`."""
    if window.steps:
        return run_json(run)
    rows = annotate_child_runs(
        run.steps.filter(index__gt=window.steps_after).only(*STEP_FIELDS)
    )
    steps = list(rows.order_by("index")[: MAX_STEPS + 1])
    shape = run_json(run)
    shape["steps"] = [step_json(step) for step in steps[:MAX_STEPS]]
    more = len(steps) > MAX_STEPS
    shape["steps_next"] = steps[MAX_STEPS - 1].index if more else None
    return shape


ROUTES = [
    Route(
        "POST",
        "runs",
        create_run,
        "Start a run",
        RunWithStepsShape,
        query=WaitQuery,
        body=StartRunBody,
        cleans_text=True,
        status=201,
        errors=(429,),
        is_idempotent=True,
        keeps_own_keys=True,
    ),
    Route(
        "GET",
        "runs/{id}",
        read_run,
        "Read a run",
        RunWithStepsShape,
        query=StepsQuery,
        errors=(429,),
    ),
    Route("POST", "runs/{id}/cancel", cancel_run_for_user, "Cancel a run", RunShape),
    Route(
        "POST",
        "runs/{id}/resume",
        resume_run_for_user,
        "Resume a run",
        RunShape,
        body=ResumeRunBody,
        errors=(409,),
    ),
    Route(
        "POST",
        "runs/{id}/keep",
        keep_run_for_user,
        "Keep a run",
        RunShape,
        body=KeepRunBody,
    ),
]
