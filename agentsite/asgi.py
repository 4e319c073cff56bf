"""The ASGI application: Django, with the live streams beside it."""

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


def build_router(django_app: App, live_app: App) -> App:
    """Send the paths of live streams to `live_app`, everything else to Django.

    `live_app` also gets the lifespan events, which start and stop its hub.
    """

    async def route(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            freeze_gc()
        if scope["type"] == "lifespan" or (
            scope["type"] == "http" and LIVE_PATHS.match(scope["path"])
        ):
            await live_app(scope, receive, send)
        else:
            await django_app(scope, receive, send)

    return route


os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
django.setup(set_prefix=False)  # before models are imported

import agentsite.urls  # noqa: E402, F401  # import all views before the garbage collector is tuned
from agentsite.gc_tuning import freeze_gc  # noqa: E402
from agentsite.threaded import ThreadedHandler  # noqa: E402
from runs.live.asgi import live_app  # noqa: E402

django_application = ThreadedHandler()

application = build_router(django_application, live_app)
