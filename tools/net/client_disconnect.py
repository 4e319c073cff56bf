"""How a view learns that the client of its request has left."""

import threading
from collections.abc import Callable
from typing import Any

SCOPE_KEY = "agentsite.watch_disconnect"
"""Where the server puts a function that starts watching, in the scope of a request."""


def watch_disconnect(request: Any) -> threading.Event:
    """Return an event that is set when the client of `request` disconnects.

    It is never set by servers that do not notice.
    """
    watch: Callable[[], threading.Event] | None
    watch = getattr(request, "scope", {}).get(SCOPE_KEY)
    return watch() if watch else threading.Event()
