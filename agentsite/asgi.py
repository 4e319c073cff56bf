"""The ASGI application: Django, with the live streams beside it."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import django
from django.conf import settings

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def build_router(
    django_app: App, live_app: App, find_hung: Callable[[], list[str]] = list
) -> App:
    """Send the paths of live streams to `live_app`, everything else to Django.

    `live_app` also gets the lifespan events, which start and stop its hub. `/livez` is
    answered here: it must work while every thread waits for the database.
    """

    async def route(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await serve_lifespan(live_app, scope, receive, send)
        elif scope["type"] == "http" and scope["path"] == "/livez":
            await send_liveness(send, is_alive=not find_hung())
        elif scope["type"] == "http" and scope["path"].startswith("/live/"):
            await live_app(scope, receive, send)
        else:
            await django_app(scope, receive, send)

    return route


async def serve_lifespan(
    live_app: App, scope: Scope, receive: Receive, send: Send
) -> None:
    """Watch the event loop from the server's start to its end."""
    freeze_gc()
    ticking = asyncio.create_task(loop_clock.keep_ticking())
    start_watchdog(find_hung_parts)
    try:
        await live_app(scope, receive, send)
    finally:
        ticking.cancel()


async def send_liveness(send: Send, *, is_alive: bool) -> None:
    body = b'{"status": "ok"}' if is_alive else b'{"status": "hung"}'
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    status = 200 if is_alive else 503
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class LoopClock:
    """When the event loop last had a turn."""

    def __init__(self) -> None:
        self.last_tick: float | None = None

    async def keep_ticking(self) -> None:
        try:
            while True:
                self.last_tick = time.monotonic()
                await asyncio.sleep(1)
        finally:
            self.last_tick = None  # the server ends, which may take a while

    @property
    def seconds_without_progress(self) -> float:
        last = self.last_tick
        return 0.0 if last is None else time.monotonic() - last


loop_clock = LoopClock()


os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
django.setup(set_prefix=False)  # before models are imported

import agentsite.urls  # noqa: E402, F401  # import all views before the garbage collector is tuned
from agentsite.gc_tuning import freeze_gc  # noqa: E402
from agentsite.threaded import ThreadedHandler  # noqa: E402
from agentsite.watchdog import start_watchdog  # noqa: E402
from runs.live.asgi import live_app  # noqa: E402

django_application = ThreadedHandler()


def find_hung_parts() -> list[str]:
    """Return the parts of this web server that make no progress.

    A request may wait for the database for half a minute, so its threads get longer.
    """
    limit = settings.HANG_SECONDS
    parts = {
        "the event loop": loop_clock.seconds_without_progress > limit,
        "the pool of request threads": (
            django_application.threads.seconds_without_progress > 2 * limit
        ),
    }
    return [name for name, is_hung in parts.items() if is_hung]


application = build_router(django_application, live_app, find_hung_parts)
