"""What differs between two answers, marked by word."""

import re
from difflib import SequenceMatcher

from django.utils.html import format_html
from django.utils.safestring import SafeString

from runs.ui.reveal_invisible import reveal_text

WORDS = re.compile(r"\s+|\w+|[^\w\s]")
MAX_DIFF_CHARS = 20_000


def mark_differences(expected: str, answer: str) -> SafeString:
    """Mark what differs by word, by character where words have no spaces."""
    before = split_words(expected[:MAX_DIFF_CHARS])
    after = split_words(answer[:MAX_DIFF_CHARS])
    parts: list[SafeString] = []
    for tag, a, b, c, d in SequenceMatcher(None, before, after, False).get_opcodes():
        if tag == "equal":
            parts.append(reveal_text("".join(before[a:b])))
            continue
        if a < b:
            removed = reveal_text("".join(before[a:b]))
            parts.append(format_html("<del>{}</del>", removed))
        if c < d:
            added = reveal_text("".join(after[c:d]))
            parts.append(format_html("<ins>{}</ins>", added))
    return SafeString("".join(parts))


def split_words(text: str) -> list[str]:
    """Return words, spaces and signs; each character of words without spaces."""
    return [
        part
        for word in WORDS.findall(text)
        for part in (word if word and word[0] >= "\u2e80" else [word])
    ]
