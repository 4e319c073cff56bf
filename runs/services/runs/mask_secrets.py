"""What leaves the site with a run: its texts without anything that looks secret.

Stored text has lost the secrets of its own provider already. Here every secret that
the site knows goes, and whatever has the shape of one.
"""

import json
import re
from contextlib import suppress
from typing import Any

from runs.models import Provider, Run
from runs.services.redact import HIDDEN, Choke
from tools.models import Credential
from tools.secrets import SecretUnreadable, unseal

SECRET_NAME = re.compile(
    r"(?i)^(.*[-_])?(password|passwd|passphrase|secret|token|api[-_]?key|access[-_]?key"
    r"|private[-_]?key|authorization|cookie|credentials?|signature)$"
)
# Every repetition that something must follow has a bound: the texts are hostile.
SHAPES = re.compile(
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
AFTER_WORD = re.compile(r"(?i)\b(bearer|basic)(\s+)[A-Za-z0-9._~+/=-]{12,}")
ASSIGNED = re.compile(
    r"(?i)\b((?:[a-z0-9]{1,30}[-_]){0,4}(?:password|passwd|passphrase|secret|token|api[-_]?key"
    r"|access[-_]?key|private[-_]?key|authorization)[\"'\\]*\s*[:=]\s*[\"'\\]*)"
    r"(?!bearer\b|basic\b)([^\s\"'\\,;&<>(){}\[\]]{4,})"
)
IN_ADDRESS = re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)")


class Mask:
    """Takes secrets out of the texts of one run."""

    def __init__(self, run: Run) -> None:
        people = (run.owner.email, run.agent.owner.email)
        self.choke = Choke([*known_secrets(), *filter(None, people)])
        self.keys: dict[str, str] = {}
        """Names of fields, masked once: they repeat."""

    def text(self, text: str) -> str:
        """Return `text` without secrets."""
        text = SHAPES.sub(HIDDEN, self.choke.text(text))
        text = IN_ADDRESS.sub(HIDDEN, text)
        text = AFTER_WORD.sub(rf"\1\2{HIDDEN}", text)
        return ASSIGNED.sub(rf"\1{HIDDEN}", text)

    def json(self, value: Any, *, name: str = "") -> Any:
        """Return a JSON value without secrets, by name and by shape."""
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
        if name not in self.keys:
            self.keys[name] = self.text(name)
        return self.keys[name]

    def either(self, text: str) -> str:
        """Return a text that may be JSON, masked by the names in it as well."""
        if text.lstrip()[:1] in {"{", "["}:
            with suppress(ValueError, RecursionError):  # no JSON after all
                value = json.loads(text)
                masked = self.json(value)
                if masked != value:
                    return json.dumps(masked, ensure_ascii=False, indent=2)
        return self.text(text)


def known_secrets() -> list[str]:
    """Return every secret that this site keeps and can open."""
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
