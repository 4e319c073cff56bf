"""A web page as text, without menus, scripts and advertisements."""

import importlib
import re
from html import unescape
from typing import Any
from urllib.parse import urlsplit

from tools.errors import ToolFailed
from tools.exchange import Answered, Asked, exchange
from tools.netguard import NetPolicy
from tools.outbound import policy_of
from tools.registry import ToolContext, tool
from tools.watch import Watch

AT_ONCE = 20_000
"""Characters of one answer."""

MAX_BYTES = 4 << 20
BEGINS = (b"<", b"\xef\xbb\xbf")
"""How a page begins: with a tag, or with the mark of UTF-8."""

MAX_TAGS = 40_000
"""Tags of a page; what has more would keep a thread busy for long."""

HEAD = 200_000
"""Bytes in which the title is looked for."""

TITLE = re.compile(rb"(?is)<title[^>]*>([^<]{1,2000})</title>")
READABLE = ("application/json", "application/xml", "application/ld+json")
ACCEPT = "text/html, application/xhtml+xml, text/plain;q=0.9, application/json;q=0.8"


class ReaderMissing(ToolFailed):
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
            f"{url[:200]!r} is no address of a web page. It begins with https://."
        )


class PageRefused(ToolFailed):
    """The server does not give the page."""

    def __init__(self, answered: Answered) -> None:
        super().__init__(f"{answered.where} answered {answered.status}.")


class NoText(ToolFailed):
    """There is nothing to read."""

    def __init__(self, what: str) -> None:
        super().__init__(f"The page has no text that can be read: {what}.")


@tool(effect="read", timeout=40, keeps_hosts=True)
def web_page(url: str, context: ToolContext, start: int = 0) -> dict[str, Any]:
    """Return the title and the main text of a web page, as Markdown.

    Args:
        url: Address of the page, beginning with https://.
        start: Where to go on in a long text: the `next_start` of the answer before.
    """
    policy = policy_of(only_hosts=context.hosts)
    return read_page(url, start, watch=context.watch, policy=policy)


def read_page(
    url: str, start: int, *, watch: Watch, policy: NetPolicy
) -> dict[str, Any]:
    """Ask for the page and return a piece of its text; raise `ToolFailed`."""
    if scheme_of(url) not in ("http", "https"):
        raise NotAWebAddress(url)
    answered = exchange(
        Asked(url.strip(), headers={"accept": ACCEPT}),
        policy=policy,
        watch=watch,
        max_bytes=MAX_BYTES,
    )
    if answered.status >= 300:
        raise PageRefused(answered)
    title, text = text_of(answered, url)
    start = min(max(start, 0), len(text))
    piece = text[start : start + AT_ONCE]
    told: dict[str, Any] = {"title": title, "url": url, "text": piece}
    if start + AT_ONCE < len(text):
        told["next_start"] = start + AT_ONCE
    return told


def scheme_of(url: str) -> str:
    """Return the scheme, nothing where `url` cannot be read."""
    try:
        return urlsplit(url.strip()).scheme.lower()
    except ValueError:
        return ""


def text_of(answered: Answered, url: str) -> tuple[str, str]:
    """Return title and text; plain text and JSON as they are."""
    kind = answered.content_type.partition(";")[0].strip().lower()
    if kind in ("", "text/html", "application/xhtml+xml"):
        return text_of_html(answered.body, url)
    if kind.startswith("text/") or kind in READABLE:
        if not answered.text.strip():
            raise NoText("it is empty")
        return "", answered.text
    raise NoText(f"it is {kind}")


def text_of_html(body: bytes, url: str) -> tuple[str, str]:
    """Return title and main text of HTML; raise `ReaderMissing` where nothing can."""
    try:
        reader = importlib.import_module("trafilatura")
    except ImportError:
        raise ReaderMissing from None
    if body.count(b"<") > MAX_TAGS:
        raise NoText("it has too many parts")
    # The reader unpacks what looks packed, whose parts nobody has counted.
    is_page = body.lstrip().startswith(BEGINS) and b"<html" in body[:HEAD].lower()
    whole = body if is_page else b"<html>" + body
    text = reader.extract(
        whole, url=url, output_format="markdown", include_comments=False, fast=True
    )
    if not (text or "").strip():
        raise NoText("it may be made by scripts, or consist of links and pictures")
    return title_of(body), str(text)


def title_of(body: bytes) -> str:
    """Return the title in the head of a page, nothing where there is none."""
    found = TITLE.search(body[:HEAD])
    if found is None:
        return ""
    return " ".join(unescape(found[1].decode("utf-8", "replace")).split())[:300]
