"""Text of models on a page: Markdown, sanitized, and colored code and JSON."""

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from threading import Lock
from time import monotonic
from typing import Any

import nh3
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from runs.ui.code_colors import CodeColors

MAX_RENDERED_CHARACTERS = 200_000
"""Characters that are rendered; longer texts are shown as they are."""
MARKUP = "\n[]*_~`<>&!\\|#"
MAX_MARKUP_CHARACTERS = 25_000
"""Characters of `MARKUP`, which cost time; texts with more are shown as they are."""
MAX_CACHED_CHARACTERS = 4_000_000
"""Characters of HTML kept by a process, so that another look costs nothing."""

SHORT_TEXT = 1_000
"""Characters up to which a text is rendered at once: no such text costs much."""
MAX_WAIT_SECONDS = 0.5
"""Time that a text waits for its turn; then it is shown as it is."""
MAX_SECONDS_PER_PAGE = 1.0

HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
TABLES = {"table", "thead", "tbody", "tr", "th", "td"}
BLOCKS = {"p", "br", "hr", "blockquote", "ul", "ol", "li", "pre"}
TAGS = HEADINGS | TABLES | BLOCKS | {"strong", "em", "s", "del", "code", "a", "span"}
DIRECTED = {*HEADINGS, "p", "blockquote", "ul", "ol", "table"}
"""Blocks that follow the direction of their text, if they are in no other."""
ATTRIBUTES = dict.fromkeys(DIRECTED, {"dir"}) | {
    "a": {"href", "title"},
    "code": {"class", "dir"},
    "pre": {"class"},
    "span": {"class"},
    "ol": {"start", "dir"},
}
SCHEMES = {"http", "https", "mailto"}

JSON_TOKEN = re.compile(
    r'(?P<k>"(?:[^"\\]|\\.)*")(?=\s*:)|(?P<s>"(?:[^"\\]|\\.)*")'
    r"|(?P<n>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\btrue\b|\bfalse\b|\bnull\b)"
)

CODE_LANGUAGE = re.compile(r'<pre>(<code class="language-([\w+#.-]{1,30})")')


class HtmlCache:
    """HTML of recent texts by their hash, at most `limit` characters of it."""

    def __init__(self, limit: int) -> None:
        self.limit, self.size = limit, 0
        self.lock = Lock()
        self.pages: OrderedDict[bytes, SafeString] = OrderedDict()

    def get(self, key: bytes) -> SafeString | None:
        with self.lock:
            if key in self.pages:
                self.pages.move_to_end(key)
            return self.pages.get(key)

    def add(self, key: bytes, html: SafeString) -> None:
        with self.lock:
            self.size += len(html) - len(self.pages.pop(key, ""))
            self.pages[key] = html
            while self.size > self.limit:
                self.size -= len(self.pages.popitem(last=False)[1])


def render_fence(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    env: EnvType,
) -> str:
    """Return a code block, colored within the budget of its text."""
    own = OptionsDict({**options, "highlight": env["colors"].highlight})  # type: ignore[typeddict-item]  # any mapping
    return renderer.fence(tokens, index, own, env)


def set_directions(state: StateCore) -> None:
    """Let each block follow the direction of its text; code is left-to-right.

    Blocks within others have the same direction: the text of a list would not count for
    the list if its paragraphs had directions of their own.
    """
    for token in state.tokens:
        if token.level == 0 and token.nesting == 1 and token.tag in DIRECTED:
            token.attrSet("dir", "auto")
        for child in token.children or ():
            if child.type == "code_inline":
                child.attrSet("dir", "ltr")


PARSER = (
    MarkdownIt("commonmark", {"html": False})
    .enable(["table", "strikethrough"])
    .disable(["image", "html_block", "html_inline"])
)
PARSER.add_render_rule("fence", render_fence)
PARSER.core.ruler.push("directions", set_directions)
CACHE = HtmlCache(MAX_CACHED_CHARACTERS)
TURN = Lock()
"""Held while a long text is rendered, so that a process renders one at a time.

Several at once would leave no time for other requests, and render the same text twice.
"""


class PageBudget:
    """The time that one page may spend on its texts, waiting for a turn included."""

    def __init__(self, seconds: float = MAX_SECONDS_PER_PAGE) -> None:
        self.seconds = seconds

    def render(
        self,
        render: Callable[[str], SafeString],
        text: str,
        *,
        otherwise: Callable[[str], SafeString],
    ) -> SafeString:
        """Return the rendered text; once the time is over, a long one `otherwise`."""
        if self.seconds <= 0 and len(text) > SHORT_TEXT:
            return otherwise(text)
        with self.count_time():
            return render(text)

    @contextmanager
    def count_time(self) -> Iterator[None]:
        started = monotonic()
        try:
            yield
        finally:
            self.seconds -= monotonic() - started


def render_markdown(text: str) -> SafeString:
    """Return hostile Markdown as HTML without scripts, styles, images or raw HTML.

    A text whose turn does not come soon is shown as it is, so that hostile texts do not
    occupy all threads of the process.
    """
    if not SHORT_TEXT < len(text) <= MAX_RENDERED_CHARACTERS:
        return render_markdown_now(text)  # cheap, or not rendered at all
    key = hash_text(text)
    if (html := CACHE.get(key)) is not None:
        return html
    if not TURN.acquire(timeout=MAX_WAIT_SECONDS):
        return show_as_it_is(text)
    try:
        return render_markdown_now(text)
    finally:
        TURN.release()


def render_markdown_now(text: str) -> SafeString:
    """Return the same without waiting for a turn."""
    if len(text) > MAX_RENDERED_CHARACTERS or (
        sum(map(text.count, MARKUP)) > MAX_MARKUP_CHARACTERS
    ):
        return show_as_it_is(text)
    key = hash_text(text)
    html = CACHE.get(key)
    if html is None:
        html = _render_markdown(text)
        CACHE.add(key, html)
    return html


def hash_text(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def show_as_it_is(text: str) -> SafeString:
    """Return the source of a text that is not rendered."""
    return format_html('<pre class="code plain">{}</pre>', text)


def _render_markdown(text: str) -> SafeString:
    return sanitize_html(PARSER.render(text, {"colors": CodeColors()}))


def sanitize_html(html: str) -> SafeString:
    """Return HTML of a parser with what a page may show.

    A block of code names its language, which pages show above it.
    """
    clean = nh3.clean(html, tags=TAGS, attributes=ATTRIBUTES, url_schemes=SCHEMES)
    named = CODE_LANGUAGE.sub(r'<pre data-language="\2">\1', clean)
    return mark_safe(named)  # noqa: S308  # sanitized two lines above


def render_json(value: Any) -> SafeString:
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
