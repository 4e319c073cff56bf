"""The evaluator of JSON: its schema, and its fields."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from runs.engine.parsing.json_schema import find_schema_problem, find_schema_violations
from runs.engine.parsing.reply_text import decode_json, strip_code_fence
from runs.evaluation.answer_text import require_answer, require_expected, shorten_text
from runs.evaluation.errors import NotScored
from runs.evaluation.kind import EvaluationInput, EvaluatorConfig, EvaluatorKind
from runs.evaluation.types import ScoreResult
from tools.text.translatable import translatable

MAX_COMPARED_VALUES = 1_000_000
"""Pairs of values that are compared: some seconds. Lists in any order have many."""

MISSING = object()
"""Stands for a field that is not there."""


class JsonConfig(EvaluatorConfig):
    """The answer is JSON, of a schema, and equal to the expected one."""

    output_schema: dict[str, Any] | None = None
    compare: Literal["all", "fields", "nothing"] = "all"
    """With what is expected: everything, some fields, or only the schema counts."""
    fields: tuple[str, ...] = Field(default=(), max_length=200)
    """Names separated by dots, such as `items.0.name`, for `compare` = `fields`."""
    ignore_order: bool = False
    """Whether lists may have another order."""
    tolerance: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """How far off a number may be."""

    @field_validator("output_schema")
    @classmethod
    def _check_schema(cls, schema: dict[str, Any] | None) -> dict[str, Any] | None:
        problem = find_schema_problem(schema) if schema is not None else None
        if problem:
            raise ValueError(problem.rstrip("."))
        return schema

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        if (self.compare == "fields") is not bool(self.fields):
            raise ValueError(
                translatable("Name the fields to compare, and select `fields`.")
            )
        if self.compare == "nothing" and self.output_schema is None:
            raise ValueError(translatable("Enter a schema if nothing is compared."))
        return self


def score_json_answer(config: JsonConfig, given: EvaluationInput) -> ScoreResult:
    expected = _parse_expected(given) if config.compare != "nothing" else None
    answer = given.record.answer
    text = require_answer(given.record)
    if answer is None or isinstance(answer, str):
        try:
            answer = decode_json(strip_code_fence(text))
        except (ValueError, RecursionError):
            return ScoreResult.of_pass(False, translatable("The answer is not JSON."))
    if config.output_schema is not None:
        violations = find_schema_violations(answer, config.output_schema)
        if violations:
            problems = "; ".join(map(str, violations[:5]))
            why = translatable(
                "The answer does not match the schema: %(problems)s", problems=problems
            )
            return ScoreResult.of_pass(False, why)
    if config.compare == "nothing":
        return ScoreResult.of_pass(True)
    try:
        return _compare(config, expected, answer)
    except RecursionError:
        raise NotScored(
            translatable("The JSON is nested too deeply to compare.")
        ) from None


def _parse_expected(given: EvaluationInput) -> Any:
    try:
        return decode_json(strip_code_fence(require_expected(given)))
    except (ValueError, RecursionError):
        raise NotScored(translatable("The expected answer is not JSON.")) from None


def _compare(config: JsonConfig, expected: Any, answer: Any) -> ScoreResult:
    if config.compare == "all":
        where = JsonComparison(config).find_difference(expected, answer)
        return ScoreResult.of_pass(where is None, where or "")
    known = [
        name
        for name in config.fields
        if read_json_field(expected, name) is not MISSING
        or read_json_field(answer, name) is not MISSING
    ]
    if not known:
        raise NotScored(
            translatable(
                "Neither the expected answer nor the answer contains: %(fields)s.",
                fields=", ".join(config.fields[:10]),
            )
        )
    wrong = [
        name
        for name in known
        if JsonComparison(config).find_difference(
            read_json_field(expected, name), read_json_field(answer, name)
        )
    ]
    value = 1 - len(wrong) / len(known)
    why = translatable("Different: %(fields)s.", fields=", ".join(wrong[:10]))
    return ScoreResult(value=value, passed=not wrong, explanation=why if wrong else "")


def read_json_field(value: Any, name: str) -> Any:
    """Return the field of that name, `MISSING` if there is none."""
    for part in name.split("."):
        if isinstance(value, dict):
            value = value.get(part, MISSING)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return MISSING
    return value


@dataclass
class JsonComparison:
    """Compares two JSON values, with a limit of what that may cost."""

    config: JsonConfig
    compared: int = 0
    """Values compared so far."""

    def find_difference(self, expected: Any, got: Any, place: str = "") -> str | None:
        """Return the first difference in a sentence; None if there is none.

        1 and 1.0 are equal, true and 1 are not. Raises `NotScored` if the values take
        too long to compare.
        """
        self.compared += 1
        if self.compared > MAX_COMPARED_VALUES:
            raise NotScored(
                translatable("The JSON is too large to compare in any order.")
            )
        if expected is MISSING or got is MISSING:
            return None if expected is got else _describe_missing(place)
        if _is_number(expected) and _is_number(got):
            is_close = _is_close(expected, got, self.config.tolerance)
            return None if is_close else _describe_difference(place, expected, got)
        if type(expected) is not type(got):
            return _describe_difference(place, expected, got)
        if isinstance(expected, dict):
            return self._find_in_object(expected, got, place)
        if isinstance(expected, list):
            return self._find_in_list(expected, got, place)
        if expected == got:
            return None
        return _describe_difference(place, expected, got)

    def _find_in_object(
        self, expected: dict[str, Any], got: dict[str, Any], place: str
    ) -> str | None:
        for name in [*expected, *(name for name in got if name not in expected)]:
            one, other = expected.get(name, MISSING), got.get(name, MISSING)
            found = self.find_difference(one, other, f"{place}.{name}".lstrip("."))
            if found:
                return found
        return None

    def _find_in_list(
        self, expected: list[Any], got: list[Any], place: str
    ) -> str | None:
        if len(expected) != len(got):
            return _describe_lengths(place, len(expected), len(got))
        if self.config.ignore_order:
            return self._find_unmatched(expected, got, place)
        for number, (one, other) in enumerate(zip(expected, got, strict=True)):
            found = self.find_difference(one, other, f"{place}.{number}".lstrip("."))
            if found:
                return found
        return None

    def _find_unmatched(
        self, expected: list[Any], got: list[Any], place: str
    ) -> str | None:
        """Pair each expected item with one of its own; return one that has none.

        An item that is close to several gives way to one that has no other (Kuhn).
        """
        items, left = (sorted(one, key=_order_of_item) for one in (expected, got))
        partners: dict[int, int] = {}
        """Places in `left`, and in `items` of what they are paired with."""

        def pair(at: int, tried: set[int]) -> bool:
            for n, one in enumerate(left):
                if n in tried or self.find_difference(items[at], one):
                    continue
                tried.add(n)
                if n not in partners or is_tolerant and pair(partners[n], tried):
                    partners[n] = at
                    return True
            return False

        is_tolerant = self.config.tolerance > 0  # else close items are equal
        for at, item in enumerate(items):
            tried = set() if is_tolerant else set(partners)
            if not pair(at, tried):
                return _describe_unmatched(place, item)
        return None


def _is_close(expected: float, got: float, tolerance: float) -> bool:
    """Whether two numbers differ by `tolerance` at most, as they are written."""
    if expected == got:
        return True
    one, other = _to_decimal(expected), _to_decimal(got)
    if not (one.is_finite() and other.is_finite()):
        return False
    return abs(one - other) <= _to_decimal(tolerance)


def _to_decimal(number: float) -> Decimal:
    return Decimal(number if isinstance(number, int) else repr(number))


def _order_of_item(item: Any) -> tuple[bool, float]:
    return (False, float(item)) if _is_number(item) else (True, 0.0)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _describe_difference(place: str, expected: Any, got: Any) -> str:
    values = {
        "expected": shorten_text(repr(expected), 80),
        "got": shorten_text(repr(got), 80),
    }
    if not place:
        return translatable("Expected %(expected)s, got %(got)s.", **values)
    return translatable(
        "%(place)s: expected %(expected)s, got %(got)s.", place=place, **values
    )


def _describe_missing(place: str) -> str:
    if not place:
        return translatable("Missing on one side.")
    return translatable("%(place)s: missing on one side.", place=place)


def _describe_lengths(place: str, expected: int, got: int) -> str:
    if not place:
        return translatable(
            "Expected a list of length %(expected)s, got %(got)s.",
            expected=expected,
            got=got,
        )
    return translatable(
        "%(place)s: expected a list of length %(expected)s, got %(got)s.",
        place=place,
        expected=expected,
        got=got,
    )


def _describe_unmatched(place: str, item: Any) -> str:
    text = shorten_text(repr(item), 80)
    if not place:
        return translatable("No item is %(item)s.", item=text)
    return translatable("%(place)s: no item is %(item)s.", place=place, item=text)


JSON = EvaluatorKind("json", JsonConfig, score_json_answer)
