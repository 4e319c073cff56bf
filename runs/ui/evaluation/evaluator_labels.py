"""Names and help texts of the kinds of evaluators and their settings."""

from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from runs.evaluation.judge import compares_with_baseline
from runs.evaluation.registry import EVALUATOR_KINDS
from runs.models import EvaluatorRevision


class EvaluatorKindLabel(NamedTuple):
    name: str
    title: str
    summary: str


KIND_TEXTS: dict[str, tuple[Promise, Promise]] = {
    "exact": (
        gettext_lazy("Exact answer"),
        gettext_lazy(
            "The answer equals the expected answer, or begins or ends with it."
        ),
    ),
    "contains": (
        gettext_lazy("Contains"),
        gettext_lazy(
            "The answer contains the expected answer, or texts that you enter."
        ),
    ),
    "regex": (
        gettext_lazy("Pattern"),
        gettext_lazy("A regular expression is found in the answer, or is not."),
    ),
    "one-of": (
        gettext_lazy("One of"),
        gettext_lazy("The answer is one of the labels, and it is the expected label."),
    ),
    "number": (
        gettext_lazy("Number"),
        gettext_lazy(
            "A number in the answer equals the expected number, within a tolerance."
        ),
    ),
    "json": (
        gettext_lazy("JSON"),
        gettext_lazy(
            "The answer is JSON that matches a schema and equals the expected answer."
        ),
    ),
    "similarity": (
        gettext_lazy("Similarity"),
        gettext_lazy(
            "Share of words that the answer and the expected answer have in common."
        ),
    ),
    "tool-calls": (
        gettext_lazy("Tool calls"),
        gettext_lazy("The calls of the run are the expected ones."),
    ),
    "tool-rules": (
        gettext_lazy("Tool rules"),
        gettext_lazy("Tools that must be called, and tools that must not."),
    ),
    "limits": (
        gettext_lazy("Limits"),
        gettext_lazy("Tokens, cost, rounds and time stay within limits."),
    ),
    "safety": (
        gettext_lazy("Safety"),
        gettext_lazy("No secrets, unknown addresses or personal data are written."),
    ),
    "code": (
        gettext_lazy("Python code"),
        gettext_lazy("A function of your own, in the sandbox."),
    ),
    "judge": (
        gettext_lazy("Judge"),
        gettext_lazy("A model scores the answer by a rubric."),
    ),
}
FIELD_TEXTS: dict[str, tuple[Promise, Promise | str]] = {
    "absolute": (
        gettext_lazy("Tolerance"),
        gettext_lazy("How far off the number may be."),
    ),
    "allowed_hosts": (
        gettext_lazy("Allowed hosts"),
        gettext_lazy(
            "One per line, such as example.com or *.example.com; leave empty to allow "
            "any."
        ),
    ),
    "alternatives": (
        gettext_lazy("Each line of the expected answer is an alternative"),
        gettext_lazy("The answer is compared with each line; one match is enough."),
    ),
    "arguments": (gettext_lazy("Arguments"), ""),
    "at_most": (
        gettext_lazy("Calls at most"),
        gettext_lazy('JSON, for example {"send_email": 1}.'),
    ),
    "choices": (gettext_lazy("Choices"), gettext_lazy("One per line.")),
    "code": (
        gettext_lazy("Code"),
        gettext_lazy(
            "Define score(example, run). Return true or false, a number from 0 to 1, "
            "or a dictionary of value, label, passed and explanation."
        ),
    ),
    "compare": (gettext_lazy("Compare"), ""),
    "cost": (gettext_lazy("Cost in dollars"), ""),
    "dot_matches_newline": (gettext_lazy("The dot matches line ends"), ""),
    "fields": (
        gettext_lazy("Fields to compare"),
        gettext_lazy("One per line, such as items.0.name."),
    ),
    "first_token": (gettext_lazy("Seconds to the first token"), ""),
    "form": (gettext_lazy("Form"), ""),
    "ignore_case": (gettext_lazy("Ignore upper and lower case"), ""),
    "ignore_order": (gettext_lazy("Ignore the order of lists"), ""),
    "ignore_punctuation": (gettext_lazy("Ignore punctuation"), ""),
    "ignore_space": (gettext_lazy("Ignore white space"), ""),
    "in_order": (
        gettext_lazy("Order of calls"),
        gettext_lazy('JSON, for example [{"first": "get", "then": "update"}].'),
    ),
    "is_found": (
        gettext_lazy("The pattern must be found"),
        gettext_lazy("Clear it if the pattern must not be found."),
    ),
    "label": (
        gettext_lazy("Label before the answer"),
        gettext_lazy(
            "Only the text after its last occurrence is compared, for example ANSWER:"
        ),
    ),
    "labels": (
        gettext_lazy("Labels"),
        gettext_lazy('JSON, for example [{"label": "good", "value": 1}].'),
    ),
    "line": (gettext_lazy("Lines to compare"), ""),
    "match": (gettext_lazy("Match"), ""),
    "method": (gettext_lazy("Method"), ""),
    "model": (gettext_lazy("Model"), ""),
    "model_calls": (gettext_lazy("Model calls"), ""),
    "most_calls": (gettext_lazy("Calls in total at most"), ""),
    "multiline": (gettext_lazy("^ and $ match at each line"), ""),
    "must_call": (
        gettext_lazy("Tools that must be called"),
        gettext_lazy("One per line."),
    ),
    "needs": (gettext_lazy("Texts that must be found"), ""),
    "never_call": (
        gettext_lazy("Tools that must not be called"),
        gettext_lazy("One per line."),
    ),
    "output_schema": (gettext_lazy("JSON Schema"), ""),
    "parameters": (gettext_lazy("Parameters"), gettext_lazy("JSON.")),
    "pattern": (gettext_lazy("Pattern"), ""),
    "personal_data": (gettext_lazy("Personal data that must not be written"), ""),
    "place": (gettext_lazy("Where"), ""),
    "provider": (gettext_lazy("Provider"), gettext_lazy("Its short name.")),
    "relative": (
        gettext_lazy("Relative tolerance"),
        gettext_lazy("As a fraction of the expected number: 0.01 is 1%."),
    ),
    "rounds": (gettext_lazy("Rounds"), ""),
    "rubric": (
        gettext_lazy("Rubric"),
        gettext_lazy("What a good answer is, and when it passes."),
    ),
    "same_numbers": (gettext_lazy("1,000.0 equals 1000"), ""),
    "seconds": (gettext_lazy("Working time in seconds"), ""),
    "secrets": (gettext_lazy("No secret of this site"), ""),
    "shown": (gettext_lazy("What the judge reads besides the answer"), ""),
    "skip_failed": (gettext_lazy("Ignore failed calls"), ""),
    "texts": (
        gettext_lazy("Texts"),
        gettext_lazy("One per line; leave empty for the expected answer."),
    ),
    "threshold": (
        gettext_lazy("Passes from"),
        gettext_lazy("A score from 0 to 1."),
    ),
    "timeout": (gettext_lazy("Timeout in seconds"), ""),
    "tokens": (gettext_lazy("Tokens"), ""),
    "tolerance": (
        gettext_lazy("Tolerance of numbers"),
        gettext_lazy("How far off a number may be."),
    ),
    "votes": (gettext_lazy("Votes"), ""),
    "which": (gettext_lazy("Number to compare"), ""),
    "whole": (gettext_lazy("Match the whole answer"), ""),
}
CHOICE_LABELS: dict[str, Promise] = {
    "all": gettext_lazy("All"),
    "answer": gettext_lazy("In the answer"),
    "answer_and_calls": gettext_lazy("In the answer and in calls"),
    "any": gettext_lazy("Any of them"),
    "card": gettext_lazy("Card numbers"),
    "email": gettext_lazy("Email addresses"),
    "end": gettext_lazy("At the end"),
    "exact": gettext_lazy("Equal"),
    "expected_answer": gettext_lazy("Expected answer"),
    "fields": gettext_lazy("Some fields"),
    "first": gettext_lazy("First"),
    "iban": gettext_lazy("IBANs"),
    "ignored": gettext_lazy("Ignored"),
    "inputs": gettext_lazy("Inputs"),
    "ip_address": gettext_lazy("IP addresses"),
    "label": gettext_lazy("After a label"),
    "last": gettext_lazy("Last"),
    "none": gettext_lazy("None of them"),
    "nothing": gettext_lazy("Only the schema"),
    "only": gettext_lazy("The only one"),
    "pairwise": gettext_lazy("Compare with the baseline"),
    "phone": gettext_lazy("Phone numbers"),
    "rouge_l": gettext_lazy("Longest common sequence (ROUGE-L)"),
    "rubric": gettext_lazy("Score by the rubric"),
    "schema": gettext_lazy("Match a JSON Schema"),
    "start": gettext_lazy("At the beginning"),
    "steps": gettext_lazy("Steps"),
    "strict": gettext_lazy("Same calls in the same order"),
    "subset": gettext_lazy("No other calls"),
    "superset": gettext_lazy("At least these calls"),
    "token_f1": gettext_lazy("Shared words (F1)"),
    "unordered": gettext_lazy("Same calls in any order"),
    "whole": gettext_lazy("The whole answer"),
}


