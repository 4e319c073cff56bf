"""Evaluators of text: exact, contains, regex, one of."""

import re
from typing import Literal, Self

from pydantic import Field, model_validator

from runs.evaluation.answer_text import (
    TextConfig,
    normalize_text,
    require_accepted,
    require_answer,
    select_part,
    shorten_text,
    split_alternatives,
)
from runs.evaluation.errors import NotScored
from runs.evaluation.kind import EvaluationInput, EvaluatorConfig, EvaluatorKind
from runs.evaluation.types import ScoreResult
from tools.schema.safe_schema import compile_safe_pattern, matches_pattern
from tools.text.translatable import translatable


class ExactConfig(TextConfig):
    """The answer, or its beginning or end, is the expected one."""

    place: Literal["whole", "start", "end"] = "whole"


def score_exact(config: ExactConfig, given: EvaluationInput) -> ScoreResult:
    accepted = [
        normalize_text(text, config) for text in require_accepted(given, config)
    ]
    part = select_part(require_answer(given.record), config)
    if part is None:
        return _label_missing(config)
    answer = normalize_text(part, config)
    match config.place:
        case "whole":
            passed = answer in accepted
        case "start":
            passed = answer.startswith(tuple(accepted))
        case "end":
            passed = answer.endswith(tuple(accepted))
    if passed:
        return ScoreResult.of_pass(True)
    return ScoreResult.of_pass(False, _describe_other_answer(accepted, answer))


def _describe_other_answer(accepted: list[str], got: str) -> str:
    if len(accepted) == 1:
        return translatable(
            "Expected %(expected)s, got %(got)s.",
            expected=repr(shorten_text(accepted[0])),
            got=repr(shorten_text(got)),
        )
    return translatable(
        "Expected one of %(choices)s, got %(got)s.",
        choices=_quote_all(accepted),
        got=repr(shorten_text(got)),
    )


class ContainsConfig(TextConfig):
    """The answer contains texts."""

    texts: tuple[str, ...] = Field(default=(), max_length=100)
    """Empty for the expected answer."""
    needs: Literal["all", "any", "none"] = "all"

    @model_validator(mode="after")
    def _check_texts(self) -> Self:
        if any(not normalize_text(text, self).strip() for text in self.texts):
            raise ValueError(
                translatable("Every text must have at least one character that counts.")
            )
        return self

    @model_validator(mode="after")
    def _check_alternatives(self) -> Self:
        if self.alternatives and self.texts:
            raise ValueError(
                translatable(
                    "Alternatives are the lines of the expected answer: remove the "
                    "texts, or turn alternatives off."
                )
            )
        if self.alternatives and self.needs == "all":
            raise ValueError(
                translatable(
                    "With alternatives, an answer need not contain all of them: "
                    "require any of them, or none."
                )
            )
        return self


def score_contains(config: ContainsConfig, given: EvaluationInput) -> ScoreResult:
    texts = config.texts or require_accepted(given, config)
    part = select_part(require_answer(given.record), config)
    if part is None:
        return _label_missing(config)
    answer = normalize_text(part, config)
    found = [text for text in texts if normalize_text(text, config) in answer]
    missing = [text for text in texts if text not in found]
    match config.needs:
        case "all":
            value, passed = len(found) / len(texts), not missing
            why = translatable("Not found: %(texts)s.", texts=_quote_all(missing))
        case "any":
            value, passed = float(bool(found)), bool(found)
            why = translatable("None found of: %(texts)s.", texts=_quote_all(texts))
        case "none":
            value, passed = float(not found), not found
            why = translatable("Found: %(texts)s.", texts=_quote_all(found))
    return ScoreResult(value=value, passed=passed, explanation="" if passed else why)


