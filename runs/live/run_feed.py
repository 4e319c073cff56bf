"""The events of one run for the client that started it and waits for its end."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import NamedTuple

from django.conf import settings
from django.contrib.auth.models import User
from django.db import Error as DatabaseError
from django.http import HttpRequest

from runs.live.api_renderer import ApiRenderer
from runs.live.asgi import FROM_THE_START, LiveApp
from runs.live.auth import Credentials, get_request_credentials
from runs.live.deferred import Receive
from runs.live.hub import SILENCE_SECONDS, Viewer
from runs.live.sse import ApiEvent, parse_events
from runs.models import Decision, Run
from runs.serializers import step_json
from runs.services.runs.cancel import cancel_run
from tools.audit.actor import Way, act_as

SILENCE = ApiEvent("silence", None)
"""Nothing has happened for a while; a comment keeps the connection open."""
MAX_DEPTH = 5
"""Levels of sub-agents whose decisions are looked for."""

logger = logging.getLogger(__name__)


class FollowedRun(NamedTuple):
    """A run, and who follows it."""

    run_id: int
    user: User
    credentials: Credentials


def follow_run(request: HttpRequest, user: User, run_id: int) -> FollowedRun:
    """Return the run as the bearer of the request's token follows it."""
    return FollowedRun(run_id, user, get_request_credentials(request))


class RunFeed:
    """What a run does, in the words of the API, until it ends or its client leaves."""

    def __init__(self, app: LiveApp, followed: FollowedRun) -> None:
        self._app, self._followed = app, followed
        self._is_waiting = False
        self._told_decisions: set[int] = set()
        self.has_client_left = False

    async def events(self, receive: Receive) -> AsyncGenerator[ApiEvent, None]:
        """Yield the events up to `end`, and `SILENCE`.

        Decisions of sub-agents, which change nothing in this run, are looked for after
        each silence.
        """
        app, followed = self._app, self._followed
        renderer = app.get_renderer(ApiRenderer, settings.LANGUAGE_CODE)
        viewer = app.hub.subscribe(renderer, followed.run_id, after=FROM_THE_START)
        leaving = asyncio.create_task(self._notice_departure(receive, viewer))
        clock = asyncio.get_running_loop().time
        checked = clock()
        try:
            with app.count_stream(followed.user.pk):
                async for message in viewer.messages():
                    if clock() - checked >= SILENCE_SECONDS:
                        checked = clock()
                        if not await self._may_still_watch():
                            break
                    if not message:
                        yield SILENCE
                        for event in await self._find_child_decisions():
                            yield event
                    for event in parse_events(message):
                        if event.name == "run":
                            status = event.content["status"]
                            self._is_waiting = status == Run.Status.WAITING
                        yield event
        finally:
            app.hub.unsubscribe(viewer)
            leaving.cancel()

    async def find_open_decision(self, step_index: int) -> int | None:
        rows = Decision.objects.open().filter(
            step__run=self._followed.run_id, step__index=step_index
        )
        try:
            return await self._app.hub.run_in_thread(
                lambda: rows.values_list("pk", flat=True).first()
            )
        except DatabaseError:
            return None

    async def _find_child_decisions(self) -> list[ApiEvent]:
        """Return the decisions that sub-agents wait for, each once."""
        if not self._is_waiting:
            return []
        try:
            found = await self._app.hub.run_in_thread(self._read_child_decisions)
        except DatabaseError:
            return []
        news = [one for one in found if one.pk not in self._told_decisions]
        self._told_decisions |= {one.pk for one in news}
        return [
            ApiEvent(
                "child_decision", {"step": step_json(one.step), "decision": one.pk}
            )
            for one in news
        ]

    def _read_child_decisions(self) -> list[Decision]:
        runs, found = [self._followed.run_id], list[Decision]()
        mine = Decision.objects.open().visible_to(self._followed.user)
        for _ in range(MAX_DEPTH):
            children = Run.objects.filter(parent_step__run__in=runs, ended_at=None)
            runs = list(children.values_list("pk", flat=True))
            if not runs:
                break
            rows = mine.filter(step__run__in=runs).select_related("step")
            found += rows.distinct().order_by("pk")
        return found

    async def cancel_run(self) -> None:
        """Cancel the run, as its owner; one that is over stays as it is."""
        try:
            await self._app.hub.run_in_thread(self._cancel)
        except DatabaseError:
            logger.exception("Run %d was not canceled", self._followed.run_id)

    def _cancel(self) -> None:
        user = self._followed.user
        run = Run.objects.filter(pk=self._followed.run_id, ended_at=None).first()
        if run is not None:
            with act_as(user, way=Way.API):
                cancel_run(run, by=user)

    async def _notice_departure(self, receive: Receive, viewer: Viewer) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.has_client_left = True
        viewer.close()

    async def _may_still_watch(self) -> bool:
        key, run_id = self._followed.credentials, self._followed.run_id
        return await self._app.may_still_watch(key, run_id)
