"""Hostile text made readable: what an eye would miss is named in its place."""

import unicodedata

from django.utils.html import escape
from django.utils.safestring import SafeString

HIDDEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Categories without a shape of their own."""

BLANK_CHARACTERS = {
    *("\u034f", "\u115f", "\u1160", "\u17b4", "\u17b5", "\u2800", "\u3164", "\uffa0"),
    *map(chr, range(0x180B, 0x1810)),
    *map(chr, range(0xFE00, 0xFE10)),
    *map(chr, range(0xE0100, 0xE01F0)),
}
"""Letters and marks that look like nothing."""


def is_hidden(char: str) -> bool:
    """Whether `char` shows nothing, or looks like a plain space and is none."""
    if char in " \n\t":
        return False
    if char in BLANK_CHARACTERS:
        return True
    category = unicodedata.category(char)
    return category in HIDDEN_CATEGORIES or category == "Zs"


def render_visible_text(text: str) -> SafeString:
    """Return `text` as HTML: escaped, each hidden character as its marked number."""
    parts = [
        f'<mark class="unseen">U+{ord(char):04X}</mark>' if is_hidden(char) else char
        for char in escape(text)
    ]
    return SafeString("".join(parts))  # escaped above
