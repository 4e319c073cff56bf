"""Where a text holds what is searched for: marked in HTML, or as a line around it."""

import html
import re
from collections import deque
from collections.abc import Iterable, Iterator

from django.utils.html import conditional_escape, escape
from django.utils.safestring import SafeString, mark_safe

TAG = re.compile(r"""(<(?:"[^"]*"|'[^']*'|[^"'<>])*>)""")
BEFORE = 8
"""Characters of a line before the hit."""
AROUND = 200
"""Characters of a line in all."""
EARLY = 40
"""Characters into which a row's own words are seen at most widths."""


def marked(text: str, words: str) -> SafeString:
    """Return `text` as HTML with each place in a <mark> that holds `words`.

    Text that is not safe is escaped. Tags stay as they are: a hit that goes through
    several gets a mark in each, all but the first with `data-goes-on`.
    """
    whole = SafeString(conditional_escape(text))
    if not words:
        return whole
    parts = TAG.split(whole)  # texts and tags in turn
    texts = [html.unescape(text) for text in parts[::2]]
    hits = [hit.span() for hit in pattern(words).finditer("".join(texts))]
    if not hits:
        return whole
    parts[::2] = with_marks(texts, hits)
    return mark_safe("".join(parts))  # noqa: S308  # tags were there before, texts are escaped anew


def pattern(words: str) -> re.Pattern[str]:
    """Return what finds `words`, in capitals or not."""
    return re.compile(re.escape(words), re.IGNORECASE)


def with_marks(texts: list[str], hits: list[tuple[int, int]]) -> Iterator[str]:
    """Yield each text escaped, with marks where the hits are in all of them joined."""
    at, left = 0, deque(hits)
    for text in texts:
        end, done = at + len(text), at
        pieces: list[str] = []
        while left and left[0][0] < end:
            start, stop = max(left[0][0], at), min(left[0][1], end)
            more = " data-goes-on" if left[0][0] < at else ""
            pieces.append(escape(text[done - at : start - at]))
            pieces.append(f"<mark{more}>{escape(text[start - at : stop - at])}</mark>")
            done = stop
            if left[0][1] > end:
                break
            left.popleft()
        yield "".join([*pieces, escape(text[done - at :])])
        at = end


def line_around(texts: Iterable[str], words: str) -> str:
    """Return a line of the first text that holds `words`; empty where none does."""
    wanted = pattern(words)
    for text in texts:
        if hit := wanted.search(text):
            start = max(hit.start() - BEFORE, 0)
            line = " ".join(text[start : start + AROUND].split())
            return f"…{line}" if start else line
    return ""


def is_seen(text: str, words: str) -> bool:
    """Whether a row's own words show the hit near their beginning."""
    hit = pattern(words).search(text)
    return hit is not None and hit.start() < EARLY
