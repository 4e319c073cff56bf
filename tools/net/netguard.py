"""Guarded HTTP: every call out of the machine goes through the clients made here.

A name is resolved once, every address found is checked, and the connection goes to the
checked address. Whatever blocks checks the call's `Deadline` every 0.5 seconds.
"""

import ssl

import httpx

from tools.net.addresses import NetworkUse, PrivateHost, parse_private_hosts
from tools.net.deadline import Deadline
from tools.net.keepalive_client import KeepAliveClient
from tools.net.netpolicy import (
    AddressRefused,
    NetPolicy,
    ResponseRefused,
    ResponseTooLarge,
)
from tools.net.sockets import (
    CONNECT_SECONDS,
    GuardedBackend,
    Resolver,
    resolve_by_system,
    shared_ssl_context,
)
from tools.net.transport import GuardedTransport

__all__ = [
    "AddressRefused",
    "ResponseRefused",
    "ResponseTooLarge",
    "NetPolicy",
    "PrivateHost",
    "KeepAliveClient",
    "NetworkUse",
    "GuardedClient",
    "guarded_client",
    "open_client",
    "parse_private_hosts",
    "shared_ssl_context",
]

MAX_BYTES = 20 * 1024 * 1024
"""Bytes of one answer, headers apart, also after decompression."""

MAX_REDIRECTS = 5


class GuardedClient(httpx.Client):
    """A client for one thread at a time."""

    guard: GuardedBackend
    """Its `deadline` may be replaced between calls."""


def guarded_client(
    policy: NetPolicy,
    deadline: Deadline,
    *,
    timeout: float,
    ssl_context: ssl.SSLContext | None = None,
    max_bytes: int = MAX_BYTES,
    redirects: int = MAX_REDIRECTS,
    resolve: Resolver | None = None,
) -> GuardedClient:
    """Return a client for one thread whose every call obeys `policy` and `deadline`.

    `timeout` is in seconds without a byte; the total time is the watch's. Redirects are
    followed by the guard itself. Calls raise `AddressRefused`, `AnswerRefused`,
    `tools.errors.Interrupted`, or `httpx.HTTPError`.
    """
    guard = GuardedBackend(policy, deadline, resolve or resolve_by_system)
    transport = GuardedTransport(
        guard,
        ssl_context=ssl_context or shared_ssl_context(),
        max_bytes=max_bytes,
        redirects=redirects,
    )
    client = GuardedClient(
        transport=transport,
        trust_env=False,
        follow_redirects=False,
        timeout=httpx.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)),
        headers={"accept-encoding": "gzip, deflate", "user-agent": "agentsite"},
    )
    client.guard = guard
    return client


def open_client(
    policy: NetPolicy,
    *,
    timeout: float,
    ssl_context: ssl.SSLContext | None = None,
    max_bytes: int = MAX_BYTES,
    resolve: Resolver | None = None,
) -> KeepAliveClient:
    """Return a small client, kept for several calls, each under a watch of its own."""
    return KeepAliveClient(
        GuardedBackend(policy, Deadline(), resolve or resolve_by_system),
        ssl_context=ssl_context,
        timeout=timeout,
        max_bytes=max_bytes,
    )
