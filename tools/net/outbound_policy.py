"""Where calls of tools may go, as the operator set it."""

from collections.abc import Sequence
from functools import cache

from django.conf import settings

from tools.net.addresses import NetworkUse, PrivateHost
from tools.net.netguard import NetPolicy, parse_private_hosts


def get_net_policy(
    use: NetworkUse = "tool", *, only_hosts: Sequence[str] | None = None
) -> NetPolicy:
    """Return the policy of one use: public addresses, and what the operator listed."""
    return NetPolicy(
        use=use,
        private_hosts=_parse_cached_hosts(settings.PRIVATE_HOSTS).get(use, ()),
        own_ports=frozenset(settings.OWN_PORTS),
        only_hosts=tuple(only_hosts) if only_hosts else None,
    )


@cache
def _parse_cached_hosts(text: str) -> dict[NetworkUse, tuple[PrivateHost, ...]]:
    return parse_private_hosts(text)
