"""Searching the web by the service that the operator set up.

`AGENTSITE_WEB_SEARCH` names it: `searxng=https://search.example.org`, `brave` or
`tavily`; the last two need `AGENTSITE_WEB_SEARCH_KEY`. An address behind the name is
asked instead of the service's own. Formats: https://docs.searxng.org/dev/search_api.html,
https://api-dashboard.search.brave.com, https://docs.tavily.com.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from ipaddress import ip_network
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.conf import settings

from tools.addresses import PrivateHost, read_address
from tools.errors import ToolFailed
from tools.exchange import Answered, Asked, exchange
from tools.netguard import NetPolicy
from tools.outbound import policy_of
from tools.registry import ToolContext, tool
from tools.watch import Watch

MAX_RESULTS = 20
MAX_SNIPPET = 500
"""Characters of one result's text."""


class NoSearch(ToolFailed):
    """The operator has set up none."""

    def __init__(self) -> None:
        super().__init__(
            "No web search is set up here. The operator names one in "
            "AGENTSITE_WEB_SEARCH: searxng=ADDRESS, brave or tavily."
        )


class SearchRefused(ToolFailed):
    """The service answered, but not with results."""

    def __init__(self, answered: Answered, why: str) -> None:
        told = f": {why}" if why else ""
        super().__init__(
            f"The web search at {answered.where} answered {answered.status}{told}."
        )


@dataclass(frozen=True)
class Search:
    """A service, where it is, and the key to it."""

    kind: str
    url: str
    key: str = field(default="", repr=False)


@tool(effect="read", timeout=20, keeps_hosts=True)
def web_search(
    query: str, context: ToolContext, limit: int = 8
) -> list[dict[str, str]]:
    """Search the web and return titles, addresses and a piece of each page's text.

    Args:
        query: Words to look for.
        limit: How many results, 1 to 20.
    """
    search = search_of(settings.WEB_SEARCH, settings.WEB_SEARCH_KEY)
    if search is None:
        raise NoSearch
    policy = policy_for(search, policy_of(only_hosts=context.hosts))
    return ask(search, query, limit, watch=context.watch, policy=policy)


def search_of(text: str, key: str = "") -> Search | None:
    """Return the service that `text` names, None for no text.

    Raise `ValueError` with the rest of a sentence where it is wrong.
    """
    kind, _, url = (part.strip() for part in text.partition("="))
    if not kind:
        return None
    if kind not in SERVICES:
        raise ValueError(f"{kind!r} is none of {', '.join(SERVICES)}")
    service = SERVICES[kind]
    url = url or service.url
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{kind} needs its address, as {kind}=https://search.example")
    if service.url and not key:
        raise ValueError(f"{kind} needs a key in AGENTSITE_WEB_SEARCH_KEY")
    return Search(kind, url.rstrip("/"), key)


def policy_for(search: Search, policy: NetPolicy) -> NetPolicy:
    """Let calls go to the very host and port that the operator named."""
    parts = urlsplit(search.url)
    host = parts.hostname or ""
    address = read_address(host)
    port = parts.port or {"https": 443}.get(parts.scheme, 80)
    named = (
        PrivateHost(name=host, port=port)
        if address is None
        else PrivateHost(network=ip_network(address), port=port)
    )
    return replace(policy, private_hosts=(*policy.private_hosts, named))


def ask(
    search: Search, query: str, limit: int, *, watch: Watch, policy: NetPolicy
) -> list[dict[str, str]]:
    """Ask the service and return title, url and text of each result."""
    limit = min(max(limit, 1), MAX_RESULTS)
    service = SERVICES[search.kind]
    answered = exchange(
        service.request(search, query, limit), policy=policy, watch=watch
    )
    try:
        told = answered.json()
    except ToolFailed:
        raise SearchRefused(answered, service.hint) from None
    if answered.status != 200 or not isinstance(told, dict):
        why = in_a_line(covered(service.reason(told), search.key)) or service.hint
        raise SearchRefused(answered, why)
    rows = service.rows(told)
    return [
        row_of(one, service.text, key=search.key)
        for one in (rows if isinstance(rows, list) else [])[:limit]
        if isinstance(one, dict)
    ]


def row_of(one: dict[str, Any], text: str, *, key: str) -> dict[str, str]:
    """Return one result in our words, and without the key, which a server may echo."""
    names = {"title": "title", "url": "url", "text": text}
    values = {ours: str(one.get(theirs) or "") for ours, theirs in names.items()}
    values["text"] = " ".join(values["text"].split())[:MAX_SNIPPET]
    return {name: covered(value, key) for name, value in values.items()}


def covered(text: str, key: str) -> str:
    """Return `text` without the key."""
    return text.replace(key, "[secret]") if key else text


def in_a_line(reason: str) -> str:
    """Return the beginning of a reason, without its full stop."""
    return " ".join(reason.split())[:300].rstrip(".")


def ask_searxng(search: Search, query: str, limit: int) -> Asked:
    """Return the request in the format of SearXNG."""
    return Asked(f"{search.url}/search?{urlencode({'q': query, 'format': 'json'})}")


def ask_brave(search: Search, query: str, limit: int) -> Asked:
    """Return the request in the format of the Brave Search API."""
    given = urlencode({"q": query[:400], "count": limit})
    headers = {"accept": "application/json", "x-subscription-token": search.key}
    return Asked(f"{search.url}/res/v1/web/search?{given}", headers=headers)


def ask_tavily(search: Search, query: str, limit: int) -> Asked:
    """Return the request in the format of Tavily."""
    headers = {
        "authorization": f"Bearer {search.key}",
        "content-type": "application/json",
    }
    body = json.dumps({"query": query, "max_results": limit}).encode()
    return Asked(f"{search.url}/search", "POST", headers, body)


def reason_of(told: Any, *path: str) -> str:
    """Return the text at `path` in a refusal, or nothing."""
    for name in path:
        told = told.get(name) if isinstance(told, dict) else None
    return told if isinstance(told, str) else ""


@dataclass(frozen=True)
class Service:
    """How one service is asked and understood."""

    request: Callable[[Search, str, int], Asked]
    rows: Callable[[dict[str, Any]], Any]
    reason: Callable[[Any], str]
    text: str
    """Name of the field that holds a piece of the page."""
    url: str = ""
    """Its usual address; one that has none needs no key."""
    hint: str = ""
    """What may be wrong where it says nothing."""


SERVICES: dict[str, Service] = {
    "searxng": Service(
        request=ask_searxng,
        rows=lambda told: told.get("results"),
        reason=lambda told: reason_of(told, "message"),
        text="content",
        hint="its settings must allow the format json",
    ),
    "brave": Service(
        request=ask_brave,
        rows=lambda told: (told.get("web") or {}).get("results"),
        reason=lambda told: reason_of(told, "error", "detail"),
        text="description",
        url="https://api.search.brave.com",
    ),
    "tavily": Service(
        request=ask_tavily,
        rows=lambda told: told.get("results"),
        reason=lambda told: reason_of(told, "detail", "error"),
        text="content",
        url="https://api.tavily.com",
    ),
}
