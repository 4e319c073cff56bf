"""Which network addresses a call may reach, whatever form they are written in.

An IPv6 address can carry an IPv4 address inside (mapped, compatible, NAT64, 6to4,
Teredo, ISATAP): each is looked at, so that no spelling of an inner address passes.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Literal, get_args

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

NetworkUse = Literal["provider", "tool", "mcp", "webhook"]
"""What a call is made for; `AGENTSITE_PRIVATE_HOSTS` is one list for each."""

NEVER_ALLOWED: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(net), "where clouds hand out credentials")
    for net in (
        "169.254.0.0/16",
        "168.63.129.16/32",
        "100.100.100.200/32",
        "192.0.0.192/32",
        "fd00:ec2::/32",
        "fd20:ce::/32",
    )
)
"""Metadata services; refused even when listed."""

NON_PUBLIC: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(net), word)
    for net, word in (
        ("0.0.0.0/8", "this machine"),
        ("10.0.0.0/8", "a private network"),
        ("100.64.0.0/10", "a carrier's inner network"),
        ("127.0.0.0/8", "this machine"),
        ("172.16.0.0/12", "a private network"),
        ("192.0.0.0/24", "reserved for protocols"),
        ("192.0.2.0/24", "reserved for examples"),
        ("192.88.99.0/24", "a 6to4 relay"),
        ("192.168.0.0/16", "a private network"),
        ("198.18.0.0/15", "reserved for measurements"),
        ("198.51.100.0/24", "reserved for examples"),
        ("203.0.113.0/24", "reserved for examples"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
        ("::/128", "this machine"),
        ("::1/128", "this machine"),
        ("64:ff9b:1::/48", "an inner NAT64 network"),
        ("2001::/23", "reserved for protocols"),
        ("2001:db8::/32", "reserved for examples"),
        ("3fff::/20", "reserved for examples"),
        ("fc00::/7", "a private network"),
        ("fe80::/10", "a private network"),
        ("fec0::/10", "a private network"),
        ("ff00::/8", "multicast"),
    )
)
"""Everything else that is not the public internet, and what it is."""

PUBLIC_V6 = (IPv6Network("2000::/3"), IPv6Network("64:ff9b::/96"))

HOST_ENTRY = re.compile(
    r"\[(?P<six>[^\]]+)\](?::(?P<port6>\d+))?|(?P<host>[^:\[\]]+)(?::(?P<port>\d+))?"
)
MAX_HOST_NAME = 253
HOST_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")


@dataclass(frozen=True)
class PrivateHost:
    """One entry of an operator's list: a network or a host name, and maybe one port."""

    network: Network | None = None
    name: str = ""
    port: int | None = None

    def covers(self, host: str, address: Address, port: int) -> bool:
        """Whether the entry allows `address`, found under the name `host`."""
        if self.port is not None and self.port != port:
            return False
        if self.network is None:
            return host == self.name
        return address.version == self.network.version and address in self.network


def parse_private_hosts(text: str) -> dict[NetworkUse, tuple[PrivateHost, ...]]:
    """Return the entries of each use named in `text`.

    A use holds for the entries behind it, up to the next use; `,` or `;` stands between
    them. An entry is a host name, an address or a CIDR network, a port behind it if
    only that port is meant; IPv6 with a port stands in brackets:
    `provider=127.0.0.1,[::1]:11434,ollama:11434;tool=10.0.0.0/8`.

    Raises `ValueError` with a sentence that names what cannot be read.
    """
    hosts: dict[NetworkUse, tuple[PrivateHost, ...]] = {}
    for group in text.split(";"):
        use: NetworkUse | None = None
        for part in filter(None, (one.strip() for one in group.split(","))):
            word, equals, entry = part.rpartition("=")
            use = _parse_use(word) if equals else use
            if use is None:
                raise ValueError(
                    f"{part!r} does not begin with provider=, tool=, mcp= or webhook=."
                )
            found = (_parse_host_entry(entry.strip()),) if entry.strip() else ()
            hosts[use] = (*hosts.get(use, ()), *found)
    return hosts


def _parse_use(word: str) -> NetworkUse | None:
    return next((one for one in get_args(NetworkUse) if one == word.strip()), None)


def _parse_host_entry(text: str) -> PrivateHost:
    network = _parse_network(text)
    if network is not None:
        return PrivateHost(network=network)
    match = HOST_ENTRY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a host, address or network like 10.0.0.0/8.")
    digits = match["port6"] or match["port"]
    port = None if digits is None else int(digits)
    if port is not None and not 0 < port < 65536:
        raise ValueError(f"{text!r} has no port between 1 and 65535.")
    host = match["six"] or match["host"]
    network = _parse_network(host)
    if network is not None:
        return PrivateHost(network=network, port=port)
    name = host.lower().rstrip(".")
    if match["six"] or "/" in name or not is_host_name(name):
        raise ValueError(f"{text!r} is not a host, address or network like 10.0.0.0/8.")
    return PrivateHost(name=name, port=port)


def _parse_network(text: str) -> Network | None:
    try:
        return ip_network(text)
    except ValueError:
        return None


def is_host_name(text: str) -> bool:
    """Whether a name server can be asked for `text`, given in small letters."""
    return len(text) <= MAX_HOST_NAME and HOST_NAME.fullmatch(text) is not None


def parse_ip_address(text: str) -> Address | None:
    """Return the address `text` spells in the usual way, None for anything else."""
    try:
        return ip_address(text)
    except ValueError:
        return None


def find_never_allowed_rule(address: Address) -> str | None:
    """Return why no list can allow `address`, None if one can."""
    return next(
        filter(
            None,
            (
                _find_rule(one, NEVER_ALLOWED)
                for one in iter_embedded_addresses(address)
            ),
        ),
        None,
    )


def find_non_public_rule(address: Address) -> str | None:
    """Return what `address` is if it is not on the public internet, else None."""
    if isinstance(address, IPv6Address):
        mapped = address.ipv4_mapped
        if mapped is None and not any(address in net for net in PUBLIC_V6):
            return _find_rule(address, NON_PUBLIC) or "not a public address"
    found = (_find_rule(one, NON_PUBLIC) for one in iter_embedded_addresses(address))
    return next(filter(None, found), None)


def unmap_ipv4(address: Address) -> Address:
    """Return the IPv4 address if `address` is only a mapped spelling of one."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def iter_embedded_addresses(address: Address) -> Iterator[Address]:
    """Yield `address` and every IPv4 address it carries inside."""
    yield address
    if isinstance(address, IPv4Address):
        return
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    number = int(address)
    low = IPv4Address(number & 0xFFFFFFFF)
    if number >> 32 in (0, 0x64FF9B << 64) and number > 0xFFFF:
        yield low  # `::/96` and NAT64
    if number >> 80 == 0x64FF9B0001:
        yield low
        yield IPv4Address((number >> 64 & 0xFFFF) << 16 | number >> 40 & 0xFFFF)
    if number >> 32 & 0xFCFFFFFF == 0x5EFE:
        yield low  # ISATAP


def _find_rule(address: Address, table: tuple[tuple[Network, str], ...]) -> str | None:
    for network, word in table:
        if network.version == address.version and address in network:
            return word
    return None
