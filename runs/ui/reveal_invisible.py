"""Arguments of a call as HTML that reveals invisible and bidirectional characters."""

import json
import unicodedata
from typing import Any, NamedTuple

from django.utils.html import conditional_escape, escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import ngettext

from runs.services.approvals.by_link import (
    MAX_SHOWN_CHARACTERS,
    format_linked_arguments,
)
from tools.audit.masking import SECRET_NAME

BLANK_LETTERS = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and symbols without a visible shape."""
INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp", "Zs"})
PLAIN_WHITESPACE = " \n\t\u3000"
"""Characters of those categories that are shown as they are."""


class RevealedValue(NamedTuple):
    """Arguments as HTML."""

    html: SafeString
    invisible_count: int = 0
    """Number of invisible characters, which are shown by their code points."""
    omitted_count: int = 0
    """Number of characters cut at the end."""


def reveal_value(value: Any) -> RevealedValue:
    """Return a JSON value, or a plain text, as HTML that hides nothing.

    Values under names of secrets are collapsed until they are opened.
    """
    text = format_linked_arguments(value)
    odd = sum(map(is_invisible, text))
    if len(text) > MAX_SHOWN_CHARACTERS:
        return RevealedValue(
            reveal_text(text[:MAX_SHOWN_CHARACTERS]),
            odd,
            len(text) - MAX_SHOWN_CHARACTERS,
        )
    if isinstance(value, str):
        return RevealedValue(reveal_text(text), odd)
    try:
        return RevealedValue(mark_safe("".join(render_json_pieces(value))), odd)  # noqa: S308  # each piece is escaped
    except RecursionError:
        return RevealedValue(reveal_text(text), odd)


def dump_readable_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def is_invisible(character: str) -> bool:
    """Whether a character is invisible, or changes how other characters look."""
    if " " <= character <= "~" or character in PLAIN_WHITESPACE:
        return False
    return (
        character in BLANK_LETTERS
        or unicodedata.category(character) in INVISIBLE_CATEGORIES
        or "\ufe00" <= character <= "\ufe0f"
        or "\U000e0100" <= character <= "\U000e01ef"
    )


def reveal_text(text: str) -> SafeString:
    """Return escaped text with invisible characters shown by their code points."""
    plain = text.isascii() and text.isprintable()
    if plain or not any(map(is_invisible, text)):
        return SafeString(escape(text))
    return mark_safe("".join(map(reveal_character, text)))  # noqa: S308  # each is escaped


def reveal_character(character: str) -> str:
    """Return a character escaped, or its code point with its name as the title."""
    if not is_invisible(character):
        return str(conditional_escape(character))
    return format_html(
        '<span class="odd" title="{}">U+{}</span>',
        unicodedata.name(character, "CONTROL CHARACTER"),
        f"{ord(character):04X}",
    )


def render_json_pieces(value: Any, *, name: str = "", indent: str = "") -> list[str]:
    inner = f"{indent}  "
    if isinstance(value, dict) and value:
        found = ["{\n"]
        for key, one in value.items():
            label = reveal_text(json.dumps(key, ensure_ascii=False))
            found.append(f'{inner}<span class="k">{label}</span>: ')
            found += [*render_json_pieces(one, name=key, indent=inner), ",\n"]
        return [*found[:-1], f"\n{indent}}}"]
    if isinstance(value, list) and value:
        found = ["[\n"]
        for one in value:
            found += [inner, *render_json_pieces(one, name=name, indent=inner), ",\n"]
        return [*found[:-1], f"\n{indent}]"]
    text = reveal_text(json.dumps(value, ensure_ascii=False))
    kind = "s" if isinstance(value, str) else "n"
    whole = f'<span class="{kind}">{text}</span>'
    if isinstance(value, str) and value and SECRET_NAME.search(name):
        words = ngettext(
            "hidden, %(count)s character", "hidden, %(count)s characters", len(value)
        ) % {"count": len(value)}
        return [f"<details><summary>{words}</summary>{whole}</details>"]
    return [whole]