PREFERENCE_LABELS: dict[str, Promise] = {
    "better": gettext_lazy("better"),
    "worse": gettext_lazy("worse"),
    "same": gettext_lazy("the same"),
    "baseline": gettext_lazy("baseline"),
}
"""Of an evaluator that compares with the baseline; others have labels of people."""


def get_score_label(revision: EvaluatorRevision, label: str) -> str:
    is_preference = compares_with_baseline(revision.kind, revision.config)
    return str(PREFERENCE_LABELS.get(label, label)) if is_preference else label


SCORE_SOURCES: dict[str, Promise] = {
    "evaluator": gettext_lazy("evaluator"),
    "person": gettext_lazy("person"),
    "chat_user": gettext_lazy("user of the chat"),
}


def get_score_source_label(source: str) -> str:
    """Return who or what gives scores of a source."""
    return str(SCORE_SOURCES[source])


def get_evaluator_kind_label(name: str) -> EvaluatorKindLabel:
    """Return the texts of a kind; those of an extension are its name."""
    title, summary = KIND_TEXTS.get(name, (name, ""))
    return EvaluatorKindLabel(name, str(title), str(summary))


def list_evaluator_kinds() -> list[EvaluatorKindLabel]:
    return [get_evaluator_kind_label(name) for name in EVALUATOR_KINDS]
