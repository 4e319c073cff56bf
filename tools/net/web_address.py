"""Parsing the address of a web server, as a person or a file gives it."""

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


def has_userinfo(url: str) -> bool:
    """Whether a web address carries a name or password, which pages would show."""
    return "@" in urlsplit(url).netloc