class RegexConfig(EvaluatorConfig):
    """A pattern is found in the answer; matched in linear time."""

    pattern: str = Field(min_length=1, max_length=1_900)
    ignore_case: bool = False
    multiline: bool = False
    """Whether ^ and $ match at each line."""
    dot_matches_newline: bool = False
    whole: bool = False
    """Whether the pattern must match the whole answer."""
    is_found: bool = True
    """False: the pattern must not be found."""

    @model_validator(mode="after")
    def _check_pattern(self) -> Self:
        try:
            matcher = compile_safe_pattern(self.full_pattern)
        except re.error as error:
            raise ValueError(
                translatable("The pattern is invalid: %(error)s.", error=error)
            ) from None
        if matcher is None:
            raise ValueError(
                translatable(
                    "The pattern uses look-around, back-references or repetitions "
                    "such as {100000}, which could take forever; write it without "
                    "them."
                )
            )
        return self

    @property
    def full_pattern(self) -> str:
        flags = "i" * self.ignore_case + "m" * self.multiline
        flags += "s" * self.dot_matches_newline
        pattern = f"(?{flags}){self.pattern}" if flags else self.pattern
        return rf"\A(?:{pattern})\z" if self.whole else pattern


def score_regex(config: RegexConfig, given: EvaluationInput) -> ScoreResult:
    found = matches_pattern(config.full_pattern, require_answer(given.record))
    if found is None:
        raise NotScored(translatable("The pattern cannot be matched in linear time."))
    if found is config.is_found:
        return ScoreResult.of_pass(True)
    pattern = repr(shorten_text(config.pattern))
    if found:
        why = translatable("The pattern %(pattern)s was found.", pattern=pattern)
    else:
        why = translatable("The pattern %(pattern)s was not found.", pattern=pattern)
    return ScoreResult.of_pass(False, why)


class OneOfConfig(TextConfig):
    """The answer is one of some labels, and the expected one if there is one."""

    choices: tuple[str, ...] = Field(min_length=1, max_length=200)

    @model_validator(mode="after")
    def _check_choices(self) -> Self:
        seen: dict[str, str] = {}
        for choice in self.choices:
            key = normalize_text(choice, self)
            if not key:
                raise ValueError(
                    translatable("Every choice must have at least one character.")
                )
            if key in seen:
                raise ValueError(
                    translatable(
                        "%(first)s and %(second)s are the same choice.",
                        first=repr(seen[key]),
                        second=repr(choice),
                    )
                )
            seen[key] = choice
        return self

    def find_choice(self, text: str) -> str | None:
        wanted = normalize_text(text, self)
        return next(
            (c for c in self.choices if normalize_text(c, self) == wanted), None
        )


def score_one_of(config: OneOfConfig, given: EvaluationInput) -> ScoreResult:
    part = select_part(require_answer(given.record), config)
    if part is None:
        return _label_missing(config)
    chosen = config.find_choice(part)
    if chosen is None:
        return ScoreResult.of_pass(
            False,
            translatable(
                "%(answer)s is not one of: %(choices)s.",
                answer=repr(shorten_text(part)),
                choices=_quote_all(config.choices),
            ),
        )
    if not given.example.expected_answer.strip():
        return ScoreResult.of_pass(True, label=chosen)
    accepted = _require_choices(config, given.example.expected_answer)
    if chosen in accepted:
        return ScoreResult.of_pass(True, label=chosen)
    why = _describe_other_answer(accepted, chosen)
    return ScoreResult.of_pass(False, why, label=chosen)


def _require_choices(config: OneOfConfig, expected: str) -> list[str]:
    """Return the choices that are expected; raise `NotScored` if one is unknown."""
    found = []
    for text in split_alternatives(expected, config):
        choice = config.find_choice(text)
        if choice is None:
            raise NotScored(
                translatable(
                    "The expected answer %(expected)s is not one of the choices.",
                    expected=repr(shorten_text(text)),
                )
            )
        found.append(choice)
    return found


def _label_missing(config: TextConfig) -> ScoreResult:
    return ScoreResult.of_pass(
        False,
        translatable(
            "The answer does not contain %(label)s.", label=repr(config.label)
        ),
    )


def _quote_all(texts: tuple[str, ...] | list[str]) -> str:
    return ", ".join(repr(shorten_text(text, 60)) for text in texts[:10])


EXACT = EvaluatorKind("exact", ExactConfig, score_exact)
CONTAINS = EvaluatorKind("contains", ContainsConfig, score_contains)
REGEX = EvaluatorKind("regex", RegexConfig, score_regex)
ONE_OF = EvaluatorKind("one-of", OneOfConfig, score_one_of)
