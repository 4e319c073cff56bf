"""Runs by the API: start, read, cancel."""

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from runs.api.bodies import StepsWindow, idempotency_key, start_run_body, steps_window
from runs.api.door import answer
from runs.api.problems import Problem, no_run, refused
from runs.api.shapes import (
    RUN_RELATIONS,
    STEP_FIELDS,
    STEPS_AT_MOST,
    Json,
    run_json,
    step_json,
    with_children,
)
from runs.models import Agent, Conversation, Run
from runs.services.cancel_run import cancel_run
from runs.services.errors import FieldError, InputsRefused, NotAllowed, SpecRefused
from runs.services.prepared import Prepared
from runs.services.start_once import AnotherBody, start_once
from runs.services.start_run import start_run

ALL = StepsWindow()
ANY_RUN = Prepared(
    lambda pk: Run.objects.select_related(*RUN_RELATIONS).filter(pk=pk), int
)
OWN_RUN = Prepared(
    lambda pk, user: (
        Run.objects.visible_to(User(pk=user))
        .select_related(*RUN_RELATIONS)
        .filter(pk=pk)
    ),
    int,
    int,
)
AGENT = Prepared(lambda slug: Agent.objects.filter(slug=slug, archived_at=None), str)
"""A published version has all that a run needs; only a draft asks for more."""


def create(request: HttpRequest, user: User) -> HttpResponse:
    """`POST /runs`: start a run; 201, or 200 where its key was used before."""
    body = start_run_body(request)
    key = idempotency_key(request)
    agent = agent_named(user, body.agent)
    conversation = conversation_of(user, agent, body.conversation)

    def start() -> Run:
        return start_run(
            agent,
            by=user,
            inputs=body.inputs,
            conversation=conversation,
            source=Run.Source.API,
        )

    try:
        started = start_once(start, user=user, key=key, body_digest=body.digest)
    except InputsRefused as error:
        raise Problem(422, within("inputs", error.errors)) from None
    except SpecRefused as error:
        raise Problem(422, within("agent", error.errors)) from None
    except NotAllowed as error:
        raise refused("agent", str(error), 403) from None
    except AnotherBody as error:
        raise refused("Idempotency-Key", str(error), 409) from None
    return answer(
        new_shape(started.run) if started.is_new else shape_of(started.run, ALL),
        201 if started.is_new else 200,
        Location=reverse("api-run", args=[started.run.pk]),
    )


def new_shape(run: Run) -> Json:
    """Return a run that has no step yet."""
    return {**run_json(run), "steps": [], "steps_next": None}


def read(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """`GET /runs/{id}`: the run, with at most 500 of its steps."""
    window = steps_window(request)
    return answer(shape_of(run_for(user, int(pk)), window))


def cancel(request: HttpRequest, user: User, pk: str) -> HttpResponse:
    """`POST /runs/{id}/cancel`: ask the run to end; one that is over stays as it is."""
    cancel_run(run_for(user, int(pk)), by=user)
    return answer(shape_of(run_for(user, int(pk)), StepsWindow(wanted=False)))


def run_for(user: User, pk: int) -> Run:
    """Return the run, if `user` may see it; raise a 404."""
    run = ANY_RUN.first(pk) if user.is_superuser else OWN_RUN.first(pk, user.pk)
    if run is None:
        raise no_run(pk)
    return run


def agent_named(user: User, slug: str) -> Agent:
    """Return the agent, if `user` may run it; raise a 422."""
    agent = AGENT.first(slug) if "\0" not in slug else None
    if agent is not None and not (user.is_superuser or agent.owner_id == user.pk):
        agent = Agent.objects.usable_by(user).filter(pk=agent.pk).first()
    if agent is None:
        raise refused("agent", f"There is no agent {slug!r} that you may run.")
    return agent


def conversation_of(user: User, agent: Agent, pk: int | None) -> Conversation | None:
    """Return the conversation, if it is this user's with this agent; raise a 422."""
    if pk is None:
        return None
    found = Conversation.objects.filter(pk=pk, owner=user, agent=agent).first()
    if found is None:
        raise refused(
            "conversation", f"There is no conversation {pk} of yours with this agent."
        )
    return found


def within(field: str, errors: list[FieldError]) -> list[FieldError]:
    """Return the errors under the name of the field of the body they are in."""
    return [
        FieldError(f"{field}.{error.field}" if error.field else field, error.message)
        for error in errors
    ]


def shape_of(run: Run, window: StepsWindow) -> Json:
    """Return the run as JSON; `steps_next` goes into the next `?steps_after=`."""
    if not window.wanted:
        return run_json(run)
    rows = with_children(run.steps.filter(index__gt=window.after).only(*STEP_FIELDS))
    steps = list(rows.order_by("index")[: STEPS_AT_MOST + 1])
    shape = run_json(run)
    shape["steps"] = [step_json(step) for step in steps[:STEPS_AT_MOST]]
    more = len(steps) > STEPS_AT_MOST
    shape["steps_next"] = steps[STEPS_AT_MOST - 1].index if more else None
    return shape
