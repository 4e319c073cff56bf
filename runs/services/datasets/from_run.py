"""Add a run to a dataset: its inputs, and its answer as the expected one."""

import json

from django.contrib.auth.models import User
from django.db import transaction

from runs.models import AgentStep, Dataset, Example, Run
from runs.services.datasets.content import (
    MAX_CALLS,
    ExampleContent,
    StoredCall,
    clean_cell,
    compute_input_digest,
)
from runs.services.datasets.edit import add_examples, edit_example
from runs.services.datasets.working_copy import select_working_examples


def build_content_of_run(run: Run) -> ExampleContent:
    """Return the inputs, the answer and the calls of a run."""
    steps = AgentStep.objects.filter(run=run).exclude(tool="_Exception")
    steps = steps.order_by("index")
    calls = steps.values_list("tool", "tool_input")[:MAX_CALLS]
    return ExampleContent(
        inputs={name: clean_cell(str(text)) for name, text in run.inputs.items()},
        expected_answer=format_answer(run),
        expected_calls=tuple(
            StoredCall(tool=tool, tool_input=given if isinstance(given, dict) else None)
            for tool, given in calls
        ),
    )


def format_answer(run: Run) -> str:
    """Return the answer of a run as text; empty if it has none."""
    if run.answer is None:
        return ""
    if isinstance(run.answer, str):
        return clean_cell(run.answer)
    return clean_cell(json.dumps(run.answer, ensure_ascii=False, indent=2))


def find_same_example(dataset: Dataset, content: ExampleContent) -> Example | None:
    """Return an example with the same inputs."""
    rows = select_working_examples(dataset).exclude(change=Example.Change.REMOVED)
    return rows.filter(input_digest=compute_input_digest(content.inputs)).first()


def add_run_to_dataset(
    run: Run,
    dataset: Dataset | None,
    content: ExampleContent,
    *,
    by: User,
    updates: bool = False,
    new_name: str = "",
) -> Example:
    """Add an unsaved example; with `updates`, edit the one with the same inputs.

    Without a dataset, one called `new_name` is created. Raises `ExampleRefused` or
    `DatasetFull`.
    """
    with transaction.atomic():
        if dataset is None:
            dataset = Dataset.objects.create(owner=by, name=new_name)
        same = find_same_example(dataset, content) if updates else None
        if same is not None:
            return edit_example(dataset, same.number, content, by=by)
        [row] = add_examples(
            dataset, [content], by=by, source=Example.Source.RUN, runs=[run]
        )
    return row
