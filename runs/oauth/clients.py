"""Registered clients. The client id is the signed registration: no row is stored.

OAuthClient             a program that asks people for access
Registration            what a program sends to register (RFC 7591)
create_oauth_client()   registration -> client id
read_client()           client id -> client; raises OAuthError
"""

import re
from typing import Self
from urllib.parse import SplitResult, urlsplit

from django.core import signing
from pydantic import BaseModel, ConfigDict, Field

from runs.oauth.errors import OAuthError

SALT = "runs.oauth.client"
MAX_ADDRESSES = 10
MAX_ADDRESS_LENGTH = 500
MAX_LENGTH = 1000
"""Characters of all redirect addresses together: the client id contains them."""
MAX_ID_LENGTH = 6000
MAX_NAME = 80
LOOPBACK = {"127.0.0.1", "::1", "localhost"}
NOT_AN_APP = {
    *("about", "blob", "data", "file", "filesystem", "ftp", "intent", "javascript"),
    *("mailto", "sms", "tel", "vbscript", "view-source", "ws", "wss"),
}
"""Schemes that no program on the person's computer can receive a code by."""
ADDRESS = re.compile(
    r"[a-z][a-z0-9+.-]*:[!#-&(-+\--:=?-\[\]_a-z~]*", re.IGNORECASE | re.ASCII
)
"""No quotes, commas, semicolons or spaces: the address is part of a header."""
HOST = re.compile(r"(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9.-]+)(:[0-9]+)?")
APP_HOST = re.compile(r"[A-Za-z0-9.-]*")


class OAuthClient(BaseModel):
    """Name and redirect addresses, as the program itself gave them."""

    model_config = ConfigDict(frozen=True)

    id: str
    name: str
    redirect_uris: tuple[str, ...]

    def accepts(self, uri: str) -> bool:
        """Return whether `uri` is registered; on this computer with any port."""
        return uri in self.redirect_uris or any(
            is_same_but_port(uri, known) for known in self.redirect_uris
        )


class Registration(BaseModel):
    """The part of a registration that matters; other fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    redirect_uris: list[str] = Field(min_length=1, max_length=MAX_ADDRESSES)
    client_name: str = ""

    def check(self) -> Self:
        """Return it; raises `OAuthError`, naming the first address that is refused."""
        for uri in self.redirect_uris:
            if problem := find_address_problem(uri):
                raise OAuthError("invalid_redirect_uri", problem)
        if sum(map(len, self.redirect_uris)) > MAX_LENGTH:
            raise OAuthError(
                "invalid_redirect_uri",
                f"redirect_uris: at most {MAX_LENGTH} characters together.",
            )
        return self


def create_oauth_client(registration: Registration) -> OAuthClient:
    """Return the client of a registration; raises `OAuthError`."""
    registration.check()
    printable = filter(str.isprintable, registration.client_name)
    name = " ".join("".join(printable).split())[:MAX_NAME]
    known = {"n": name, "r": registration.redirect_uris}
    return OAuthClient(
        id=signing.dumps(known, salt=SALT, compress=True),
        name=name,
        redirect_uris=tuple(registration.redirect_uris),
    )


def read_client(client_id: str) -> OAuthClient:
    """Return the client with this id; raises `OAuthError`."""
    try:
        if len(client_id) > MAX_ID_LENGTH:
            raise signing.BadSignature
        known = signing.loads(client_id, salt=SALT)
    except (signing.BadSignature, UnicodeEncodeError):
        raise OAuthError(
            "invalid_client", "client_id: unknown. Register the client again."
        ) from None
    return OAuthClient(id=client_id, name=known["n"], redirect_uris=known["r"])


def find_address_problem(uri: str) -> str:
    """Return why a code is not sent to `uri`; empty if it may be."""
    if len(uri) > MAX_ADDRESS_LENGTH or not ADDRESS.fullmatch(uri) or "#" in uri:
        return (
            "redirect_uris: an address without fragment, with at most "
            f"{MAX_ADDRESS_LENGTH} ASCII characters, is required."
        )
    try:
        parts = urlsplit(uri)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "redirect_uris: an address has an invalid host or port."
    if parts.scheme in {"http", "https"}:
        if not HOST.fullmatch(parts.netloc):
            return "redirect_uris: an address has an invalid host or a user name."
        if parts.scheme == "http" and host not in LOOPBACK:
            return "redirect_uris: use https, or http on this computer (127.0.0.1)."
    elif parts.scheme in NOT_AN_APP or parts.scheme.startswith("ms-"):
        return f"redirect_uris: the scheme {parts.scheme} is not allowed."
    elif not parts.scheme or not APP_HOST.fullmatch(parts.netloc):
        return "redirect_uris: an address has an invalid scheme or host."
    return ""


def is_same_but_port(uri: str, known: str) -> bool:
    """Return whether only the port differs, on this computer (RFC 8252)."""
    if find_address_problem(uri):
        return False
    one, other = urlsplit(uri), urlsplit(known)
    return (
        one.scheme == "http"
        and one.hostname in LOOPBACK
        and without_port(one) == without_port(other)
    )


def without_port(parts: SplitResult) -> tuple[str, str | None, str, str]:
    return parts.scheme, parts.hostname, parts.path, parts.query
