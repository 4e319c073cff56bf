"""Wikipedia: searching it, and the beginning of a page (https://www.mediawiki.org)."""

import re
from typing import Any
from urllib.parse import urlencode

from tools.errors import ToolFailed
from tools.net.deadline import Deadline
from tools.net.http_exchange import Request, send_request
from tools.net.netguard import NetPolicy
from tools.net.outbound_policy import get_net_policy
from tools.registry import ToolContext, tool

API_URL = "https://{language}.wikipedia.org/w/api.php"
USER_AGENT = "agentsite (a self-hosted site that runs agents)"
LANGUAGE = re.compile(r"[a-z][a-z-]{1,14}")
MARKUP = re.compile(r"<[^>]*>")
MAX_TEXT = 20_000
"""Characters of a page."""


class PageNotFound(ToolFailed):
    """No such page."""

    def __init__(self, title: str) -> None:
        super().__init__(
            f"Wikipedia has no page {title[:120]!r} in this language. Search first."
        )


class WikipediaRefused(ToolFailed):
    """The service answered, but not with what was asked."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(f"Wikipedia answered {status}: {why or 'no reason given'}.")


class UnknownLanguage(ToolFailed):
    """The code is none of Wikipedia's."""

    def __init__(self, language: str) -> None:
        super().__init__(
            f"{language[:20]!r} is not a language code such as 'en' or 'zh'."
        )


@tool(effect="read", timeout=20, keeps_hosts=True)
def wikipedia_search(
    query: str, context: ToolContext, language: str = "en", limit: int = 5
) -> list[dict[str, str]]:
    """Search Wikipedia and return titles with a piece of their text.

    Args:
        query: Words to look for.
        language: Code of the Wikipedia, such as `en`, `de` or `zh`.
        limit: How many pages, 1 to 20.
    """
    return search_wikipedia(
        query,
        limit,
        api=get_wikipedia_api_url(language),
        deadline=context.deadline,
        policy=get_net_policy(only_hosts=context.hosts),
    )


@tool(effect="read", timeout=20, keeps_hosts=True)
def wikipedia_page(title: str, context: ToolContext, language: str = "en") -> str:
    """Return the text of a Wikipedia page, cut if it is long.

    Args:
        title: The title, as the search returns it.
        language: Code of the Wikipedia, such as `en`, `de` or `zh`.
    """
    return fetch_wikipedia_page(
        title,
        api=get_wikipedia_api_url(language),
        deadline=context.deadline,
        policy=get_net_policy(only_hosts=context.hosts),
    )


def get_wikipedia_api_url(language: str) -> str:
    """Return the address of a language; the code must not name another host."""
    if not LANGUAGE.fullmatch(language):
        raise UnknownLanguage(language)
    return API_URL.format(language=language)


def search_wikipedia(
    query: str, limit: int, *, api: str, deadline: Deadline, policy: NetPolicy
) -> list[dict[str, str]]:
    """Ask `api` for pages; raise `ToolFailed` with a sentence."""
    message = query_wikipedia_api(
        api,
        {"list": "search", "srsearch": query, "srlimit": min(max(limit, 1), 20)},
        deadline=deadline,
        policy=policy,
    )
    return [
        {
            "title": str(one.get("title", "")),
            "text": MARKUP.sub("", str(one.get("snippet", ""))),
        }
        for one in message.get("search", [])
    ]


def fetch_wikipedia_page(
    title: str, *, api: str, deadline: Deadline, policy: NetPolicy
) -> str:
    """Ask `api` for one page as plain text; raise `PageNotFound`."""
    message = query_wikipedia_api(
        api,
        {"prop": "extracts", "explaintext": 1, "redirects": 1, "titles": title},
        deadline=deadline,
        policy=policy,
    )
    pages = message.get("pages") or [{}]
    text = pages[0].get("extract")
    if not text:
        raise PageNotFound(title)
    return str(text) if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"


def query_wikipedia_api(
    api: str, query: dict[str, Any], *, deadline: Deadline, policy: NetPolicy
) -> dict[str, Any]:
    """Return the part `query` of an answer of the MediaWiki action API."""
    given = {"action": "query", "format": "json", "formatversion": 2, **query}
    answered = send_request(
        Request(f"{api}?{urlencode(given)}", headers={"user-agent": USER_AGENT}),
        policy=policy,
        deadline=deadline,
    )
    message = answered.json()
    error = message.get("error") if isinstance(message, dict) else None
    if answered.status != 200 or not isinstance(message, dict) or error:
        why = error.get("info", "") if isinstance(error, dict) else ""
        raise WikipediaRefused(answered.status, str(why).rstrip("."))
    found: dict[str, Any] = message.get("query", {})
    return found
