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

from tools.errors import ToolFailed
from tools.net.addresses import PrivateHost, parse_ip_address
from tools.net.deadline import Deadline
from tools.net.http_exchange import Request, Response, send_request
from tools.net.netguard import NetPolicy
from tools.net.outbound_policy import get_net_policy
from tools.registry import ToolContext, tool

MAX_RESULTS = 20
MAX_SNIPPET = 500
"""Characters of one result's text."""


class SearchNotConfigured(ToolFailed):
    """The operator has set up none."""

    def __init__(self) -> None:
        super().__init__(
            "No web search is set up here. The operator names one in "
            "AGENTSITE_WEB_SEARCH: searxng=ADDRESS, brave or tavily."
        )


class SearchRefused(ToolFailed):
    """The service answered, but not with results."""

    def __init__(self, answered: Response, why: str) -> None:
        message = f": {why}" if why else ""
        super().__init__(
            f"The web search at {answered.where} answered {answered.status}{message}."
        )


@dataclass(frozen=True)
class SearchSettings:
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
    search = parse_search_settings(settings.WEB_SEARCH, settings.WEB_SEARCH_KEY)
    if search is None:
        raise SearchNotConfigured
    policy = build_search_policy(search, get_net_policy(only_hosts=context.hosts))
    return fetch_search_results(
        search, query, limit, deadline=context.deadline, policy=policy
    )


def parse_search_settings(text: str, key: str = "") -> SearchSettings | None:
    """Return the service that `text` names, None for no text.

    Raise `ValueError` with the rest of a sentence if it is wrong.
    """
    kind, _, url = (part.strip() for part in text.partition("="))
    if not kind:
        return None
    if kind not in SEARCH_PROTOCOLS:
        raise ValueError(f"{kind!r} is none of {', '.join(SEARCH_PROTOCOLS)}")
    service = SEARCH_PROTOCOLS[kind]
    url = url or service.url
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{kind} needs its address, as {kind}=https://search.example")
    if service.url and not key:
        raise ValueError(f"{kind} needs a key in AGENTSITE_WEB_SEARCH_KEY")
    return SearchSettings(kind, url.rstrip("/"), key)


def build_search_policy(search: SearchSettings, policy: NetPolicy) -> NetPolicy:
    """Let calls go to the very host and port that the operator named."""
    parts = urlsplit(search.url)
    host = parts.hostname or ""
    address = parse_ip_address(host)
    port = parts.port or {"https": 443}.get(parts.scheme, 80)
    named = (
        PrivateHost(name=host, port=port)
        if address is None
        else PrivateHost(network=ip_network(address), port=port)
    )
    return replace(policy, private_hosts=(*policy.private_hosts, named))


def fetch_search_results(
    search: SearchSettings,
    query: str,
    limit: int,
    *,
    deadline: Deadline,
    policy: NetPolicy,
) -> list[dict[str, str]]:
    """Ask the service and return title, url and text of each result."""
    limit = min(max(limit, 1), MAX_RESULTS)
    service = SEARCH_PROTOCOLS[search.kind]
    answered = send_request(
        service.request(search, query, limit), policy=policy, deadline=deadline
    )
    try:
        message = answered.json()
    except ToolFailed:
        raise SearchRefused(answered, service.hint) from None
    if answered.status != 200 or not isinstance(message, dict):
        why = (
            shorten_reason(mask_search_key(service.reason(message), search.key))
            or service.hint
        )
        raise SearchRefused(answered, why)
    rows = service.rows(message)
    return [
        format_search_result(one, service.text, key=search.key)
        for one in (rows if isinstance(rows, list) else [])[:limit]
        if isinstance(one, dict)
    ]


def format_search_result(one: dict[str, Any], text: str, *, key: str) -> dict[str, str]:
    """Return one result in our words, and without the key, which a server may echo."""
    names = {"title": "title", "url": "url", "text": text}
    values = {ours: str(one.get(theirs) or "") for ours, theirs in names.items()}
    values["text"] = " ".join(values["text"].split())[:MAX_SNIPPET]
    return {name: mask_search_key(value, key) for name, value in values.items()}


def mask_search_key(text: str, key: str) -> str:
    return text.replace(key, "[secret]") if key else text


def shorten_reason(reason: str) -> str:
    """Return the beginning of a reason, without its full stop."""
    return " ".join(reason.split())[:300].rstrip(".")


def build_searxng_request(search: SearchSettings, query: str, limit: int) -> Request:
    return Request(f"{search.url}/search?{urlencode({'q': query, 'format': 'json'})}")


def build_brave_request(search: SearchSettings, query: str, limit: int) -> Request:
    given = urlencode({"q": query[:400], "count": limit})
    headers = {"accept": "application/json", "x-subscription-token": search.key}
    return Request(f"{search.url}/res/v1/web/search?{given}", headers=headers)


def build_tavily_request(search: SearchSettings, query: str, limit: int) -> Request:
    headers = {
        "authorization": f"Bearer {search.key}",
        "content-type": "application/json",
    }
    body = json.dumps({"query": query, "max_results": limit}).encode()
    return Request(f"{search.url}/search", "POST", headers, body)


def find_refusal_reason(message: Any, *path: str) -> str:
    """Return the text at `path` in a refusal, or nothing."""
    for name in path:
        message = message.get(name) if isinstance(message, dict) else None
    return message if isinstance(message, str) else ""


@dataclass(frozen=True)
class SearchProtocol:
    """How one service is asked and understood."""

    request: Callable[[SearchSettings, str, int], Request]
    rows: Callable[[dict[str, Any]], Any]
    reason: Callable[[Any], str]
    text: str
    """Name of the field that holds a piece of the page."""
    url: str = ""
    """Its usual address; one that has none needs no key."""
    hint: str = ""
    """What may be wrong if it says nothing."""


SEARCH_PROTOCOLS: dict[str, SearchProtocol] = {
    "searxng": SearchProtocol(
        request=build_searxng_request,
        rows=lambda message: message.get("results"),
        reason=lambda message: find_refusal_reason(message, "message"),
        text="content",
        hint="its settings must allow the format json",
    ),
    "brave": SearchProtocol(
        request=build_brave_request,
        rows=lambda message: (message.get("web") or {}).get("results"),
        reason=lambda message: find_refusal_reason(message, "error", "detail"),
        text="description",
        url="https://api.search.brave.com",
    ),
    "tavily": SearchProtocol(
        request=build_tavily_request,
        rows=lambda message: message.get("results"),
        reason=lambda message: find_refusal_reason(message, "detail", "error"),
        text="content",
        url="https://api.tavily.com",
    ),
}
