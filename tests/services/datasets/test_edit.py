"""Adding, editing and removing examples, and saving versions."""

import pytest

from runs.models import Dataset, Example
from runs.services.datasets.content import ExampleContent
from runs.services.datasets.edit import (
    add_examples,
    discard_changes,
    edit_example,
    remove_example,
    remove_examples,
    restore_example,
    set_input_names,
)
from runs.services.datasets.save_version import save_dataset_version
from runs.services.datasets.working_copy import (
    UnsavedChanges,
    count_unsaved_changes,
    count_working_examples,
    select_examples,
)
from runs.services.errors import DatasetFull, ExampleRefused, VersionRefused
from tests.make import make_dataset

pytestmark = pytest.mark.django_db


def content(question: str, answer: str = "", **more: str) -> ExampleContent:
    return ExampleContent(inputs={"input": question, **more}, expected_answer=answer)


def saved(*questions: str) -> Dataset:
    """Return a dataset with version 1."""
    dataset = make_dataset()
    add_examples(dataset, [content(one) for one in questions], by=dataset.owner)
    save_dataset_version(dataset, seen=0, by=dataset.owner)
    dataset.refresh_from_db()
    return dataset


def questions(dataset: Dataset, version: int | None) -> list[str]:
    return [row.inputs["input"] for row in select_examples(dataset, version)]


def test_changes_count_only_once_a_version_is_saved():
    dataset = saved("a", "b", "c")
    edit_example(dataset, 1, content("A"), by=dataset.owner)
    remove_example(dataset, 2, by=dataset.owner)
    add_examples(dataset, [content("d")], by=dataset.owner)

    assert questions(dataset, 1) == ["a", "b", "c"]
    assert questions(dataset, None) == ["d", "A", "b", "c"]  # the removed one is shown
    assert count_unsaved_changes(dataset) == UnsavedChanges(1, 1, 1)

    version = save_dataset_version(dataset, seen=1, by=dataset.owner)

    assert questions(dataset, 1) == ["a", "b", "c"]
    assert questions(dataset, 2) == ["A", "c", "d"]
    assert (version.example_count, version.added, version.edited, version.removed) == (
        3,
        1,
        1,
        1,
    )
    dataset.refresh_from_db()
    assert questions(dataset, None) == ["A", "c", "d"]


def test_discarding_restores_the_saved_examples():
    dataset = saved("a", "b")
    edit_example(dataset, 1, content("A"), by=dataset.owner)
    remove_example(dataset, 2, by=dataset.owner)
    add_examples(dataset, [content("c")], by=dataset.owner)

    assert discard_changes(dataset) == 3
    assert questions(dataset, None) == ["a", "b"]


def test_an_edit_that_restores_the_saved_content_is_no_change():
    dataset = saved("a")
    edit_example(dataset, 1, content("A"), by=dataset.owner)
    edit_example(dataset, 1, content("a"), by=dataset.owner)

    assert count_unsaved_changes(dataset).total == 0


def test_a_removed_example_can_be_restored():
    dataset = saved("a", "b")
    remove_example(dataset, 1, by=dataset.owner)
    assert count_working_examples(dataset) == 1

    restore_example(dataset, 1)
    assert count_working_examples(dataset) == 2


def test_removing_an_example_that_was_never_saved_leaves_nothing():
    dataset = saved("a")
    [row] = add_examples(dataset, [content("b")], by=dataset.owner)

    assert remove_example(dataset, row.number, by=dataset.owner) is None
    assert Example.objects.filter(dataset=dataset).count() == 1


def test_numbers_are_never_used_twice():
    dataset = saved("a")
    add_examples(dataset, [content("b")], by=dataset.owner)
    discard_changes(dataset)
    [row] = add_examples(dataset, [content("c")], by=dataset.owner)

    assert row.number == 3


def test_a_version_saved_meanwhile_is_not_overwritten():
    dataset = saved("a")
    edit_example(dataset, 1, content("A"), by=dataset.owner)
    save_dataset_version(dataset, seen=1, by=dataset.owner)
    edit_example(dataset, 1, content("B"), by=dataset.owner)

    with pytest.raises(VersionRefused, match="saved version 2 meanwhile"):
        save_dataset_version(dataset, seen=1, by=dataset.owner)
    assert questions(dataset, 2) == ["A"]


def test_a_version_without_changes_is_refused():
    dataset = saved("a")

    with pytest.raises(VersionRefused, match="Nothing has changed"):
        save_dataset_version(dataset, seen=1, by=dataset.owner)


def test_columns_follow_the_variables_of_the_examples():
    dataset = make_dataset(input_names=["input"])
    add_examples(dataset, [content("a", city="Oslo")], by=dataset.owner)
    add_examples(dataset, [ExampleContent(inputs={"day": "x"})], by=dataset.owner)
    dataset.refresh_from_db()
    assert dataset.input_names == ["input", "city", "day"]

    set_input_names(dataset, ["city", "new"])
    assert dataset.input_names == ["city", "new", "input", "day"]


def test_the_first_examples_replace_the_default_column():
    dataset = make_dataset(input_names=["input"])

    add_examples(dataset, [ExampleContent(inputs={"day": "x"})], by=dataset.owner)

    dataset.refresh_from_db()
    assert dataset.input_names == ["day"]


def test_an_example_needs_an_input():
    dataset = make_dataset()

    with pytest.raises(ExampleRefused, match="Enter an input"):
        add_examples(dataset, [content("a"), ExampleContent()], by=dataset.owner)
    assert not dataset.examples.exists()


def test_a_dataset_has_a_limit(monkeypatch):
    monkeypatch.setattr("runs.services.datasets.edit.MAX_EXAMPLES", 2)
    dataset = saved("a", "b")

    with pytest.raises(DatasetFull, match="would have 3 examples"):
        add_examples(dataset, [content("c")], by=dataset.owner)
    assert questions(dataset, None) == ["a", "b"]


def test_many_examples_are_removed_by_few_queries(django_assert_max_num_queries):
    dataset = saved("a", "b", *(f"q{n}" for n in range(60)))
    owner = dataset.owner
    added = add_examples(dataset, [content("new")], by=owner)[0]
    edit_example(dataset, 2, content("B"), by=owner)
    numbers = [one.number for one in dataset.examples.exclude(number=1)]

    with django_assert_max_num_queries(12):
        removed = remove_examples(dataset, numbers, by=owner)

    assert len(removed) == 62
    assert added.number in {one.number for one in removed}
    assert count_unsaved_changes(dataset) == (0, 0, 61)
    assert count_working_examples(dataset) == 1
