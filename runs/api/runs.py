"""Runs in the API: start, read, cancel, resume."""

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from runs.api.bodies import (
    StepsWindow,
    parse_keep_run_body,
    parse_resume_run_body,
    parse_start_run_body,
    parse_steps_window,
    read_idempotency_key,
)
from runs.api.dispatch import json_response
from runs.api.problems import ApiProblem, field_problem, run_not_found
from runs.api.serializers import (
    MAX_STEPS,
    RUN_RELATIONS,
    STEP_FIELDS,
    Json,
    annotate_child_runs,
    run_json,
    step_json,
)
from runs.models import Agent, Conversation, Run
from runs.services.errors import (
    CannotResume,
    FieldError,
    InputsRefused,
    NotAllowed,
    NotResumable,
    SpecRefused,
)
from runs.services.runs.cancel import cancel_run
from runs.services.runs.idempotency import IdempotencyKeyReused, start_run_once
from runs.services.runs.keep import keep_runs
from runs.services.runs.limits import get_current_limits
from runs.services.runs.resume import resume_run
from runs.services.runs.start import start_run
from runs.store.fast_select import select_row

ALL_STEPS = StepsWindow()


def create_run(request: HttpRequest, user: User) -> HttpResponse:
    """`POST /runs`: start a run; 201, or 200 if its idempotency key was used before."""
    body = parse_start_run_body(request)
    key = read_idempotency_key(request)
    agent = get_agent_for_user(user, body.agent)
    conversation = find_own_conversation(user, agent, body.conversation)

    def start() -> Run:
        return start_run(
            agent,
            by=user,
            inputs=body.inputs,
            conversation=conversation,
            source=Run.Source.API,
            keep_forever=body.keep_forever,
        )

    try:
        started = start_run_once(start, user=user, key=key, body_digest=body.digest)
    except InputsRefused as error:
        raise ApiProblem(422, prefix_field_errors("inputs", error.errors)) from None
    except SpecRefused as error:
        raise ApiProblem(422, prefix_field_errors("agent", error.errors)) from None
    except NotAllowed as error:
        raise field_problem("agent", str(error), 403) from None
    except IdempotencyKeyReused as error:
        raise field_problem("Idempotency-Key", str(error), 409) from None
    return json_response(
        new_run_json(started.run)
        if started.is_new
        else run_with_steps_json(started.run, ALL_STEPS),
        201 if started.is_new else 200,
        Location=reverse("api-run", args=[started.run.pk]),
    )


def new_run_json(run: Run) -> Json:
    """Return the JSON of a run without steps."""
    return {**run_json(run), "steps": [], "steps_next": None}


def read_run(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """`GET /runs/{id}`: the run, with at most 500 of its steps."""
    window = parse_steps_window(request)
    return json_response(run_with_steps_json(get_run_for_user(user, int(pk)), window))


def cancel_run_for_user(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """`POST /runs/{id}/cancel`: request a cancel; an ended run stays as it is."""
    cancel_run(get_run_for_user(user, int(pk)), by=user)
    return json_response(
        run_with_steps_json(
            get_run_for_user(user, int(pk)), StepsWindow(with_steps=False)
        )
    )


def resume_run_for_user(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """`POST /runs/{id}/resume`: queue a run again that failed or reached a limit."""
    run, body = get_run_for_user(user, int(pk)), parse_resume_run_body(request)
    limits = body.limits.changed_options(get_current_limits(run))
    try:
        resume_run(run, by=user, limits=limits)
    except NotAllowed as error:
        raise field_problem("agent", str(error), 403) from None
    except NotResumable as error:
        raise field_problem("status", str(error), 409) from None
    except CannotResume as error:
        raise field_problem("limits", str(error)) from None
    return json_response(
        run_with_steps_json(
            get_run_for_user(user, run.pk), StepsWindow(with_steps=False)
        )
    )


def keep_run_for_user(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """`POST /runs/{id}/keep`: keep a run forever, or no longer."""
    run, body = get_run_for_user(user, int(pk)), parse_keep_run_body(request)
    keep_runs([run], keep=body.keep_forever, by=user)
    return json_response(
        run_with_steps_json(
            get_run_for_user(user, run.pk), StepsWindow(with_steps=False)
        )
    )


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


def run_with_steps_json(run: Run, window: StepsWindow) -> Json:
    """Return the run as JSON; `steps_next` is the next `?steps_after=`."""
    if not window.with_steps:
        return run_json(run)
    rows = annotate_child_runs(
        run.steps.filter(index__gt=window.after).only(*STEP_FIELDS)
    )
    steps = list(rows.order_by("index")[: MAX_STEPS + 1])
    shape = run_json(run)
    shape["steps"] = [step_json(step) for step in steps[:MAX_STEPS]]
    more = len(steps) > MAX_STEPS
    shape["steps_next"] = steps[MAX_STEPS - 1].index if more else None
    return shape
