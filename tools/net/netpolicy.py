"""`NetPolicy`: where calls of one use may go.

AddressRefused         the policy does not allow this address (a `ToolFailed`)
AnswerRefused          the answer is not taken in (a `ToolFailed`)
  AnswerTooLarge       it has too many bytes
"""

import errno
import socket
from dataclasses import dataclass
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from tools.errors import ToolFailed
from tools.net.addresses import (
    Address,
    NetworkUse,
    PrivateHost,
    find_never_allowed_rule,
    find_non_public_rule,
    is_host_name,
    parse_ip_address,
    unmap_ipv4,
)

METADATA_NAMES = ("metadata.google.internal", "metadata.goog", "metadata")


class AddressRefused(ToolFailed):
    """The policy does not allow a call to this address."""

    def __init__(self, host: str, rule: str) -> None:
        self.host = host
        super().__init__(f"Calls to {host!r} are not allowed: {rule}.")


class ResponseRefused(ToolFailed):
    """The answer is not taken in."""


class ResponseTooLarge(ResponseRefused):
    """The answer has more bytes than the client takes in."""

    def __init__(self, host: str, limit: int) -> None:
        super().__init__(f"The answer of {host!r} is larger than {limit:,} bytes.")


@dataclass(frozen=True)
class NetPolicy:
    """Where calls of one use may go, beyond the public internet."""

    use: NetworkUse = "tool"
    private_hosts: tuple[PrivateHost, ...] = ()
    """What is allowed although it is not public; metadata addresses never are."""
    own_ports: frozenset[int] = frozenset()
    """Ports of this application; refused on every address of this machine."""
    only_hosts: tuple[str, ...] | None = None
    """If set, the only host names that may be called; `*.example.com`: all below."""

    def check_host(self, host: str) -> None:
        """Raise `AddressRefused` if `host` may not be looked up.

        It is not a name at all, a metadata service, or not among the only hosts.
        """
        if host in METADATA_NAMES:
            raise AddressRefused(host, "clouds hand out credentials there")
        if parse_ip_address(host) is None and not is_host_name(host):
            raise AddressRefused(host, "it is not a host name")
        if self.only_hosts is None:
            return
        for allowed in self.only_hosts:
            name = allowed.lower()
            if host == name or (name.startswith("*.") and host.endswith(name[1:])):
                return
        raise AddressRefused(host, "it is not among the hosts this tool may call")

    def check_url(self, url: str) -> None:
        """Raise `AddressRefused` if a call to `url` can never be allowed.

        Nothing is asked of a name server: this is for saving a definition, so that a
        metadata service or this application itself is refused before any call.
        """
        host, address, port = parse_url_target(url)
        if host in METADATA_NAMES:
            raise AddressRefused(host, "clouds hand out credentials there")
        if address is None:
            return
        word = find_never_allowed_rule(address)
        if word is not None:
            raise AddressRefused(host, f"{address} is an address {word}")
        if port in self.own_ports and _is_local_address(unmap_ipv4(address)):
            raise AddressRefused(host, f"port {port} is this application's own")

    def check_address(self, host: str, address: Address, port: int) -> None:
        """Raise `AddressRefused` if a call to `address` is not allowed."""
        word = find_never_allowed_rule(address)
        if word is not None:
            raise AddressRefused(host, f"{address} is an address {word}")
        if port in self.own_ports and _is_local_address(address):
            raise AddressRefused(host, f"port {port} is this application's own")
        word = find_non_public_rule(address)
        if word is None:
            return
        inner = unmap_ipv4(address)
        if not any(one.covers(host, inner, port) for one in self.private_hosts):
            raise AddressRefused(
                host,
                f"{inner} is not public ({word}); an operator can allow it with "
                f"AGENTSITE_PRIVATE_HOSTS={self.use}={host}:{port}",
            )


class UrlTarget(NamedTuple):
    """Where a URL leads, as far as it says so itself."""

    host: str
    address: Address | None
    """None for a name, which only a name server can resolve."""
    port: int


def parse_url_target(url: str) -> UrlTarget:
    """Return where `url` leads, without a look-up."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower().rstrip(".")
    address = (
        ip_address("127.0.0.1") if host == "localhost" else parse_spelled_address(host)
    )
    return UrlTarget(host, address, parts.port or {"https": 443}.get(parts.scheme, 80))


def parse_spelled_address(host: str) -> Address | None:
    """Return the address a host spells, also in the old ways; None for a name."""
    address = parse_ip_address(host)
    if address is not None:
        return address
    try:
        return ip_address(socket.inet_aton(host)) if host else None
    except (OSError, ValueError):
        return None


def _is_local_address(address: Address) -> bool:
    """Whether this machine has `address`: then, and only then, it can be bound."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError as error:
        return error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
    return True
