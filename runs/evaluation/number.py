"""The evaluator of numbers, within a tolerance."""

import math
import re
from decimal import Decimal, InvalidOperation
from typing import Literal, Self

from pydantic import Field, model_validator

from runs.evaluation.answer_text import require_answer, require_expected, shorten_text
from runs.evaluation.errors import NotScored
from runs.evaluation.kind import EvaluationInput, EvaluatorConfig, EvaluatorKind
from runs.evaluation.types import ScoreResult
from tools.text.translatable import translatable

NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.])[+\-−]?"
    r"(?:(?:\d{1,3}(?:,\d{3})++(?!\d)|\d++)(?:\.\d++)?|\.\d++)"
    r"(?:[eE][+\-]?\d++(?![A-Za-z0-9_]))?"
)
"""A number as English texts write it, perhaps with a unit behind it."""

MAX_EXPONENT = 400


class NumberConfig(EvaluatorConfig):
    """A number of the answer is the expected one."""

    which: Literal["last", "first", "only", "label"] = "last"
    """`only`: the answer is nothing but the number, perhaps with a unit."""
    label: str = Field(default="", max_length=200)
    """The number after its last occurrence counts, for `which` = `label`."""
    absolute: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """How far off it may be."""
    relative: float = Field(default=0.0, ge=0, le=1, allow_inf_nan=False)
    """How far off it may be, as a part of the expected number: 0.01 is 1%."""

    @model_validator(mode="after")
    def _check_label(self) -> Self:
        if (self.which == "label") is not bool(self.label):
            raise ValueError(
                translatable("A label belongs to the choice `label`, and it needs one.")
            )
        return self


def score_number(config: NumberConfig, given: EvaluationInput) -> ScoreResult:
    wanted = find_numbers(require_expected(given))
    if len(wanted) != 1:
        raise NotScored(
            translatable(
                "The expected answer must contain one number: %(expected)s.",
                expected=repr(shorten_text(given.example.expected_answer)),
            )
        )
    answer = require_answer(given.record)
    got = _select_number(config, answer)
    if got is None:
        return ScoreResult.of_pass(
            False, translatable("The answer does not contain the number.")
        )
    off = abs(got - wanted[0])
    relative = abs(wanted[0]) * Decimal(str(config.relative))
    allowed = max(Decimal(str(config.absolute)), relative)
    if off <= allowed:
        return ScoreResult.of_pass(True, label=format_label_number(got))
    return ScoreResult.of_pass(
        False,
        translatable(
            "Expected %(expected)s, got %(got)s.",
            expected=format_label_number(wanted[0]),
            got=format_label_number(got),
        ),
        label=format_label_number(got),
    )


def _select_number(config: NumberConfig, answer: str) -> Decimal | None:
    if config.which == "label":
        found = list(re.finditer(re.escape(config.label), answer, re.IGNORECASE))
        after = find_numbers(answer[found[-1].end() :]) if found else []
        return after[0] if after else None
    numbers = find_numbers(answer)
    if not numbers or config.which == "only" and len(numbers) > 1:
        return None
    return numbers[0] if config.which == "first" else numbers[-1]


def find_numbers(text: str) -> list[Decimal]:
    """Return the numbers in a text, in order; too large ones are left out."""
    found = (parse_number(match[0]) for match in NUMBER.finditer(text))
    return [number for number in found if number is not None]


def parse_number(text: str) -> Decimal | None:
    """Return the number that `text` writes; None if it is out of range."""
    try:
        number = Decimal(text.replace(",", "").replace("−", "-"))
    except InvalidOperation:
        return None
    in_range = number.is_finite() and abs(number.adjusted()) <= MAX_EXPONENT
    return number if in_range or number == 0 else None


def format_label_number(number: Decimal) -> str:
    value = float(number)
    exact = number == Decimal(value) or math.isclose(value, float(number))
    return f"{value:g}" if exact and abs(value) < 1e6 else str(number.normalize())


NUMBER_KIND = EvaluatorKind("number", NumberConfig, score_number)
