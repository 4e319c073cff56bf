"""Mask secrets in the texts of a run that leaves the site.

Stored text is free of the secrets of its own provider. Here every secret of the site is
removed, and whatever looks like one.
"""

import json
import re
from contextlib import suppress
from typing import Any

from runs.models import Provider, Run
from runs.store.sanitizer import HIDDEN, Sanitizer
from tools.models import Credential
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


class SecretMask:
    """Removes secrets from the texts of one run."""

    def __init__(self, run: Run) -> None:
        people = (run.owner.email, run.agent.owner.email)
        self.sanitizer = Sanitizer([*load_known_secrets(), *filter(None, people)])
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


def load_known_secrets() -> list[str]:
    """Return every secret that this site stores and can decrypt."""
    found: list[str] = []
    for sealed in Credential.objects.exclude(sealed="").values_list(
        "sealed", flat=True
    ):
        with suppress(SecretUnreadable):
            found.append(unseal(sealed))
    for provider in Provider.objects.all():
        with suppress(SecretUnreadable):
            found += [provider.key(), *(value for _, value in provider.headers())]
    return [secret for secret in found if secret]
