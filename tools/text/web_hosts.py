"""The hosts of web addresses in a text, as browsers and chat clients read them."""

import html
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

MAX_AUTHORITY = 300
"""Characters between the slashes and the path; no real host has as many."""

BARE_DOMAINS = (
    "com|net|org|info|biz|edu|gov|mil|app|dev|site|online|shop|xyz|click|live|club|"
    "cloud|tech|blog|website|icu|vip|pro|io|ai|co|gg|ly|tv|ws|tk|cf|gq|ga|eu|uk|de|fr|"
    "nl|ch|es|se|dk|fi|cz|pt|gr|tr|ru|ua|ir|il|cn|jp|kr|tw|hk|sg|vn|th|ph|br|mx|ar|cl|"
    "ca|au|nz|za|ng|ke|ae|pk"
)
"""Ends of host names without a scheme: not those of files (`md`, `py`, `zip`), words
and usual attributes (`is`, `id`, `top`)."""

START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
"""Not inside a word of Latin letters; JSON writes a line break as `\\n`."""
USER = r"(?:[^\s<>\"\\/?#@]{0,100}@)?"
IP = r"\[|\d{1,3}(?:\.\d{1,3}){3}"
DOTTED = rf"(?={USER}(?:(?:[\w-]{{1,63}}\.){{1,8}}[^\W\d_]{{2}}|{IP}))"
SCHEME = (
    rf"{START}(?:https?|ftp|wss?):(?:[/\\]*/[/\\]+|[/\\]+/[/\\]*|\\\\+|[/\\]?{DOTTED})"
)
"""As the URL standard: any number of slashes and backslashes, also none.

With fewer than two, what follows must look like a host.
"""
LINK = r"(?:\]\(|\]:|(?:href|src|action)\s{0,8}=\s{0,8}\\?[\"']?)\s{0,8}"
TARGET = rf"(?:(?<=[(\"'=<])(?://|\\/\\/)[/\\]*|{LINK}[/\\]{{2,}}){DOTTED}"
"""Two slashes begin an address only where a link does, as in `](//example.com/a)`.

Elsewhere they may be a comment or a division. Backslashes count as slashes in links
only: in code, they begin escapes.
"""
WWW = r"(?:(?<![A-Za-z0-9./@-])|(?<=\\[nrt]))(?=www\.[\w-]{1,63}\.[^\W\d_])"
BARE = (
    r"(?:(?<![\w./\\@-])|(?<=[^\x00-\x7f])|(?<=\\[nrt]))"
    r"(?=(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,8}"
    rf"(?!app/Contents)(?:{BARE_DOMAINS})(?::\d{{1,5}})?(?:/|[?#]\w))"
)
"""A host name without a scheme counts with a path: `example.com/a`."""
REST = r"(?:[^\s<>\"'`\\^{}|()\]]|\([^\s<>\"'()]{0,200}\)){0,2000}"
"""To the end of a link; as in Markdown, parentheses come in pairs."""
ADDRESS = re.compile(
    rf"(?i)(?:{SCHEME}|{TARGET}|{WWW}|{BARE})"
    rf"(?=([^\s<>\"\\/?#]{{1,{MAX_AUTHORITY}}})){REST}"
)
HOST_END = re.compile(r"[\^|'`]|[)\]](?![\w.-]*\w)")
TRAILING = ".,;:!?)]}*_~。，；：！？）】」』”"
MAILTO = re.compile(r"(?i)mailto:[^\s<>\"']{1,500}")


def find_hosts(text: str) -> Iterator[str]:
    """Yield the hosts of web addresses and mail links, in lower case, with ports.

    Each is yielded once; also those that are written with HTML entities.
    """
    spellings = {text: None, html.unescape(text): None}
    yield from dict.fromkeys(host for one in spellings for host in _iter_hosts(one))


def _iter_hosts(text: str) -> Iterator[str]:
    for match in ADDRESS.finditer(text):
        yield _read_host(match[1]) or match[0][:100]
    for match in MAILTO.finditer(text):
        yield match[0].rpartition("@")[2].partition("?")[0].rstrip(".,;:!?)]").lower()


def _read_host(authority: str) -> str:
    """Return the host with its port; empty if there is none."""
    if len(authority) == MAX_AUTHORITY:
        return ""
    host = authority.rpartition("@")[2]
    if not host.startswith("["):
        host = HOST_END.split(host, maxsplit=1)[0].rstrip(TRAILING)
    elif "]" in host:
        host = host[: host.index("]") + 1]
    try:
        parts = urlsplit(f"//{host}")
        name, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    return f"{name}:{port}" if port else name
