"""Which examples ask the same: equal inputs, after the same earlier messages."""

import hashlib
import json
from collections.abc import Collection
from typing import Any, NamedTuple

from django.db.models import Q

from runs.models import Dataset, Example, Run
from runs.services.datasets.content import ExampleContent, compute_input_digest
from runs.services.datasets.working_copy import select_working_examples

LARGEST_FILTER = 500
"""Digests of one query; for more, all examples of the dataset are read."""


class Question(NamedTuple):
    """What an example asks, to find others that ask the same."""

    input_digest: str
    messages_digest: str = ""
    """Of the earlier messages of a conversation; empty without any."""


def build_question_key(content: ExampleContent, run: Run | None) -> Question:
    """Return what an example with this content and source run asks."""
    digest = compute_input_digest(content.inputs)
    if run is None:
        return Question(digest)
    return Question(digest, digest_earlier_messages(run.turn_ids, run.given_turns))


def digest_earlier_messages(turn_ids: list[int], given_turns: list[Any] | None) -> str:
    """Return the same text for the same messages; empty if there are none."""
    if not turn_ids and not given_turns:
        return ""
    text = json.dumps([turn_ids, given_turns or []])
    return hashlib.sha256(text.encode()).hexdigest()


def find_same_example(
    dataset: Dataset, content: ExampleContent, run: Run | None
) -> Example | None:
    """Return the example that asks what `run` asks, with unsaved changes."""
    question = build_question_key(content, run)
    number = find_known_questions(dataset, {question.input_digest}).get(question)
    if number is None:
        return None
    return select_working_examples(dataset).get(number=number)


def find_known_questions(
    dataset: Dataset, digests: Collection[str]
) -> dict[Question, int]:
    """Return the numbers of the examples with one of the inputs, by what they ask.

    The earlier messages of a deleted run are unknown, so no other run has the same.
    """
    rows = select_working_examples(dataset).exclude(change=Example.Change.REMOVED)
    if len(digests) <= LARGEST_FILTER:
        rows = rows.filter(input_digest__in=digests)
    lost = Q(source=Example.Source.CONVERSATION, source_run=None)
    columns = ("input_digest", "number")
    turns = ("source_run__turn_ids", "source_run__given_turns")
    return {
        Question(digest, digest_earlier_messages(turn_ids or [], given)): number
        for digest, number, turn_ids, given in rows.exclude(lost).values_list(
            *columns, *turns
        )
    }
