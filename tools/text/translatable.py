"""Stored sentences that pages translate.

A `TranslatableText` is the English sentence, so that the API, files and logs use it as
any other text. It also has the message and the values that the sentence is made of,
from which a page writes it in the language of its viewer.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Self

STORED_SEPARATOR = "\x1e"
"""Between the English sentence and its parts in the database; never in other texts."""
REPLACEMENT = "\ufffd"


class Sentence(NamedTuple):
    """A message of the catalog, and the values of its placeholders."""

    msgid: str
    values: dict[str, str]

    def render(self, gettext: Callable[[str], str]) -> str:
        text = gettext(self.msgid)
        return text % self.values if self.values else text


SentencePart = Sentence | str
"""A text of somebody else, such as a model, is a part that is not translated."""


class TranslatableText(str):
    """A text in English, and the parts from which it is translated."""

    parts: tuple[SentencePart, ...]

    def __new__(cls, text: str, parts: Iterable[SentencePart] = ()) -> Self:
        made = super().__new__(cls, text)
        made.parts = tuple(parts)
        return made

    def __str__(self) -> Self:
        """Return it with its parts, which `str` of an error then has, too."""
        return self

    @classmethod
    def from_parts(cls, parts: Iterable[SentencePart]) -> Self:
        """Return the text; a space separates its parts unless a line ends there."""
        found = tuple(parts)
        return cls(_render_parts(found, lambda msgid: msgid), found)

    def render(self, gettext: Callable[[str], str]) -> str:
        return _render_parts(self.parts, gettext)


def translatable(msgid: str, /, **values: object) -> TranslatableText:
    """Return a sentence of the catalog, which `update_translations` collects.

    `msgid` is a literal with placeholders such as `%(name)s`.
    """
    texts = {name: str(value) for name, value in values.items()}
    return TranslatableText.from_parts([Sentence(msgid, texts)])


def join_sentences(texts: Iterable[str]) -> str:
    """Return whole sentences, one after the other; empty ones are left out."""
    parts: list[SentencePart] = []
    for text in texts:
        if text:
            parts += text.parts if isinstance(text, TranslatableText) else [text]
    if any(isinstance(one, Sentence) for one in parts):
        return TranslatableText.from_parts(parts)
    return _render_parts(parts, str)


def change_text(text: str, change: Callable[[str], str]) -> str:
    """Return a text that `change` was applied to: to its values if it has some."""
    if not isinstance(text, TranslatableText):
        return change(text)
    return TranslatableText.from_parts(
        change(part)
        if isinstance(part, str)
        else Sentence(part.msgid, {k: change(v) for k, v in part.values.items()})
        for part in text.parts
    )


def translate_text(text: str, gettext: Callable[[str], str]) -> str:
    """Return a text in the language of `gettext`; one without parts as it is."""
    return text.render(gettext) if isinstance(text, TranslatableText) else text


def localize_text(text: str, gettext: Callable[[str], str]) -> str:
    """Return the same as `translate_text`, with the parts of the text."""
    if not isinstance(text, TranslatableText):
        return text
    return TranslatableText(text.render(gettext), text.parts)


def encode_stored_text(text: str) -> str:
    """Return the text as a column holds it: in English, then its parts as JSON."""
    plain = translate_text(text, str).replace(STORED_SEPARATOR, REPLACEMENT)
    if not isinstance(text, TranslatableText):
        return plain
    return f"{plain}{STORED_SEPARATOR}{json.dumps(text.parts)}"


def decode_stored_text(stored: str) -> str:
    """Return what `encode_stored_text` was given; other texts as they are."""
    plain, separator, encoded = stored.partition(STORED_SEPARATOR)
    if not separator:
        return stored
    try:
        return TranslatableText(plain, map(_read_part, json.loads(encoded)))
    except (ValueError, TypeError, RecursionError):
        return stored


def _read_part(part: Any) -> SentencePart:
    if isinstance(part, str):
        return part
    msgid, values = part
    sentence = Sentence(str(msgid), dict(values))
    if not sentence.msgid:
        raise ValueError("A message is not empty.")
    return sentence


def _render_parts(parts: Iterable[SentencePart], gettext: Callable[[str], str]) -> str:
    text = ""
    for part in parts:
        gap = " " if text and not text.endswith("\n") else ""
        text += gap + (part if isinstance(part, str) else part.render(gettext))
    return text
