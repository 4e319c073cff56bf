"""A call's arguments exactly as they are: nothing hides or turns itself around."""

import json
import unicodedata
from typing import Any, NamedTuple

from django.utils.html import conditional_escape, escape, format_html
from django.utils.safestring import SafeString, mark_safe

from tools.audit.masks import SECRET_NAME

LONGEST = 100_000
"""Characters shown; the rest is in the file."""
FILLERS = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and symbols that draw nothing."""
HIDING = frozenset({"Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp", "Zs"})
PLAIN = " \n\t\u3000"
"""Of those categories, what everybody sees as it is."""


class Exact(NamedTuple):
    """Arguments as they are shown."""

    html: SafeString
    odd: int = 0
    """How many characters are shown by their number, since they draw nothing."""
    cut: int = 0
    """How many characters are left out at the end."""


def exact(value: Any) -> Exact:
    """Return a JSON value, or a plain text, as a person may trust it.

    Values under names that secrets have are covered until somebody opens them.
    """
    text = value if isinstance(value, str) else as_json(value)
    odd = sum(map(is_odd, text))
    if len(text) > LONGEST:
        return Exact(visible(text[:LONGEST]), odd, len(text) - LONGEST)
    if isinstance(value, str):
        return Exact(visible(text), odd)
    try:
        return Exact(mark_safe("".join(pieces(value))), odd)  # noqa: S308  # each piece is escaped
    except RecursionError:
        return Exact(visible(text), odd)


def as_json(value: Any) -> str:
    """Return JSON for people."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def is_odd(character: str) -> bool:
    """Whether a character is invisible, or changes how others are shown."""
    if " " <= character <= "~" or character in PLAIN:
        return False
    return (
        character in FILLERS
        or unicodedata.category(character) in HIDING
        or "\ufe00" <= character <= "\ufe0f"
        or "\U000e0100" <= character <= "\U000e01ef"
    )


def visible(text: str) -> SafeString:
    """Return escaped text in which odd characters are shown by their numbers."""
    plain = text.isascii() and text.isprintable()
    if plain or not any(map(is_odd, text)):
        return SafeString(escape(text))
    return mark_safe("".join(map(shown, text)))  # noqa: S308  # each is escaped


def shown(character: str) -> str:
    """Return one character, escaped, or its number with its name as a title."""
    if not is_odd(character):
        return str(conditional_escape(character))
    return format_html(
        '<span class="odd" title="{}">U+{}</span>',
        unicodedata.name(character, "a control character"),
        f"{ord(character):04X}",
    )


def pieces(value: Any, *, name: str = "", indent: str = "") -> list[str]:
    """Return the JSON of a value in coloured pieces."""
    inner = f"{indent}  "
    if isinstance(value, dict) and value:
        found = ["{\n"]
        for key, one in value.items():
            label = visible(json.dumps(key, ensure_ascii=False))
            found.append(f'{inner}<span class="k">{label}</span>: ')
            found += [*pieces(one, name=key, indent=inner), ",\n"]
        return [*found[:-1], f"\n{indent}}}"]
    if isinstance(value, list) and value:
        found = ["[\n"]
        for one in value:
            found += [inner, *pieces(one, name=name, indent=inner), ",\n"]
        return [*found[:-1], f"\n{indent}]"]
    text = visible(json.dumps(value, ensure_ascii=False))
    kind = "s" if isinstance(value, str) else "n"
    whole = f'<span class="{kind}">{text}</span>'
    if isinstance(value, str) and value and SECRET_NAME.search(name):
        words = f"covered, {len(value)} characters"
        return [f"<details><summary>{words}</summary>{whole}</details>"]
    return [whole]
