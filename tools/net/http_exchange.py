"""One guarded HTTP exchange of a tool, with a sentence for whatever goes wrong."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from tools.errors import ToolFailed
from tools.http_answer import text_of_body
from tools.netguard import NetPolicy, guarded_client
from tools.sockets import Resolve
from tools.watch import Watch

PATIENCE = 30.0
"""Seconds without a byte."""


class NoExchange(ToolFailed):
    """The server could not be asked, or gave no whole answer."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"Cannot get an answer from {where}: {why}.")


class NotJsonAnswer(ToolFailed):
    """The server answered something else than JSON."""

    def __init__(self, where: str, content_type: str) -> None:
        what = content_type.partition(";")[0].strip() or "an unnamed type"
        super().__init__(f"{where} answered with {what} instead of JSON.")


@dataclass(frozen=True)
class Asked:
    """A request as it will be sent."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    content: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Answered:
    """A whole answer, redirects followed."""

    status: int
    headers: Mapping[str, str]
    """Names in small letters."""
    body: bytes
    where: str
    """Scheme, host and port of the server that was asked."""

    @property
    def text(self) -> str:
        """The body as text, whatever its encoding claims."""
        return text_of_body(self.body, self.content_type)

    @property
    def content_type(self) -> str:
        """The header's value, or nothing."""
        return self.headers.get("content-type", "")

    def json(self) -> Any:
        """Return the parsed body; raise `NotJsonAnswer`."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise NotJsonAnswer(self.where, self.content_type) from None


def exchange(
    asked: Asked,
    *,
    policy: NetPolicy,
    watch: Watch,
    max_bytes: int = 1 << 20,
    resolve: Resolve | None = None,
) -> Answered:
    """Send one request and return the whole answer, of any status.

    Raise `ToolFailed` with a sentence, or `Interrupted` when `watch` ends it.
    """
    where = place_of(asked.url)
    with (
        guarded_client(
            policy, watch, timeout=PATIENCE, max_bytes=max_bytes, resolve=resolve
        ) as client,
        _told(where),
    ):
        response = client.request(
            asked.method, asked.url, headers=dict(asked.headers), content=asked.content
        )
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Answered(response.status_code, headers, response.content, where)


def place_of(url: str) -> str:
    """Return scheme, host and port; raise `NoExchange` where `url` has none."""
    try:
        parts = httpx.URL(url)
    except (httpx.InvalidURL, ValueError) as error:
        raise NoExchange(repr(url[:200]), f"this is no address ({error})") from None
    if parts.scheme not in ("http", "https") or not parts.host:
        raise NoExchange(repr(url[:200]), "an address begins with https:// and a host")
    return f"{parts.scheme}://{parts.netloc.decode()}"


@contextmanager
def _told(where: str) -> Iterator[None]:
    try:
        yield
    except httpx.ConnectTimeout:
        raise NoExchange(where, "no server answers there") from None
    except httpx.ConnectError as error:
        raise NoExchange(where, f"no connection ({error or 'refused'})") from None
    except httpx.TimeoutException:
        raise NoExchange(where, f"it sent nothing for {PATIENCE:g} s") from None
    except httpx.LocalProtocolError as error:
        raise NoExchange(where, f"the request cannot be sent ({error})") from None
    except (httpx.HTTPError, UnicodeError) as error:
        raise NoExchange(where, f"the exchange broke ({error})") from None
