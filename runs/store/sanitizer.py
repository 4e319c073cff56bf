"""Make text of models and tools safe to store, and remove known secrets."""

import re
from collections.abc import Iterable
from typing import Any

from runs.engine.parsing.clean import clean_json, clean_text
from runs.engine.types import Reply
from tools.text.secret_spellings import list_secret_spellings

HIDDEN = "[secret removed]"
MIN_SECRET_LENGTH = 6
"""Removing shorter secrets would blank ordinary words."""
MIN_UNGUESSABLE_LENGTH = 16
"""Shorter secrets of others stay in texts that a run's owner can choose.

Whoever enters guesses would find the right one by its gap.
"""


class Sanitizer:
    """Cleans text from outside and removes the secrets a run uses."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        longest_first = sorted(
            {
                spelling
                for secret in secrets
                if len(secret) >= MIN_SECRET_LENGTH
                for spelling in list_secret_spellings(secret)
            },
            key=len,
            reverse=True,
        )
        self.secrets = tuple(longest_first)
        self.longest = len(longest_first[0]) if longest_first else 0
        self._secrets = (
            re.compile("|".join(map(re.escape, longest_first)))
            if longest_first
            else None
        )

    def text(self, text: str) -> str:
        """Return `text` as it may be stored and shown."""
        text = clean_text(text)
        return self._secrets.sub(HIDDEN, text) if self._secrets else text

    def json(self, value: Any) -> Any:
        """Return a JSON value as it may be stored and shown."""
        return self._hide(clean_json(value))

    def reply(self, reply: Reply) -> Reply:
        """Return a reply as it may be stored; the engine sees this one too."""
        shape = reply.model_dump(mode="json")
        safe = self.json(shape)
        if safe == shape and shape["native"] == reply.native:  # NaN is null in a shape
            return reply
        return Reply.model_validate(safe)

    def stream(self) -> "StreamSanitizer":
        """Return a sanitizer for text that comes in chunks."""
        return StreamSanitizer(self)

    def find_partial_secret(self, text: str) -> int:
        """Return where a secret may begin that the next chunk could complete."""
        for length in range(min(len(text), self.longest - 1), 0, -1):
            if any(secret.startswith(text[-length:]) for secret in self.secrets):
                return len(text) - length
        return len(text)

    def _hide(self, value: Any) -> Any:
        if self._secrets is None:
            return value
        if isinstance(value, str):
            return self._secrets.sub(HIDDEN, value)
        if isinstance(value, list):
            return [self._hide(item) for item in value]
        if isinstance(value, dict):
            return {self._hide(key): self._hide(item) for key, item in value.items()}
        return value


class StreamSanitizer:
    """Removes secrets from chunks of text, even if split between two chunks."""

    def __init__(self, sanitizer: Sanitizer) -> None:
        self.sanitizer = sanitizer
        self.tail = ""

    def feed(self, piece: str) -> str:
        """Return what may be shown now; a possible start of a secret is held back."""
        text = self.sanitizer.text(self.tail + piece)
        cut = self.sanitizer.find_partial_secret(text)
        self.tail = text[cut:]
        return text[:cut]
