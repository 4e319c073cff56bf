"""One guarded POST to an address that a person typed, and what came of it."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import httpx

from runs.engine.clean import clean_text
from tools.addresses import Use
from tools.errors import Interrupted, ToolFailed
from tools.netguard import AddressRefused, NetPolicy, open_client
from tools.outbound import policy_of
from tools.watch import Watch

USE: Use = "webhook"
SECONDS = 10.0
"""One attempt, all in all."""
BODY_SECONDS = 2.0
"""For the text of an answer whose status is known already."""
MOST_BYTES = 4_096
"""Of an answer that are read."""
KEPT = 500
"""Characters of an answer that are kept."""
NO_LIMIT = 2**60
"""The rest of an answer is not read; so its length does not matter."""
PLAIN = {
    "content-type": "application/json",
    "accept": "*/*",
    "accept-encoding": "identity",
    "user-agent": "agentsite",
    "connection": "close",
}


@dataclass(frozen=True)
class Posted:
    """What came of one attempt."""

    seconds: float
    answered: int | None = None
    """The HTTP status; None where there was no answer."""
    answer: str = ""
    """The beginning of the answer's text."""
    error: str = ""
    """A sentence; empty where the message was taken."""
    is_final: bool = False
    """Whether the same would fail again."""


def webhook_policy() -> NetPolicy:
    """Return where webhooks may be: public addresses, and what the operator listed."""
    return policy_of(USE)


def post_delivery(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    policy: NetPolicy,
    seconds: float = SECONDS,
) -> Posted:
    """POST `body` once and say what came of it; redirects are not followed.

    Any 2xx counts as taken, whatever becomes of the rest of the answer.
    """
    watch = Watch(seconds=seconds)
    try:
        target = httpx.URL(url)
        if target.scheme not in ("http", "https") or not target.host:
            raise AddressRefused(url, "it is no http or https address")
        status, answer = _exchange(target, body, headers, policy=policy, watch=watch)
    except (AddressRefused, httpx.InvalidURL) as error:
        return Posted(watch.elapsed(), error=clean_text(str(error)), is_final=True)
    except (Interrupted, httpx.TimeoutException):
        return Posted(watch.elapsed(), error=f"No answer within {seconds:g} s.")
    except httpx.ConnectError as error:
        return Posted(watch.elapsed(), error=clean_text(f"No connection: {error}."))
    except httpx.HTTPError as error:
        said = f"The connection broke before the answer: {error}."
        return Posted(watch.elapsed(), error=clean_text(said))
    except ToolFailed as error:
        return Posted(watch.elapsed(), error=clean_text(str(error)))
    return Posted(watch.elapsed(), status, answer, _flaw_of(status))


def _flaw_of(status: int) -> str:
    """Return why an answer is no success; empty where it is."""
    if 200 <= status < 300:
        return ""
    if 300 <= status < 400:
        return (
            f"It answered {status}: it is somewhere else. Redirects are not followed; "
            "write the new address down here."
        )
    return f"It answered {status}."


class _Answer(NamedTuple):
    status: int
    text: str


def _exchange(
    url: httpx.URL,
    body: bytes,
    headers: Mapping[str, str],
    *,
    policy: NetPolicy,
    watch: Watch,
) -> _Answer:
    lines = {**PLAIN, **headers}.items()
    head = b"".join(f"{name}: {value}\r\n".encode() for name, value in lines)
    client = open_client(policy, timeout=watch.left() or SECONDS, max_bytes=NO_LIMIT)
    answer: _Answer | None = None
    try:
        with client.exchange(url, head, body, watch=watch) as got:
            answer = _Answer(got.status, _beginning(got.chunks, watch))
    except (Interrupted, httpx.HTTPError):
        if answer is None:  # else only the rest of it did not come
            raise
    finally:
        client.close()
    assert answer is not None
    return answer


def _beginning(chunks: Iterable[bytes], watch: Watch) -> str:
    """Return the beginning of an answer's text, as much as comes in little time."""
    until = time.monotonic() + BODY_SECONDS
    watch.deadline = min(until, watch.deadline or until)
    found = b""
    try:
        for chunk in chunks:
            found += chunk
            if len(found) >= MOST_BYTES:
                break
    except (Interrupted, ToolFailed, httpx.HTTPError):
        pass  # the status is known, and that is what counts
    text = found[:MOST_BYTES].decode("utf-8", "replace")
    return clean_text(text.strip())[:KEPT]
