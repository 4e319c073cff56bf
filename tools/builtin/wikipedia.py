"""Wikipedia: searching it, and the beginning of a page (https://www.mediawiki.org)."""

import re
from typing import Any
from urllib.parse import urlencode

from tools.errors import ToolFailed
from tools.exchange import Asked, exchange
from tools.netguard import NetPolicy
from tools.outbound import policy_of
from tools.registry import ToolContext, tool
from tools.watch import Watch

API = "https://{language}.wikipedia.org/w/api.php"
AGENT = "agentsite (a self-hosted site that runs agents)"
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
        super().__init__(f"{language[:20]!r} is no language code such as 'en' or 'zh'.")


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
    return search(
        query,
        limit,
        api=api_of(language),
        watch=context.watch,
        policy=policy_of(only_hosts=context.hosts),
    )


@tool(effect="read", timeout=20, keeps_hosts=True)
def wikipedia_page(title: str, context: ToolContext, language: str = "en") -> str:
    """Return the text of a Wikipedia page, cut where it is long.

    Args:
        title: The title, as the search returns it.
        language: Code of the Wikipedia, such as `en`, `de` or `zh`.
    """
    return page(
        title,
        api=api_of(language),
        watch=context.watch,
        policy=policy_of(only_hosts=context.hosts),
    )


def api_of(language: str) -> str:
    """Return the address of a language; the code must not name another host."""
    if not LANGUAGE.fullmatch(language):
        raise UnknownLanguage(language)
    return API.format(language=language)


def search(
    query: str, limit: int, *, api: str, watch: Watch, policy: NetPolicy
) -> list[dict[str, str]]:
    """Ask `api` for pages; raise `ToolFailed` with a sentence."""
    told = ask(
        api,
        {"list": "search", "srsearch": query, "srlimit": min(max(limit, 1), 20)},
        watch=watch,
        policy=policy,
    )
    return [
        {
            "title": str(one.get("title", "")),
            "text": MARKUP.sub("", str(one.get("snippet", ""))),
        }
        for one in told.get("search", [])
    ]


def page(title: str, *, api: str, watch: Watch, policy: NetPolicy) -> str:
    """Ask `api` for one page as plain text; raise `PageNotFound`."""
    told = ask(
        api,
        {"prop": "extracts", "explaintext": 1, "redirects": 1, "titles": title},
        watch=watch,
        policy=policy,
    )
    pages = told.get("pages") or [{}]
    text = pages[0].get("extract")
    if not text:
        raise PageNotFound(title)
    return str(text) if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"


def ask(
    api: str, query: dict[str, Any], *, watch: Watch, policy: NetPolicy
) -> dict[str, Any]:
    """Return the part `query` of an answer of the MediaWiki action API."""
    given = {"action": "query", "format": "json", "formatversion": 2, **query}
    answered = exchange(
        Asked(f"{api}?{urlencode(given)}", headers={"user-agent": AGENT}),
        policy=policy,
        watch=watch,
    )
    told = answered.json()
    error = told.get("error") if isinstance(told, dict) else None
    if answered.status != 200 or not isinstance(told, dict) or error:
        why = error.get("info", "") if isinstance(error, dict) else ""
        raise WikipediaRefused(answered.status, str(why).rstrip("."))
    found: dict[str, Any] = told.get("query", {})
    return found
