"""Markdown that is still being written: finished blocks once, the open block anew.

A block is finished once another one has begun after it. Only the open block is parsed
again, and only after it has grown by a part of its length, so that the cost of a text
grows with its length however long its blocks are. Complete items of a long list, and
rows of a long table, are finished too. Any other very long block that is not code is
shown as text up to the next blank line.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from django.utils.html import format_html
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt

from runs.ui.growing_block import (
    GrowingBlock,
    find_line,
    read_whole_lines,
    start_growing,
)
from runs.ui.markdown import (
    MAX_RENDERED_CHARACTERS,
    render_markdown_now,
    sanitize_html,
    set_directions,
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
OPEN_PARSER.core.ruler.push("directions", set_directions)
BLOCK_PARSER = (
    MarkdownIt("commonmark", {"html": False})
    .enable("table")
    .disable(["html_block", "inline"])
)
"""Finds blocks, whatever is in them."""
LONG_BLOCK = 2_000
"""Characters of an open list or table from which its complete items are finished."""
MAX_ADVANCE = 4_000
"""Characters that are taken in without a pause."""
MAX_OPEN_BLOCK = 10_000
"""Characters of an open block that are rendered; a longer one is shown as text."""
MAX_CLOSED_LINE = 2_000
"""Characters of a line in which open marks are closed."""
BARE_MARKER = re.compile(r"\s*(?:[-*+>|=_]+|#{1,6}|\d{1,9}[.)]?|`+[^`]*|~+[^~]*)?\s*")
"""A last line of which nobody knows yet what it begins."""
OPEN_LINK = re.compile(r"!?\[([^\[\]]*)(?:\](?:\([^()\s]*)?)?$")
BLANK_LINE = re.compile(r"(?:\r\n|\r|\n)[ \t]*(?:\r\n|\r|\n)")
EMPHASIS = ("**", "~~", "*")


@dataclass
class FinishedBlock:
    html: SafeString
    known_at: int
    """Length of the text when it was known to be finished."""

    def render(self, element_id: str) -> SafeString:
        return self.html

    def render_items(self, *, after: int) -> SafeString:
        return SafeString("")


@dataclass
class StreamedMarkdown:
    """The rendering of a text that grows."""

    blocks: list[FinishedBlock | GrowingBlock] = field(default_factory=list)
    open_html: SafeString = SafeString("")
    rendered_at: int = 0
    """Length of the text when the open block was last rendered."""
    _known_at: int = 0
    """Length of the text so far."""
    _open_from: int = 0
    _is_text: bool = False
    """Whether the open block is too long to be parsed."""
    _growing: GrowingBlock | None = None
    """The last of `blocks` while items are added to it."""

    def advance_in_steps(self, text: str) -> Iterator[None]:
        """Take in all of a long text but its last piece, and pause after each piece."""
        for end in range(self._known_at + MAX_ADVANCE, len(text), MAX_ADVANCE):
            self.advance(text[:end])
            yield

    def advance(self, text: str) -> None:
        """Take in the text so far, which begins with the text before."""
        self._known_at = len(text)
        if len(text) > MAX_RENDERED_CHARACTERS:
            return
        excess = self.rendered_at - self._open_from - SHORT_BLOCK
        if len(text) - self.rendered_at <= max(excess, 0) // GROWTH:
            return
        self.rendered_at = len(text)
        self._finish_text(text)
        if self._is_text:
            self.open_html = show_as_text(text[self._open_from :])
            return
        self._take_items(text)
        if not self._growing:
            self._finish_blocks(text)
            self._start_growing(text)
        rest = text[self._open_from :]
        is_code = not self._growing and ends_in_code(rest)
        if len(rest) > MAX_OPEN_BLOCK and not is_code:
            self._is_text = True
            self.open_html = show_as_text(rest)
        else:
            self.open_html = render_open_block(
                rest, is_code=is_code, growing=self._growing
            )

    def _finish_text(self, text: str) -> None:
        if self._is_text and (blank := BLANK_LINE.search(text, self._open_from)):
            block = show_as_text(text[self._open_from : blank.start()])
            self.blocks.append(FinishedBlock(block, len(text)))
            self._open_from, self._is_text = blank.end(), False

    def _finish_blocks(self, text: str) -> None:
        rest = text[self._open_from :]
        if finished := find_open_block(rest):
            block = render_markdown_now(rest[:finished])
            self.blocks.append(FinishedBlock(block, len(text)))
            self._open_from += finished

    def _start_growing(self, text: str) -> None:
        if len(text) - self._open_from > LONG_BLOCK:
            self._growing = start_growing(text[self._open_from :], len(text))
        if self._growing:
            self.blocks.append(self._growing)
            self._open_from += len(self._growing.head)
            self._take_items(text)

    def _take_items(self, text: str) -> None:
        if self._growing:
            taken = self._growing.take(text[self._open_from :], len(text))
            self._open_from += taken.characters
            if taken.is_over:
                self._growing = None


def find_open_block(text: str) -> int:
    """Return where the last block begins, as far as whole lines show."""
    lines = read_whole_lines(text)
    tokens = BLOCK_PARSER.parse(lines)
    starts = [token.map[0] for token in tokens if token.level == 0 and token.map]
    return find_line(lines, starts[-1]) if starts else 0


def ends_in_code(text: str) -> bool:
    tokens = BLOCK_PARSER.parse(text)
    last = next((one for one in reversed(tokens) if not one.nesting), None)
    return last is not None and last.type in {"fence", "code_block"}


def show_as_text(text: str) -> SafeString:
    return format_html('<p class="plain-text">{}</p>', text)


def render_open_block(
    text: str, *, is_code: bool, growing: GrowingBlock | None = None
) -> SafeString:
    """Return the block that is being written, with what is open in it closed."""
    whole = (growing.head if growing else "") + text
    tokens = OPEN_PARSER.parse(whole if is_code else close_open_marks(whole))
    if growing:
        tokens = list(growing.continue_block(tokens))
    return sanitize_html(OPEN_PARSER.renderer.render(tokens, OPEN_PARSER.options, {}))


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
