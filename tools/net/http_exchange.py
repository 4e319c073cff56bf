"""One guarded HTTP exchange of a tool, with a sentence for whatever goes wrong."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from tools.errors import ToolFailed
from tools.net.deadline import Deadline
from tools.net.http_response import decode_body
from tools.net.netguard import NetPolicy, guarded_client
from tools.net.sockets import Resolver
from tools.net.web_address import parse_web_url

EXCHANGE_TIMEOUT = 30.0
"""Seconds without a byte."""


class ExchangeFailed(ToolFailed):
    """The server could not be asked, or gave no whole answer."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"Cannot get an answer from {where}: {why}.")


class NotJsonResponse(ToolFailed):
    """The server answered something else than JSON."""

    def __init__(self, where: str, content_type: str) -> None:
        what = content_type.partition(";")[0].strip() or "an unnamed type"
        super().__init__(f"{where} answered with {what} instead of JSON.")


@dataclass(frozen=True)
class Request:
    """A request as it will be sent."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    content: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Response:
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
        return decode_body(self.body, self.content_type)

    @property
    def content_type(self) -> str:
        """The header's value, or nothing."""
        return self.headers.get("content-type", "")

    def json(self) -> Any:
        """Return the parsed body; raise `NotJsonAnswer`."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise NotJsonResponse(self.where, self.content_type) from None


def send_request(
    asked: Request,
    *,
    policy: NetPolicy,
    deadline: Deadline,
    max_bytes: int = 1 << 20,
    resolve: Resolver | None = None,
    trace: Callable[[str, dict[str, Any]], None] | None = None,
) -> Response:
    """Send one request and return the whole answer, of any status.

    `trace` is given httpcore's events. Raise `ToolFailed` with a sentence, or
    `Interrupted` when `deadline` ends it.
    """
    where = get_url_origin(asked.url)
    with (
        guarded_client(
            policy,
            deadline,
            timeout=EXCHANGE_TIMEOUT,
            max_bytes=max_bytes,
            resolve=resolve,
        ) as client,
        _translate_errors(where),
    ):
        response = client.request(
            asked.method,
            asked.url,
            headers=dict(asked.headers),
            content=asked.content,
            extensions={} if trace is None else {"trace": trace},
        )
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Response(response.status_code, headers, response.content, where)


def get_url_origin(url: str) -> str:
    """Return scheme, host and port; raise `ExchangeFailed` if `url` has none."""
    try:
        parts = parse_web_url(url)
    except httpx.InvalidURL as error:
        raise ExchangeFailed(
            repr(url[:200]), f"this is not an address ({error})"
        ) from None
    if parts.scheme not in ("http", "https") or not parts.host:
        raise ExchangeFailed(
            repr(url[:200]), "an address begins with https:// and a host"
        )
    return f"{parts.scheme}://{parts.netloc.decode()}"


@contextmanager
def _translate_errors(where: str) -> Iterator[None]:
    try:
        yield
    except httpx.ConnectTimeout:
        raise ExchangeFailed(where, "no server answers there") from None
    except httpx.ConnectError as error:
        raise ExchangeFailed(where, f"no connection ({error or 'refused'})") from None
    except httpx.TimeoutException:
        raise ExchangeFailed(
            where, f"it sent nothing for {EXCHANGE_TIMEOUT:g} s"
        ) from None
    except httpx.LocalProtocolError as error:
        raise ExchangeFailed(where, f"the request cannot be sent ({error})") from None
    except (httpx.HTTPError, UnicodeError) as error:
        raise ExchangeFailed(where, f"the exchange broke ({error})") from None
