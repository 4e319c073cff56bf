"""Text of models on a page: Markdown, sanitized, and colored code and JSON."""

import json
import re
from typing import Any

import nh3
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

MAX_RENDERED_CHARACTERS = 200_000
"""Characters that are rendered; longer texts are shown as they are."""
MAX_HIGHLIGHTED_CHARACTERS = 50_000

HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
TABLES = {"table", "thead", "tbody", "tr", "th", "td"}
BLOCKS = {"p", "br", "hr", "blockquote", "ul", "ol", "li", "pre"}
TAGS = HEADINGS | TABLES | BLOCKS | {"strong", "em", "s", "del", "code", "a", "span"}
ATTRIBUTES = {
    "a": {"href", "title"},
    "code": {"class"},
    "pre": {"class"},
    "span": {"class"},
    "ol": {"start"},
}
SCHEMES = {"http", "https", "mailto"}

CODE_FORMATTER = HtmlFormatter(nowrap=True, classprefix="h-")
JSON_TOKEN = re.compile(
    r'(?P<k>"(?:[^"\\]|\\.)*")(?=\s*:)|(?P<s>"(?:[^"\\]|\\.)*")'
    r"|(?P<n>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\btrue\b|\bfalse\b|\bnull\b)"
)


def highlight_code(code: str, language: str, _attributes: str = "") -> str:
    """Return `code` with spans, or escaped if its language is unknown."""
    if language and len(code) <= MAX_HIGHLIGHTED_CHARACTERS:
        try:
            lexer = get_lexer_by_name(language)
        except ClassNotFound:
            return escape(code)
        return str(highlight(code, lexer, CODE_FORMATTER))
    return escape(code)


PARSER = (
    MarkdownIt("commonmark", {"html": False, "highlight": highlight_code})
    .enable(["table", "strikethrough"])
    .disable(["image", "html_block", "html_inline"])
)


def render_markdown(text: str) -> SafeString:
    """Return hostile Markdown as HTML without scripts, styles, images or raw HTML."""
    if len(text) > MAX_RENDERED_CHARACTERS:
        return format_html('<pre class="code plain">{}</pre>', text)
    clean = nh3.clean(
        PARSER.render(text), tags=TAGS, attributes=ATTRIBUTES, url_schemes=SCHEMES
    )
    return mark_safe(clean)  # noqa: S308  # sanitized in the line above


def render_json(value: Any) -> SafeString:
    """Return a JSON value, indented and colored."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    if len(text) > MAX_RENDERED_CHARACTERS:
        return mark_safe(escape(text))  # noqa: S308  # escaped right here
    pieces: list[str] = []
    last = 0
    for match in JSON_TOKEN.finditer(text):
        pieces.append(escape(text[last : match.start()]))
        pieces.append(f'<span class="{match.lastgroup}">{escape(match[0])}</span>')
        last = match.end()
    pieces.append(escape(text[last:]))
    return mark_safe("".join(pieces))  # noqa: S308  # every piece is escaped


def render_json_or_text(text: str) -> SafeString:
    """Return a result as it reads best: JSON indented, other text as it is."""
    start = text.lstrip()[:1]
    if start in {"{", "["} and len(text) <= MAX_RENDERED_CHARACTERS:
        try:
            return render_json(json.loads(text))
        except (ValueError, RecursionError):  # no JSON, or nested too deeply
            pass
    return mark_safe(escape(text))  # noqa: S308  # escaped right here
