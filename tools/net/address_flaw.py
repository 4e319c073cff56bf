"""What is wrong with the address of a web server, in words."""

import re
from urllib.parse import urlsplit

import httpx
from django.utils.translation import gettext as _

from tools.net.web_address import parse_web_url


def find_address_flaw(url: str) -> str:
    """Return why `url` is not the address of a web server, as a clause; empty if it is.

    A good one may still name a person (`has_userinfo`), or be one that the outbound
    guard refuses (`tools.net.netpolicy`).
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return _("this is not an address (%(error)s)") % {"error": error}
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return _("an address begins with https:// and a host")
    if re.search(r"\s", url):
        return _("an address has no space or line break in it")
    if port == 0:
        return _("no server listens on port 0")
    try:
        parse_web_url(url)
    except httpx.InvalidURL as error:
        return _("this is not an address (%(error)s)") % {"error": error}
    return ""
