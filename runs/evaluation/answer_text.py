"""The answer of a run as text, and the part of it that is compared."""

import re
import unicodedata
from typing import Literal, Protocol

from pydantic import Field

from runs.engine.observations import stringify_value
from runs.evaluation.errors import NotApplicable, NotScored
from runs.evaluation.kind import EvaluationInput, EvaluatorConfig
from runs.evaluation.types import EvaluationRecord
from tools.text.translatable import translatable

MAX_COMPARED = 1_000_000
"""Characters of an answer that evaluators compare."""

SPACE = re.compile(r"\s+")
GROUPED_NUMBER = re.compile(
    r"(?<![\w.,])([+-]?)(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(?![\w,])"
)


class TextConfig(EvaluatorConfig):
    """How texts are read before they are compared."""

    label: str = Field(default="", max_length=200)
    """Only what follows its last occurrence counts, such as `ANSWER:`."""
    line: Literal["all", "first", "last"] = "all"
    """Which line counts; empty ones do not."""
    ignore_case: bool = True
    ignore_space: bool = True
    """Any white space is one space, and none at the ends."""
    ignore_punctuation: bool = False
    """Punctuation of any script, also inside words."""
    same_numbers: bool = False
    """Whether 1,000.0 is 1000."""
    alternatives: bool = False
    """Whether each line of the expected answer is an answer that passes."""


def require_answer(record: EvaluationRecord) -> str:
    """Return the answer as text; raise `NotScored` if the run failed.

    A run that ended at a limit has given an answer that is empty: that is what its
    agent did.
    """
    if record.status in ("failed", "canceled"):
        raise NotScored(describe_failed_run(record))
    if record.answer is None:
        return ""
    text = stringify_value(record.answer)
    if len(text) > MAX_COMPARED:
        raise NotScored(
            translatable(
                "The answer is longer than %(count)s characters.",
                count=f"{MAX_COMPARED:,}",
            )
        )
    return text


class FailedRun(Protocol):
    """A run that failed or was canceled, as a row or as a record."""

    @property
    def status(self) -> str: ...
    @property
    def error_code(self) -> str: ...
    @property
    def error_message(self) -> str: ...


def describe_failed_run(run: FailedRun) -> str:
    if run.status == "canceled":
        return translatable("The run was canceled.")
    why = run.error_message or run.error_code
    if why:
        return translatable("The run failed: %(error)s", error=why)
    return translatable("The run failed.")


def require_expected(given: EvaluationInput) -> str:
    """Return the expected answer; raise `NotApplicable` if the example has none."""
    if not given.example.expected_answer.strip():
        raise NotApplicable(translatable("The example has no expected answer."))
    return given.example.expected_answer


def require_accepted(given: EvaluationInput, config: TextConfig) -> list[str]:
    """Return the expected answer, or each of its alternatives, as written.

    Raises `NotApplicable` if none has anything that counts.
    """
    found = [
        text
        for text in split_alternatives(require_expected(given), config)
        if normalize_text(text, config).strip()
    ]
    if not found:
        raise NotApplicable(
            translatable("Nothing of the expected answer is left to compare.")
        )
    return found


def split_alternatives(expected: str, config: TextConfig) -> list[str]:
    """Return each line with text if they are alternatives, or else the whole text."""
    if not config.alternatives:
        return [expected]
    return [line for line in expected.splitlines() if line.strip()]


def select_part(text: str, config: TextConfig) -> str | None:
    """Return the part of an answer that counts; None if its label is not there."""
    if config.label:
        found = list(re.finditer(re.escape(config.label), text, re.IGNORECASE))
        if not found:
            return None
        text = text[found[-1].end() :]
    if config.line == "all":
        return text
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    return lines[0] if config.line == "first" else lines[-1]


def normalize_text(text: str, config: TextConfig) -> str:
    """Return `text` without the differences that do not count.

    Composed and decomposed letters are always the same.
    """
    text = unicodedata.normalize("NFC", text)
    if config.same_numbers:
        text = GROUPED_NUMBER.sub(_plain_number, text)
    if config.ignore_case:
        text = unicodedata.normalize("NFC", text.casefold())
    if config.ignore_punctuation:
        text = remove_punctuation(text)
    if config.ignore_space:
        text = SPACE.sub(" ", text).strip()
    return text


def remove_punctuation(text: str) -> str:
    """Return `text` without punctuation of any script."""
    return "".join(c for c in text if not unicodedata.category(c).startswith("P"))


def _plain_number(match: re.Match[str]) -> str:
    sign, whole, fraction = match[1], match[2].replace(",", ""), match[3] or ""
    whole = whole.lstrip("0") or "0"
    fraction = fraction.rstrip("0").rstrip(".")
    minus = "-" if sign == "-" and (whole != "0" or fraction) else ""
    return f"{minus}{whole}{fraction}"


def shorten_text(text: str, length: int = 200) -> str:
    return text if len(text) <= length else f"{text[:length]}…"
