"""`?wait=SECONDS`: answer when a run is over, or needs a person."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Annotated

from django.contrib.auth.models import User
from django.db import Error as DatabaseError
from django.http import HttpRequest, HttpResponse
from django.utils import translation
from pydantic import Field

from runs.api.problems import ApiProblem, database_problem, field_problem
from runs.api.queries import Query
from runs.live.asgi import STREAM_RETRY_SECONDS, TOO_MANY_STREAMS, live_app
from runs.live.deferred import DeferredResponse, Headers, Receive, Send
from runs.live.narration import WAITING_FOR_PEOPLE
from runs.live.run_feed import FollowedRun, RunFeed, follow_run
from runs.models import Run
from runs.models.runs import FINISHED_STATUSES
from runs.services.errors import FieldError

MAX_WAIT_SECONDS = 60
"""Proxies often close connections on which nothing is sent for longer."""


class WaitQuery(Query):
    """How long to wait for the run."""

    wait: Annotated[float, Field(ge=0, le=MAX_WAIT_SECONDS, allow_inf_nan=False)] = 0
    """Seconds to wait until the run is over or needs a person's decision. The response
    is the run as it is then, or after these seconds."""


def check_wait(request: HttpRequest, user: User, query: WaitQuery) -> None:
    """Raise if the caller cannot wait: it has a session, or too many open requests."""
    if not query.wait:
        return
    if not request.headers.get("Authorization"):
        raise field_problem("wait", "Waiting for a run needs an API token.")
    check_open_streams(user, "wait")


def check_open_streams(user: User, field: str) -> None:
    """Raise a 429 if the user has too many open requests."""
    if live_app.has_too_many_streams(user.pk):
        raise ApiProblem(
            429,
            [FieldError(field, TOO_MANY_STREAMS)],
            headers={"Retry-After": str(STREAM_RETRY_SECONDS)},
        )


def wait_for_run(
    request: HttpRequest,
    user: User,
    run: Run,
    query: WaitQuery,
    respond: Callable[[Run], HttpResponse],
    reload: Callable[[], Run],
) -> HttpResponse:
    """Return the response for the run: now, or after the wait for the run of then."""
    if not query.wait or not goes_on_alone(run.status):
        return respond(run)
    followed = follow_run(request, user, run.pk)
    return DeferredResponse(_Wait(followed, query.wait, lambda: respond(reload())).send)


def goes_on_alone(status: str) -> bool:
    """Whether a run with this status changes without a person."""
    return status not in {*FINISHED_STATUSES, *WAITING_FOR_PEOPLE}


@dataclass(frozen=True)
class _Wait:
    """A request that waits for a run, without a thread."""

    followed: FollowedRun
    seconds: float
    respond: Callable[[], HttpResponse]

    async def send(self, headers: Headers, receive: Receive, send: Send) -> None:
        feed = RunFeed(live_app, self.followed)
        with suppress(TimeoutError):
            async with (
                asyncio.timeout(self.seconds),
                aclosing(feed.events(receive)) as events,
            ):
                async for event in events:
                    if event.name == "run" and not goes_on_alone(
                        event.content["status"]
                    ):
                        break
        if feed.has_client_left:
            return
        try:
            response = await live_app.hub.run_in_thread(self._respond)
        except DatabaseError:
            response = database_problem().response()
        own = [(k.lower().encode(), v.encode()) for k, v in response.items()]
        start = {"type": "http.response.start", "status": response.status_code}
        await send({**start, "headers": [*headers, *own]})
        await send({"type": "http.response.body", "body": response.content})

    def _respond(self) -> HttpResponse:
        with translation.override("en"):
            try:
                return self.respond()
            except ApiProblem as problem:
                return problem.response()
