"""The ASGI application: live streams beside Django."""

import os
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import django

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LIVE_PATHS = re.compile(r"/live/|/api/v1/runs/\d+/events/?$")


def routed(django_app: App, live_app: App) -> App:
    """Send the paths of live streams to `live_app`, everything else to Django.

    `live_app` also gets the lifespan events, so that it can start and stop its hub.
    """

    async def route(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            settle_heap()
        if scope["type"] == "lifespan" or (
            scope["type"] == "http" and LIVE_PATHS.match(scope["path"])
        ):
            await live_app(scope, receive, send)
        else:
            await django_app(scope, receive, send)

    return route


os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
django.setup(set_prefix=False)  # before models are read

import agentsite.urls  # noqa: E402, F401  # all views, before the heap is settled
from agentsite.heap import settle_heap  # noqa: E402
from agentsite.threaded import ThreadedHandler  # noqa: E402
from runs.live.asgi import live_app  # noqa: E402

django_application = ThreadedHandler()

application = routed(django_application, live_app)
