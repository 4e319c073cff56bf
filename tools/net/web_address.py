"""What is wrong with the address of a web server, as a person or a file gives it."""

import re
from urllib.parse import urlsplit

import httpx


def parse_web_url(url: str | httpx.URL) -> httpx.URL:
    """Return `url`, whose host can be read; raise `httpx.InvalidURL`."""
    try:
        found = httpx.URL(url)
        _ = found.host  # decoded only here, with errors of another kind
    except ValueError as error:
        raise httpx.InvalidURL(str(error)) from error
    return found


def find_address_flaw(url: str) -> str:
    """Return in a clause why `url` is no address of a web server; empty for a good one.

    A good one may still name a person (`names_a_person`), or be one that the outbound
    guard refuses (`tools.net.netpolicy`).
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return f"this is no address ({error})"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "an address begins with https:// and a host"
    if re.search(r"\s", url):
        return "an address has no space or line break in it"
    if port == 0:
        return "no server listens on port 0"
    try:
        parse_web_url(url)
    except httpx.InvalidURL as error:
        return f"this is no address ({error})"
    return ""


def has_userinfo(url: str) -> bool:
    """Whether a web address carries a name or password, which pages would show."""
    return "@" in urlsplit(url).netloc
