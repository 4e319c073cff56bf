"""Counting what is in a text."""

import re
import unicodedata

from tools.registry import tool

WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
SENTENCE_END = re.compile(r"[.!?]+(?=\s|$)|[。！？]+")


@tool(effect="read", timeout=5)
def text_statistics(text: str) -> dict[str, int]:
    """Count the characters, words, sentences, lines and paragraphs of a text.

    Each Chinese or Japanese character counts as a word.

    Args:
        text: The whole text to be counted.
    """
    visible = sum(1 for c in text if not unicodedata.category(c).startswith(("Z", "C")))
    sentences = len(SENTENCE_END.findall(text))
    rest = SENTENCE_END.split(text)[-1]
    return {
        "characters": len(text),
        "characters_without_spaces": visible,
        "words": len(IDEOGRAPH.findall(text))
        + len(WORD.findall(IDEOGRAPH.sub(" ", text))),
        "sentences": sentences + bool(rest.strip()),
        "lines": len(text.splitlines()),
        "paragraphs": len([p for p in re.split(r"\n\s*\n", text) if p.strip()]),
        "utf8_bytes": len(text.encode("utf-8", "surrogatepass")),
    }
