"""A web page as text, without menus, scripts and advertisements."""

import importlib
import re
from html import unescape
from typing import Any
from urllib.parse import urlsplit

from tools.errors import ToolFailed
from tools.net.deadline import Deadline
from tools.net.http_exchange import Request, Response, send_request
from tools.net.netguard import NetPolicy
from tools.net.outbound_policy import get_net_policy
from tools.registry import ToolContext, tool

MAX_PAGE_CHARACTERS = 20_000
"""Characters of one answer."""

MAX_BYTES = 4 << 20
HTML_PREFIXES = (b"<", b"\xef\xbb\xbf")
"""How a page begins: with a tag, or with the mark of UTF-8."""

MAX_TAGS = 40_000
"""Tags of a page; what has more would keep a thread busy for long."""

MAX_HEAD_BYTES = 200_000
"""Bytes in which the title is looked for."""

TITLE = re.compile(rb"(?is)<title[^>]*>([^<]{1,2000})</title>")
READABLE_TYPES = ("application/json", "application/xml", "application/ld+json")
ACCEPT = "text/html, application/xhtml+xml, text/plain;q=0.9, application/json;q=0.8"


class HtmlReaderMissing(ToolFailed):
    """The part of the installation that reads HTML is not there."""

    def __init__(self) -> None:
        super().__init__(
            "Web pages cannot be read here: the package trafilatura is not installed. "
            "The operator installs it with `pip install trafilatura`."
        )


class NotAWebAddress(ToolFailed):
    """The address is none of a page."""

    def __init__(self, url: str) -> None:
        super().__init__(
            f"{url[:200]!r} is not an address of a web page. Use one that begins with "
            "https://."
        )


class PageRefused(ToolFailed):
    """The server does not give the page."""

    def __init__(self, answered: Response) -> None:
        super().__init__(f"{answered.where} answered {answered.status}.")


class NoReadableText(ToolFailed):
    """There is nothing to read."""

    def __init__(self, what: str) -> None:
        super().__init__(f"The page has no text that can be read: {what}.")


@tool(effect="read", timeout=40, keeps_hosts=True)
def web_page(url: str, context: ToolContext, start: int = 0) -> dict[str, Any]:
    """Return the title and the main text of a web page, as Markdown.

    Args:
        url: Address of the page, beginning with https://.
        start: Where to continue in a long text: the `next_start` of the answer before.
    """
    policy = get_net_policy(only_hosts=context.hosts)
    return fetch_page_text(url, start, deadline=context.deadline, policy=policy)


def fetch_page_text(
    url: str, start: int, *, deadline: Deadline, policy: NetPolicy
) -> dict[str, Any]:
    """Ask for the page and return a piece of its text; raise `ToolFailed`."""
    if get_url_scheme(url) not in ("http", "https"):
        raise NotAWebAddress(url)
    answered = send_request(
        Request(url.strip(), headers={"accept": ACCEPT}),
        policy=policy,
        deadline=deadline,
        max_bytes=MAX_BYTES,
    )
    if answered.status >= 300:
        raise PageRefused(answered)
    title, text = extract_page_text(answered, url)
    start = min(max(start, 0), len(text))
    piece = text[start : start + MAX_PAGE_CHARACTERS]
    message: dict[str, Any] = {"title": title, "url": url, "text": piece}
    if start + MAX_PAGE_CHARACTERS < len(text):
        message["next_start"] = start + MAX_PAGE_CHARACTERS
    return message


def get_url_scheme(url: str) -> str:
    """Return the scheme, nothing if `url` cannot be read."""
    try:
        return urlsplit(url.strip()).scheme.lower()
    except ValueError:
        return ""


def extract_page_text(answered: Response, url: str) -> tuple[str, str]:
    """Return title and text; plain text and JSON as they are."""
    kind = answered.content_type.partition(";")[0].strip().lower()
    if kind in ("", "text/html", "application/xhtml+xml"):
        return extract_html_text(answered.body, url)
    if kind.startswith("text/") or kind in READABLE_TYPES:
        if not answered.text.strip():
            raise NoReadableText("it is empty")
        return "", answered.text
    raise NoReadableText(f"it is {kind}")


def extract_html_text(body: bytes, url: str) -> tuple[str, str]:
    """Return title and main text of HTML; `HtmlReaderMissing` without trafilatura."""
    try:
        reader = importlib.import_module("trafilatura")
    except ImportError:
        raise HtmlReaderMissing from None
    if body.count(b"<") > MAX_TAGS:
        raise NoReadableText("it has too many parts")
    # The reader unpacks what looks packed, whose parts nobody has counted.
    is_page = (
        body.lstrip().startswith(HTML_PREFIXES)
        and b"<html" in body[:MAX_HEAD_BYTES].lower()
    )
    whole = body if is_page else b"<html>" + body
    text = reader.extract(
        whole, url=url, output_format="markdown", include_comments=False, fast=True
    )
    if not (text or "").strip():
        raise NoReadableText(
            "it may be made by scripts, or consist of links and pictures"
        )
    return extract_page_title(body), str(text)


def extract_page_title(body: bytes) -> str:
    """Return the title in the head of a page, nothing if there is none."""
    found = TITLE.search(body[:MAX_HEAD_BYTES])
    if found is None:
        return ""
    return " ".join(unescape(found[1].decode("utf-8", "replace")).split())[:300]
