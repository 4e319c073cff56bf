"""One guarded POST to a user-supplied URL, and its result."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import httpx

from runs.engine.parsing.clean import clean_text
from tools.errors import Interrupted, ToolFailed
from tools.net.addresses import NetworkUse
from tools.net.deadline import Deadline
from tools.net.netguard import AddressRefused, NetPolicy, open_client
from tools.net.outbound_policy import get_net_policy
from tools.net.web_address import parse_web_url

USE: NetworkUse = "webhook"
TIMEOUT_SECONDS = 10.0
"""Timeout of one attempt in total."""
BODY_TIMEOUT_SECONDS = 2.0
"""Timeout of a response body whose status is known already."""
MAX_RESPONSE_BYTES = 4_096
"""Bytes of a response to read."""
MAX_STORED_CHARS = 500
"""Characters of a response to store."""
NO_LIMIT = 2**60
"""The rest of a response is not read, so its length does not matter."""
DEFAULT_HEADERS = {
    "content-type": "application/json",
    "accept": "*/*",
    "accept-encoding": "identity",
    "user-agent": "agentsite",
    "connection": "close",
}


@dataclass(frozen=True)
class PostResult:
    seconds: float
    response_status: int | None = None
    """The HTTP status; None without a response."""
    response_text: str = ""
    """The beginning of the response body."""
    error: str = ""
    """A message; empty if the event was delivered."""
    is_final: bool = False
    """Whether another attempt would fail the same way."""


def get_webhook_net_policy() -> NetPolicy:
    """Return where webhooks may be: public addresses, and those in the settings."""
    return get_net_policy(USE)


def post_delivery(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    policy: NetPolicy,
    seconds: float = TIMEOUT_SECONDS,
) -> PostResult:
    """POST `body` once and return the result; redirects are not followed.

    Any 2xx is a success, even if the rest of the response fails.
    """
    deadline = Deadline(seconds=seconds)
    try:
        target = parse_web_url(url)
        if target.scheme not in ("http", "https") or not target.host:
            raise AddressRefused(url, "it is not an HTTP or HTTPS URL")
        status, answer = _exchange(
            target, body, headers, policy=policy, deadline=deadline
        )
    except (AddressRefused, httpx.InvalidURL) as error:
        return PostResult(
            deadline.elapsed(), error=clean_text(str(error)), is_final=True
        )
    except (Interrupted, httpx.TimeoutException):
        return PostResult(
            deadline.elapsed(), error=f"No response within {seconds:g} s."
        )
    except httpx.ConnectError as error:
        return PostResult(
            deadline.elapsed(), error=clean_text(f"Connection failed: {error}.")
        )
    except httpx.HTTPError as error:
        said = f"The connection was lost before a response: {error}."
        return PostResult(deadline.elapsed(), error=clean_text(said))
    except ToolFailed as error:
        return PostResult(deadline.elapsed(), error=clean_text(str(error)))
    return PostResult(deadline.elapsed(), status, answer, _describe_failure(status))


def _describe_failure(status: int) -> str:
    """Return why a response is not a success; empty if it is."""
    if 200 <= status < 300:
        return ""
    if 300 <= status < 400:
        return (
            f"The server responded with {status}, a redirect. Redirects are not "
            "followed. Enter the new URL."
        )
    return f"The server responded with {status}."


class _Response(NamedTuple):
    status: int
    text: str


def _exchange(
    url: httpx.URL,
    body: bytes,
    headers: Mapping[str, str],
    *,
    policy: NetPolicy,
    deadline: Deadline,
) -> _Response:
    lines = {**DEFAULT_HEADERS, **headers}.items()
    head = b"".join(f"{name}: {value}\r\n".encode() for name, value in lines)
    client = open_client(
        policy, timeout=deadline.remaining() or TIMEOUT_SECONDS, max_bytes=NO_LIMIT
    )
    answer: _Response | None = None
    try:
        with client.exchange(url, head, body, deadline=deadline) as got:
            answer = _Response(got.status, _read_beginning(got.chunks, deadline))
    except (Interrupted, httpx.HTTPError):
        if answer is None:  # else only the rest of the body is missing
            raise
    finally:
        client.close()
    assert answer is not None
    return answer


def _read_beginning(chunks: Iterable[bytes], deadline: Deadline) -> str:
    """Return the beginning of a response body, as much as arrives in time."""
    until = time.monotonic() + BODY_TIMEOUT_SECONDS
    deadline.ends_at = min(until, deadline.ends_at or until)
    found = b""
    try:
        for chunk in chunks:
            found += chunk
            if len(found) >= MAX_RESPONSE_BYTES:
                break
    except (Interrupted, ToolFailed, httpx.HTTPError):
        pass  # the status is known, which is enough
    text = found[:MAX_RESPONSE_BYTES].decode("utf-8", "replace")
    return clean_text(text.strip())[:MAX_STORED_CHARS]
