"""The evaluator of similarity: token F1 and ROUGE-L."""

import math
import re
import string
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

from pydantic import Field

from runs.evaluation.answer_text import require_answer, require_expected
from runs.evaluation.errors import NotApplicable, NotScored
from runs.evaluation.kind import EvaluationInput, EvaluatorConfig, EvaluatorKind
from runs.evaluation.types import ScoreResult
from tools.text.translatable import translatable

ARTICLES = {"a", "an", "the"}
PUNCTUATION = str.maketrans("", "", string.punctuation)
SEPARATORS = re.compile(r"[\s-]+")
UNSPACED = re.compile(
    r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f])"
)
"""Letters of scripts that put no spaces between words: each counts as a word."""

WORD = re.compile(r"[^\W_]+")
MAX_COMPARISONS = 25_000_000
"""Pairs of words that ROUGE-L looks at: about a second."""


class SimilarityConfig(EvaluatorConfig):
    """How much of the words the answer and the expected one share."""

    method: Literal["token_f1", "rouge_l"] = "token_f1"
    threshold: float = Field(default=0.5, ge=0, le=1, allow_inf_nan=False)
    """The score from which the answer passes."""


def score_similarity(config: SimilarityConfig, given: EvaluationInput) -> ScoreResult:
    expected, answer = require_expected(given), require_answer(given.record)
    measure = token_f1 if config.method == "token_f1" else rouge_l
    return ScoreResult.of_value(measure(expected, answer), threshold=config.threshold)


def token_f1(expected: str, answer: str) -> float:
    """Return the F1 of the words, as the SQuAD benchmark counts them."""
    wanted, got = _require_words(squad_tokens(expected)), squad_tokens(answer)
    shared = sum((Counter(wanted) & Counter(got)).values())
    return f1_of(shared, len(wanted), len(got))


def squad_tokens(text: str) -> list[str]:
    """Return the words without case, articles and punctuation; 5.0 is 5."""
    words = SEPARATORS.split(UNSPACED.sub(r" \1 ", text.casefold()))
    plain = (_normalize_word(word) for word in words)
    return [word for word in plain if word and word not in ARTICLES]


def _normalize_word(word: str) -> str:
    with suppress(ValueError, OverflowError):
        number = float(word.strip(string.punctuation))
        if math.isfinite(number):
            return str(number)
    return word.translate(PUNCTUATION)


def _require_words(words: list[str]) -> list[str]:
    if not words:
        raise NotApplicable(
            translatable("The expected answer has no words to compare.")
        )
    return words


def rouge_l(expected: str, answer: str) -> float:
    """Return the F1 of the longest common subsequence of words."""
    wanted, got = _require_words(rouge_tokens(expected)), rouge_tokens(answer)
    if len(wanted) * len(got) > MAX_COMPARISONS:
        raise NotScored(
            translatable(
                "ROUGE-L would compare %(expected)s with %(got)s words, which takes "
                "too long. Use token F1.",
                expected=f"{len(wanted):,}",
                got=f"{len(got):,}",
            )
        )
    return f1_of(common_subsequence(wanted, got), len(wanted), len(got))


def rouge_tokens(text: str) -> list[str]:
    """Return the letters and digits between everything else, in lower case."""
    return WORD.findall(UNSPACED.sub(r" \1 ", text.lower()))


def common_subsequence(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the longest common subsequence.

    Each row of the usual table is a number whose bits are its steps (Hyyrö 2004), so
    a row takes one addition.
    """
    places: dict[str, int] = {}
    for at, word in enumerate(one):
        places[word] = places.get(word, 0) | 1 << at
    full = (1 << len(one)) - 1
    row = full
    for word in other:
        matched = row & places.get(word, 0)
        row = (row + matched | row - matched) & full
    return len(one) - row.bit_count()


def f1_of(shared: int, expected: int, got: int) -> float:
    """Return the harmonic mean of precision and recall, given three counts."""
    return 2 * shared / (expected + got) if shared else 0.0


SIMILARITY = EvaluatorKind("similarity", SimilarityConfig, score_similarity)
