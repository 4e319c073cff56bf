"""Add runs to a dataset: their inputs, and their answers as the expected ones."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Q, QuerySet

from runs.models import AgentStep, Dataset, Example, ModelCall, Run
from runs.services.datasets.content import (
    MAX_CALLS,
    ExampleContent,
    StoredCall,
    clean_cell,
)
from runs.services.datasets.edit import add_examples, edit_example, lock_dataset
from runs.services.datasets.same_example import (
    Question,
    build_question_key,
    find_known_questions,
    find_same_example,
)


class AddedRuns(NamedTuple):
    """What came of runs that were to be added."""

    dataset: Dataset
    added: int
    known: int
    """Those whose question the dataset had, or another of them."""
    unfinished: int
    without_input: int


def build_content_of_run(run: Run, *, row: int | None = None) -> ExampleContent:
    """Return the inputs, the answer and the calls of a run.

    With `row`, the number of a row on its page, it is what was done until then.
    """
    steps = AgentStep.objects.filter(run=run).exclude(tool="_Exception")
    steps = steps.order_by("index")
    answer = format_run_answer(run)
    if row is not None and not is_last_row(run, row):
        steps, answer = select_steps_until(run, steps, row), ""
    calls = steps.values_list("tool", "tool_input")[:MAX_CALLS]
    return ExampleContent(
        inputs={name: clean_cell(str(text)) for name, text in run.inputs.items()},
        expected_answer=answer,
        expected_calls=tuple(
            StoredCall(tool=tool, tool_input=given if isinstance(given, dict) else None)
            for tool, given in calls
        ),
    )


def build_question(run: Run) -> ExampleContent:
    """Return the inputs alone, of a run that answered wrongly."""
    return build_content_of_run(run).model_copy(
        update={"expected_answer": "", "expected_calls": ()}
    )


def select_steps_until(
    run: Run, steps: QuerySet[AgentStep], row: int
) -> QuerySet[AgentStep]:
    """Return the steps up to a row; the row of a reply has the calls in it."""
    reply = ModelCall.objects.filter(run=run, number=row - 1 - F("at_index"))
    return steps.filter(
        Q(index__lte=row - 2 - F("model_call__number")) | Q(model_call__in=reply)
    )


def is_last_row(run: Run, row: int) -> bool:
    """Whether the last reply of the model is not below this row."""
    last = ModelCall.objects.filter(run=run).order_by("-number").first()
    return last is None or row > last.number + last.at_index


def format_run_answer(run: Run) -> str:
    """Return the answer of a run as text; empty if it has none."""
    if run.answer is None:
        return ""
    if isinstance(run.answer, str):
        return clean_cell(run.answer)
    return clean_cell(json.dumps(run.answer, ensure_ascii=False, indent=2))


def add_runs_to_dataset(
    runs: Sequence[Run], dataset: Dataset | None, *, by: User, new_name: str = ""
) -> AddedRuns:
    """Add an unsaved example for each ended run that asks something new.

    An answer that was rated bad is not what is expected, so it is left out. Without a
    dataset, one called `new_name` is created. Raises `DatasetFull`; nothing is stored
    then.
    """
    with transaction.atomic():
        if dataset is None:
            dataset = Dataset.objects.create(owner=by, name=new_name)
        lock_dataset(dataset)
        ended = [run for run in runs if run.is_over]
        with_input = [run for run in ended if run.inputs]
        new: dict[Question, tuple[ExampleContent, Run]] = {}
        for run in with_input:
            is_bad = run.rating is not None and run.rating < 0
            content = build_question(run) if is_bad else build_content_of_run(run)
            new.setdefault(build_question_key(content, run), (content, run))
        digests = {question.input_digest for question in new}
        for known in find_known_questions(dataset, digests):
            new.pop(known, None)
        if new:
            add_examples(
                dataset,
                [content for content, _run in new.values()],
                by=by,
                source=Example.Source.RUN,
                runs=[run for _content, run in new.values()],
            )
    return AddedRuns(
        dataset=dataset,
        added=len(new),
        known=len(with_input) - len(new),
        unfinished=len(runs) - len(ended),
        without_input=len(ended) - len(with_input),
    )


def add_run_to_dataset(
    run: Run,
    dataset: Dataset | None,
    content: ExampleContent,
    *,
    by: User,
    updates: bool = False,
    new_name: str = "",
) -> Example:
    """Add an unsaved example; with `updates`, edit the one that asks the same.

    Without a dataset, one called `new_name` is created. Raises `ExampleRefused` or
    `DatasetFull`.
    """
    with transaction.atomic():
        if dataset is None:
            dataset = Dataset.objects.create(owner=by, name=new_name)
        lock_dataset(dataset)
        same = find_same_example(dataset, content, run) if updates else None
        if same is not None:
            return edit_example(dataset, same.number, content, by=by)
        [row] = add_examples(
            dataset, [content], by=by, source=Example.Source.RUN, runs=[run]
        )
    return row
