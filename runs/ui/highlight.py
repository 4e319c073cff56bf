"""Search matches: marked in HTML, or as an excerpt."""

import html
import re
from collections import deque
from collections.abc import Iterable, Iterator

from django.utils.html import conditional_escape, escape
from django.utils.safestring import SafeString, mark_safe

TAG = re.compile(r"""(<(?:"[^"]*"|'[^']*'|[^"'<>])*>)""")
CHARACTERS_BEFORE = 8
"""Characters of an excerpt before the match."""
MAX_EXCERPT_CHARACTERS = 200
"""Total characters of an excerpt."""
ALWAYS_VISIBLE_CHARACTERS = 40
"""Characters of a row's text that are visible at most widths."""


def highlight_matches(text: str, words: str) -> SafeString:
    """Return `text` as HTML with each match of `words` in a <mark>.

    Unsafe text is escaped. Tags stay as they are: a match across several elements gets
    a mark in each, all but the first with `data-goes-on`.
    """
    whole = SafeString(conditional_escape(text))
    if not words:
        return whole
    parts = TAG.split(whole)  # texts and tags in turn
    texts = [html.unescape(text) for text in parts[::2]]
    hits = [
        hit.span() for hit in compile_search_pattern(words).finditer("".join(texts))
    ]
    if not hits:
        return whole
    parts[::2] = iter_marked_texts(texts, hits)
    return mark_safe("".join(parts))  # noqa: S308  # tags were there before, texts are escaped anew


def compile_search_pattern(words: str) -> re.Pattern[str]:
    """Return a case-insensitive pattern of `words`."""
    return re.compile(re.escape(words), re.IGNORECASE)


def iter_marked_texts(texts: list[str], hits: list[tuple[int, int]]) -> Iterator[str]:
    """Yield each text escaped and marked; `hits` are offsets in all of them joined."""
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


def find_excerpt(texts: Iterable[str], words: str) -> str:
    """Return an excerpt of the first text that contains `words`, or an empty string."""
    wanted = compile_search_pattern(words)
    for text in texts:
        if hit := wanted.search(text):
            start = max(hit.start() - CHARACTERS_BEFORE, 0)
            line = " ".join(text[start : start + MAX_EXCERPT_CHARACTERS].split())
            return f"…{line}" if start else line
    return ""


def is_match_visible(text: str, words: str) -> bool:
    """Whether the match is near the beginning of a row's text."""
    hit = compile_search_pattern(words).search(text)
    return hit is not None and hit.start() < ALWAYS_VISIBLE_CHARACTERS
