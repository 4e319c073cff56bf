"""JSON with line breaks and colors."""

import json
import re
from collections.abc import Iterator

from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from tools.text.storable import replace_unstorable

MAX_COLORED = 50_000
"""Characters; a longer text has no colors."""
TOKEN = re.compile(
    r'(?P<k>"(?:[^"\\]|\\.)*")(?=:)|(?P<s>"(?:[^"\\]|\\.)*")'
    r"|(?P<n>-?\d[\d.eE+-]*|true|false|null)"
)
"""Names, texts and other values, by the class that colors them."""


def render_colored_json(text: str) -> SafeString | str:
    """Return JSON for people; a text that is not JSON as it is."""
    try:
        indented = json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return replace_unstorable(text)
    shown = replace_unstorable(indented)  # JSON can escape half a character
    if len(shown) > MAX_COLORED:
        return shown
    return format_html_join("", '<span class="{}">{}</span>', iter_pieces(shown))


def iter_pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield a class, empty for none, and the text that has it."""
    at = 0
    for match in TOKEN.finditer(text):
        if match.start() > at:
            yield "", text[at : match.start()]
        yield match.lastgroup or "", match[0]
        at = match.end()
    if at < len(text):
        yield "", text[at:]
