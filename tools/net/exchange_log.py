"""What the HTTP exchange of one call did, for a person who tests a tool."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import responses
from typing import Any

from tools.net.http_exchange import Response
from tools.text.storable import replace_unstorable

PHASES = {
    "connection.connect_tcp": "connect",
    "connection.start_tls": "tls",
    "http11.receive_response_headers": "waiting",
    "http11.receive_response_body": "download",
}
"""The phase that each of httpcore's operations belongs to."""

MAX_SHOWN = 100_000
"""Characters of a body that are kept."""


@dataclass
class ExchangeLog:
    """The last response of a call, without the tool's secret, and where time went.

    Redirects add to the same phases. A call that sends no HTTP request leaves it empty.
    """

    phases: dict[str, float] = field(default_factory=dict)
    """Seconds by phase, in the order in which they began."""
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    byte_count: int = 0
    status_line: str = ""
    """The status with its usual phrase, such as `404 Not Found`."""
    _started: dict[str, float] = field(default_factory=dict)

    def trace(self, event: str, details: dict[str, Any]) -> None:
        """Take what httpcore reports under its extension `trace`."""
        operation, _separator, moment = event.rpartition(".")
        phase = PHASES.get(operation)
        if phase is None:
            return
        now = time.perf_counter()
        if moment == "started":
            self._started[phase] = now
        elif phase in self._started:
            took = now - self._started.pop(phase)
            self.phases[phase] = self.phases.get(phase, 0.0) + took

    def record(self, response: Response, mask: Callable[[str], str]) -> None:
        """Keep the response as a person may see it."""
        self.status = response.status
        phrase = responses.get(response.status, "")
        self.status_line = f"{response.status} {phrase}".rstrip()
        self.headers = tuple(
            (name, replace_unstorable(mask(value)))
            for name, value in response.headers.items()
        )
        self.body = mask(response.text)[:MAX_SHOWN]
        self.byte_count = len(response.body)
