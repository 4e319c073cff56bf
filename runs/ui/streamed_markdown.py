"""Markdown that is still being written: finished blocks once, the open block anew.

A block is finished once another one has begun after it. Only the open block is parsed
again, and only after it has grown by a part of its length, so that the cost of a text
grows with its length however long its blocks are. A very long one that is not code is
shown as text, and parsed after it has grown by half.
"""

import re
from dataclasses import dataclass, field
from itertools import islice

import nh3
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

from runs.ui.markdown import (
    ATTRIBUTES,
    MAX_RENDERED_CHARACTERS,
    SCHEMES,
    TAGS,
    render_markdown,
)

SHORT_BLOCK = 640
"""Characters up to which an open block is rendered with each piece of text."""
GROWTH = 16
"""A longer one is rendered when it has grown by this part of what exceeds that."""

# As the parser of stored text, but code is colored only when its block is finished.
OPEN_PARSER = (
    MarkdownIt("commonmark", {"html": False})
    .enable(["table", "strikethrough"])
    .disable(["image", "html_block", "html_inline"])
)
BLOCK_PARSER = (
    MarkdownIt("commonmark", {"html": False})
    .enable("table")
    .disable(["html_block", "inline"])
)
"""Finds blocks, whatever is in them."""
MAX_OPEN_BLOCK = 20_000
"""Characters of an open block that are rendered; a longer one is shown as text."""
MAX_CLOSED_LINE = 2_000
"""Characters of a line in which open marks are closed."""
BARE_MARKER = re.compile(r"\s*(?:[-*+>|=_]+|#{1,6}|\d{1,9}[.)]?|`+[^`]*|~+[^~]*)?\s*")
"""A last line of which nobody knows yet what it begins."""
OPEN_LINK = re.compile(r"!?\[([^\[\]]*)(?:\](?:\([^()\s]*)?)?$")
LINE_END = re.compile(r"\r\n|\r|\n")
EMPHASIS = ("**", "~~", "*")


@dataclass
class FinishedBlock:
    """A rendered block."""

    html: SafeString
    known_at: int
    """Length of the text when it was known to be finished."""


@dataclass
class StreamedMarkdown:
    """The rendering of a text that grows."""

    blocks: list[FinishedBlock] = field(default_factory=list)
    open_html: SafeString = SafeString("")
    rendered_at: int = 0
    """Length of the text when the open block was last rendered."""
    _open_from: int = 0
    _parse_from: int = 0
    """Length of the text at which a very long open block is parsed again."""

    def advance(self, text: str) -> None:
        """Take in the text so far, which begins with the text before."""
        if len(text) > MAX_RENDERED_CHARACTERS:
            return
        excess = self.rendered_at - self._open_from - SHORT_BLOCK
        if len(text) - self.rendered_at <= max(excess, 0) // GROWTH:
            return
        self.rendered_at = len(text)
        rest = text[self._open_from :]
        if len(text) < self._parse_from:
            self.open_html = show_as_text(rest)
            return
        if finished := find_open_block(rest):
            block = render_markdown(rest[:finished])
            self.blocks.append(FinishedBlock(block, len(text)))
            self._open_from += finished
            rest = rest[finished:]
        is_code = ends_in_code(rest)
        if len(rest) > MAX_OPEN_BLOCK and not is_code:
            self._parse_from = len(text) + len(rest) // 2
            self.open_html = show_as_text(rest)
        else:
            self.open_html = render_open_block(rest, is_code=is_code)


def find_open_block(text: str) -> int:
    """Return where the last block begins, as far as whole lines show."""
    lines = text[: text.rfind("\n") + 1]
    tokens = BLOCK_PARSER.parse(lines)
    starts = [token.map[0] for token in tokens if token.level == 0 and token.map]
    if not starts or not starts[-1]:
        return 0
    ends = (match.end() for match in LINE_END.finditer(lines))
    return next(islice(ends, starts[-1] - 1, None))


def ends_in_code(text: str) -> bool:
    tokens = BLOCK_PARSER.parse(text)
    last = next((one for one in reversed(tokens) if not one.nesting), None)
    return last is not None and last.type in {"fence", "code_block"}


def show_as_text(text: str) -> SafeString:
    return format_html('<p class="plain-text">{}</p>', text)


def render_open_block(text: str, *, is_code: bool) -> SafeString:
    """Return the block that is being written, with what is open in it closed."""
    html = OPEN_PARSER.render(text if is_code else close_open_marks(text))
    clean = nh3.clean(html, tags=TAGS, attributes=ATTRIBUTES, url_schemes=SCHEMES)
    return mark_safe(clean)  # noqa: S308  # sanitized in the line above


def close_open_marks(text: str) -> str:
    """Return a block without what would be shown raw until it is complete.

    Rows of a table and markers of blocks wait for their end; emphasis, code and links
    are closed where the text ends.
    """
    *before, line = text.split("\n")
    if line.lstrip().startswith("|"):
        line = ""
    if all(one.lstrip().startswith("|") for one in before) and len(before) < 2:
        before = []  # the head of a table shows what it is with the line below it
    if BARE_MARKER.fullmatch(line):
        return "\n".join(before)
    if len(line) <= MAX_CLOSED_LINE:
        line = close_line(line)
    return "\n".join([*before, line])


def close_line(line: str) -> str:
    """Return a line with its open emphasis, code and link closed."""
    line = OPEN_LINK.sub(r"\1", line)
    if line.endswith("~") and not line.endswith("~~"):
        line = line[:-1]
    marks: list[str] = []
    at = 0
    while at < len(line):
        if line[at] == "\\":
            at += 2
            continue
        mark = read_mark(line, at)
        if mark.startswith("`"):
            end = line.find(mark, at + len(mark))
            if end < 0:
                rest = line[at + len(mark) :].rstrip("`")
                return line + mark if rest.strip() else line[:at].rstrip()
            at = end
        elif mark and (mark not in marks):
            if not line[at + len(mark) :].strip(" *~"):
                return line[:at].rstrip() + "".join(reversed(marks))
            if not line[at + len(mark)].isspace():
                marks.append(mark)
        elif mark:
            marks.remove(mark)
        at += len(mark) or 1
    return line.rstrip() + "".join(reversed(marks))


def read_mark(line: str, at: int) -> str:
    """Return the mark of emphasis or code at a place of `line`; empty without one."""
    if line[at] == "`":
        return line[at : len(line) - len(line[at:].lstrip("`"))]
    return next((mark for mark in EMPHASIS if line.startswith(mark, at)), "")
