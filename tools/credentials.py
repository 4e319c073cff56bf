"""Opening a credential for one call, and putting it into the request."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from django.contrib.auth.models import User
from django.db import connection

from tools.errors import ToolFailed
from tools.models import Credential, Tool
from tools.net.http_exchange import Request
from tools.net.reserved_headers import is_reserved_header
from tools.net.transport import DEFAULT_PORTS
from tools.secrets import SecretUnreadable, unseal
from tools.text.secret_spellings import list_secret_spellings

CREDENTIAL_MASK = "[secret]"


class CredentialRefused(ToolFailed):
    """The secret is not used here."""

    def __init__(self, why: str) -> None:
        super().__init__(f"The credential of this tool is not used: {why}.")


@dataclass(frozen=True)
class OpenCredential:
    """A secret, ready to be sent."""

    kind: str
    name: str
    """Of the header or parameter; the user name for basic."""
    hosts: tuple[str, ...]
    secret: str = field(repr=False)

    def apply_to(self, asked: Request) -> Request:
        """Return the request with the secret; refuse a host it is not bound to."""
        if not any(binding_matches(one, asked.url) for one in self.hosts):
            origin = format_origin(asked.url)
            raise CredentialRefused(f"it is not bound to the host {origin!r}")
        match self.kind:
            case Credential.Kind.QUERY:
                return replace(
                    asked, url=add_query_parameter(asked.url, self.name, self.secret)
                )
            case Credential.Kind.HEADER:
                if is_reserved_header(self.name):
                    raise CredentialRefused(f"nobody may set the header {self.name!r}")
                name, value = self.name, self.secret
            case Credential.Kind.BASIC:
                pair = b64encode(f"{self.name}:{self.secret}".encode()).decode()
                name, value = "authorization", f"Basic {pair}"
            case _:
                name, value = "authorization", f"Bearer {self.secret}"
        others = {k: v for k, v in asked.headers.items() if k.lower() != name.lower()}
        return replace(asked, headers={**others, name: value})

    def limit_hosts(self, hosts: Sequence[str]) -> tuple[str, ...]:
        """Return those of a tool's hosts, all if empty, that the secret is bound to."""
        found = find_usable_hosts(self.hosts, hosts)
        if not found:
            raise CredentialRefused("the tool may reach none of its hosts")
        return found

    def mask_secret(self, text: str) -> str:
        """Return `text` without the secret, which a server may echo as it came."""
        for spelling in self.list_encodings:
            text = text.replace(spelling, CREDENTIAL_MASK)
        return text

    def mask_secret_in(self, value: Any) -> Any:
        """Return JSON without the secret, in names and texts at any depth."""
        if isinstance(value, str):
            return self.mask_secret(value)
        if isinstance(value, list):
            return [self.mask_secret_in(one) for one in value]
        if isinstance(value, dict):
            return {
                self.mask_secret(k): self.mask_secret_in(v) for k, v in value.items()
            }
        return value

    @property
    def list_encodings(self) -> list[str]:
        """How the secret is written: as it is, for basic, in addresses, JSON, HTML."""
        if not self.secret:
            return []
        pair = b64encode(f"{self.name}:{self.secret}".encode()).decode()
        return sorted(
            {pair, *list_secret_spellings(self.secret)}, key=len, reverse=True
        )


def open_credential(
    pk: int, *, tool_id: int | None, owner_id: int | None = None
) -> OpenCredential:
    """Return the credential as it is now, if the owner of the tool may still use it.

    A definition that is not stored has no `tool_id`, only the number of its owner.
    """
    with temporary_db_connection():
        if tool_id is None and owner_id is not None:
            owner = User.objects.get(pk=owner_id)
            return open_credential_for_owner(pk, owner=owner)
        tool = Tool.objects.select_related("owner").filter(pk=tool_id or 0).first()
        if tool is None:
            raise CredentialRefused("it no longer exists")
        return open_credential_for_owner(pk, owner=tool.owner)


def open_credential_for_owner(pk: int, *, owner: User) -> OpenCredential:
    """Return the credential as it is now, if `owner`, of the tool, may still use it."""
    row: Any = Credential.objects.filter(pk=pk).first()
    if row is None:
        raise CredentialRefused("it no longer exists")
    if not Credential.objects.usable_by(owner).filter(pk=pk).exists():
        raise CredentialRefused("the owner of the tool may no longer use it")
    if not row.sealed:
        raise CredentialRefused("no secret is stored in it, so enter one on its page")
    try:
        secret = unseal(row.sealed)
    except SecretUnreadable as error:
        raise CredentialRefused(str(error).rstrip(".")) from None
    return OpenCredential(row.kind, row.field, tuple(row.hosts), secret)


@contextmanager
def temporary_db_connection() -> Iterator[None]:
    """Leave the thread without a database connection, if it came without."""
    was_open = connection.connection is not None
    try:
        yield
    finally:
        if not was_open:
            connection.close()


def host_matches(pattern: str, host: str) -> bool:
    """Whether `host` is the pattern, or below it if it begins with `*.`."""
    pattern = pattern.lower()
    return host == pattern or (pattern.startswith("*.") and host.endswith(pattern[1:]))


def find_usable_hosts(bindings: Sequence[str], hosts: Sequence[str]) -> tuple[str, ...]:
    """Return the hosts of `bindings` that a tool limited to `hosts` can reach.

    Without `hosts` the tool has no limit. Schemes and ports of bindings are left out.
    """
    bound = [parse_binding(one).host for one in bindings]
    found = [
        *(one for one in bound if not hosts or any_host_matches(hosts, one)),
        *(one for one in hosts if any_host_matches(bound, one)),
    ]
    return tuple(dict.fromkeys(found))


def any_host_matches(patterns: Sequence[str], host: str) -> bool:
    return any(host_matches(one, host.lower()) for one in patterns)


class Origin(NamedTuple):
    """Where a request goes, or a credential is bound to."""

    scheme: str
    host: str
    port: int


def parse_origin(url: str) -> Origin:
    """Return the origin of a web address; raise `ValueError`."""
    parts = urlsplit(url)
    port = parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
    return Origin(parts.scheme, (parts.hostname or "").rstrip("."), port)


def format_origin(url: str) -> str:
    """Return the origin of a web address as a credential would be bound to it."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].lower()
    return host if parts.scheme == "https" else f"{parts.scheme}://{host}"


def binding_matches(binding: str, url: str) -> bool:
    """Whether a secret bound to `binding` may be sent to `url`.

    A host name alone means HTTPS at its usual port; another port, or HTTP, has to be
    named: `api.example.com:8443`, `http://localhost:8080`.
    """
    try:
        bound, there = parse_binding(binding), parse_origin(url)
    except ValueError:
        return False
    return (
        there.host != ""
        and (bound.scheme, bound.port) == (there.scheme, there.port)
        and host_matches(bound.host, there.host)
    )


def parse_binding(binding: str) -> Origin:
    """Return the origin of a binding; raise `ValueError`."""
    if "://" not in binding:
        is_bare_ipv6 = binding.count(":") > 1 and "[" not in binding
        binding = f"https://[{binding}]" if is_bare_ipv6 else f"https://{binding}"
    return parse_origin(binding)


def add_query_parameter(url: str, name: str, value: str) -> str:
    return f"{url}{'&' if urlsplit(url).query else '?'}{urlencode({name: value})}"
