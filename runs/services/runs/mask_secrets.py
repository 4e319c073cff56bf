"""Mask secrets in the texts of a run that leaves the site.

Stored text is free of the secrets of its own provider and tools. Here the secrets of
the run's owner, provider and tools are removed, and whatever looks like one. Not those
of others: a gap in an export would show its reader that a guess was right, and a secret
chosen by one user would blank words in the exports of all.
"""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q

from runs.models import Provider, Run
from runs.store.sanitizer import HIDDEN, MIN_UNGUESSABLE_LENGTH, Sanitizer
from tools.models import Credential, McpServer, McpSignIn
from tools.secrets import SecretUnreadable, unseal

SECRET_NAME = re.compile(
    r"(?i)^(.*[-_])?(password|passwd|passphrase|secret|token|api[-_]?key|access[-_]?key"
    r"|private[-_]?key|authorization|cookie|credentials?|signature)$"
)
# Every repetition before another pattern is bounded: the texts are untrusted.
SECRET_PATTERNS = re.compile(
    r"""
    -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----.*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
    | \b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}
    | \bgh[pousr]_[A-Za-z0-9]{20,} | \bgithub_pat_[A-Za-z0-9_]{20,}
    | \bglpat-[A-Za-z0-9_-]{16,} | \bhf_[A-Za-z0-9]{20,}
    | \bxox[abeprs]-[A-Za-z0-9-]{10,} | \bAIza[A-Za-z0-9_-]{30,}
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b
    | \beyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{8,9000}\.[A-Za-z0-9_-]{4,9000}
    """,
    re.VERBOSE | re.DOTALL,
)
AUTH_HEADER_SECRET = re.compile(r"(?i)\b(bearer|basic)(\s+)[A-Za-z0-9._~+/=-]{12,}")
ASSIGNED_SECRET = re.compile(
    r"(?i)\b((?:[a-z0-9]{1,30}[-_]){0,4}(?:password|passwd|passphrase|secret|token|api[-_]?key"
    r"|access[-_]?key|private[-_]?key|authorization)[\"'\\]*\s*[:=]\s*[\"'\\]*)"
    r"(?!bearer\b|basic\b)([^\s\"'\\,;&<>(){}\[\]]{4,})"
)
URL_CREDENTIALS = re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)")


class TextMask:
    """Removes known secrets, and whatever looks like one, from texts."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self.sanitizer = Sanitizer(secrets)
        self.masked_names: dict[str, str] = {}
        """Cache of masked field names."""

    def text(self, text: str) -> str:
        text = SECRET_PATTERNS.sub(HIDDEN, self.sanitizer.text(text))
        text = URL_CREDENTIALS.sub(HIDDEN, text)
        text = AUTH_HEADER_SECRET.sub(rf"\1\2{HIDDEN}", text)
        return ASSIGNED_SECRET.sub(rf"\1{HIDDEN}", text)

    def json(self, value: Any, *, name: str = "") -> Any:
        """Return a JSON value without secrets, by field name and by pattern."""
        if isinstance(value, dict):
            return {
                self._key(str(key)): self.json(one, name=str(key))
                for key, one in value.items()
            }
        if isinstance(value, list):
            return [self.json(one, name=name) for one in value]
        if name and value not in (None, "") and SECRET_NAME.match(name):
            return HIDDEN
        return self.text(value) if isinstance(value, str) else value

    def _key(self, name: str) -> str:
        if name not in self.masked_names:
            self.masked_names[name] = self.text(name)
        return self.masked_names[name]

    def mask_text_or_json(self, text: str) -> str:
        """Return a text without secrets; JSON is also masked by field name."""
        if text.lstrip()[:1] in {"{", "["}:
            with suppress(ValueError, RecursionError):  # not JSON
                value = json.loads(text)
                masked = self.json(value)
                if masked != value:
                    return json.dumps(masked, ensure_ascii=False, indent=2)
        return self.text(text)


class SecretMask(TextMask):
    """Removes secrets from the texts of one run."""

    def __init__(self, run: Run) -> None:
        # Not that of the agent's owner, which the run's owner could guess and so find.
        own = [run.owner.email] if run.owner.email else []
        super().__init__([*load_known_secrets(run), *own])


def build_owner_mask(owner: User) -> TextMask:
    rows: list[Credential | Provider] = [
        *Credential.objects.filter(owner=owner),
        *Provider.objects.filter(owner=owner).select_related("owner"),
    ]
    return TextMask(secret for row in rows for secret in unseal_secrets(row))


def load_known_secrets(run: Run) -> list[str]:
    """Return the secrets that the run, a run below it, or its owner can use.

    Of other people's only those too long to guess: the run's owner chooses its inputs.
    """
    spec_bodies = list(iter_spec_bodies(run))
    tools = [tool for body in spec_bodies for tool in body.get("tools", [])]
    configs = [tool.get("config", {}) for tool in tools]
    tool_ids = [tool.get("tool_id") for tool in tools]
    servers = McpServer.objects.filter(
        Q(pk__in=_ids(config.get("mcp_server") for config in configs))
        | Q(tool__in=_ids(tool_ids))
    )
    credentials = Credential.objects.filter(
        Q(owner=run.owner)
        | Q(pk__in=_ids(config.get("credential") for config in configs))
        | Q(tool__in=_ids(tool_ids))
        | Q(mcpserver__in=servers)
    )
    models = [body.get("model") or {} for body in spec_bodies]
    providers = Provider.objects.filter(
        Q(owner=run.owner)
        | Q(pk__in=_ids(model.get("provider_id") for model in models))
    )
    rows: list[Credential | Provider] = [*credentials.distinct(), *providers]
    found = [
        secret
        for row in rows
        for secret in unseal_secrets(row)
        if row.owner_id == run.owner_id or len(secret) >= MIN_UNGUESSABLE_LENGTH
    ]
    for sign_in in McpSignIn.objects.filter(server__in=servers):
        with suppress(SecretUnreadable):
            found.append(unseal(sign_in.sealed_access_token))
    return found


def _ids(found: Iterable[Any]) -> set[int]:
    return {pk for pk in found if isinstance(pk, int)}


def iter_spec_bodies(run: Run) -> Iterator[dict[str, Any]]:
    """Yield the stored specs of a run and of the runs below it."""
    yield run.spec.body
    above = [run.pk]
    while above:
        runs = Run.objects.filter(parent_step__run__in=above).select_related("spec")
        yield from (child.spec.body for child in runs)
        above = [child.pk for child in runs]


def unseal_secrets(row: Credential | Provider) -> list[str]:
    """Return the secrets of a row; none if they cannot be decrypted."""
    with suppress(SecretUnreadable):
        if isinstance(row, Credential):
            return [unseal(row.sealed)] if row.sealed else []
        values = (value for _name, value in row.headers())
        return [secret for secret in (row.key(), *values) if secret]
    return []
