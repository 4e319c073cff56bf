"""Examples that several people edit at the same time."""

import html
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from runs.models import Dataset
from runs.services.datasets.content import ExampleContent, set_cell_text
from runs.services.datasets.edit import add_examples, edit_example, remove_example
from runs.services.datasets.save_version import save_dataset_version
from runs.services.datasets.working_copy import find_working_example
from tests.make import make_dataset

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}
CHANGED = "This field was changed in another tab or by another user"


@pytest.fixture
def dataset(ann) -> Dataset:
    """A dataset with a saved example."""
    found = make_dataset(ann, input_names=["city", "day"])
    content = ExampleContent(
        inputs={"city": "Oslo", "day": "Monday"},
        expected_answer="Rain\nand wind ",
        tags=("one", "two"),
    )
    add_examples(found, [content], by=ann)
    save_dataset_version(found, seen=0, by=ann)
    return Dataset.objects.get(pk=found.pk)


def content_of(dataset: Dataset) -> ExampleContent:
    return ExampleContent.of(find_working_example(dataset, 1))


def edit(dataset: Dataset, **cells: str) -> None:
    """Edit cells as someone else does."""
    content = content_of(dataset)
    for field, text in cells.items():
        name = field if field in {"answer", "calls", "tags"} else f"input:{field}"
        content = set_cell_text(content, name, text)
    edit_example(dataset, 1, content, by=dataset.owner)


def open_form(client, dataset: Dataset) -> dict[str, str]:
    """Return what a browser sends of the open form."""
    page = client.get(f"/datasets/{dataset.pk}/examples/1/").text
    return read_form(page)


def read_form(page: str) -> dict[str, str]:
    [form] = re.findall(r'<form class="card".*?</form>', page, re.DOTALL)
    areas = re.findall(
        r'<textarea name="([^"]+)"[^>]*>\n(.*?)</textarea>', form, re.DOTALL
    )
    inputs = re.findall(
        r'<input type="(?:hidden|text)" name="(\w+)" value="([^"]*)', form
    )
    fields = [*areas, *inputs]
    return {name: html.unescape(text).replace("\n", "\r\n") for name, text in fields}


def send(client, dataset: Dataset, form: dict[str, str]):
    return client.post(f"/datasets/{dataset.pk}/examples/1/", form)


def test_a_form_stores_only_what_was_changed_in_it(client, dataset):
    form = open_form(client, dataset)
    edit(dataset, answer="Sun", city="Bergen")

    answer = send(client, dataset, form | {"tags": "one, two, three"})

    assert answer.status_code == 302
    stored = content_of(dataset)
    assert stored.tags == ("one", "two", "three")
    assert stored.expected_answer == "Sun"
    assert stored.inputs == {"city": "Bergen", "day": "Monday"}


def test_a_field_that_both_changed_is_shown_again_and_nothing_is_stored(
    client, dataset
):
    form = open_form(client, dataset)
    edit(dataset, answer="Sun", tags="")
    before = content_of(dataset)

    mine = {"answer": "Snow", "tags": "mine", "input-1": "Friday"}
    page = send(client, dataset, form | mine).text

    assert content_of(dataset) == before
    assert page.count(CHANGED) == 2
    assert "It is now: “Sun”." in page
    assert "It is empty now." in page
    again = read_form(page)
    assert {name: again[name] for name in mine} == mine

    edit(dataset, answer="Fog")
    page = send(client, dataset, again).text
    assert "It is now: “Fog”." in page
    assert page.count(CHANGED) == 1
    assert send(client, dataset, read_form(page)).status_code == 302
    stored = content_of(dataset)
    assert (stored.expected_answer, stored.tags) == ("Snow", ("mine",))
    assert stored.inputs["day"] == "Friday"


def test_the_same_change_of_two_people_is_no_conflict(client, dataset):
    form = open_form(client, dataset)
    edit(dataset, tags="one, three")

    assert send(client, dataset, form | {"tags": "one,three"}).status_code == 302
    assert content_of(dataset).tags == ("one", "three")


def test_a_column_that_was_added_meanwhile_moves_no_text(client, dataset):
    form = open_form(client, dataset)
    Dataset.objects.filter(pk=dataset.pk).update(input_names=["new", "city", "day"])
    edit(dataset, new="fresh")

    assert send(client, dataset, form | {"input-1": "Friday"}).status_code == 302

    inputs = content_of(dataset).inputs
    assert inputs == {"city": "Oslo", "day": "Friday", "new": "fresh"}


@pytest.mark.parametrize(
    "token",
    [
        pytest.param("", id="empty"),
        pytest.param("[" * 100_000, id="deep"),
        pytest.param("{}", id="no cells"),
        pytest.param('{"answer": "", "calls": "", "tags": ""}', id="no inputs"),
        pytest.param(
            '{"input:\\u0000": "", "answer": "", "calls": "", "tags": ""}', id="NUL"
        ),
        pytest.param(
            '{"input:a": 1, "answer": {}, "calls": [], "tags": 1}', id="no texts"
        ),
    ],
)
def test_a_form_without_a_readable_token_stores_its_texts(client, dataset, token):
    form = open_form(client, dataset) | {"seen": token, "tags": "new"}

    assert send(client, dataset, form).status_code == 302
    stored = content_of(dataset)
    assert (stored.tags, set(stored.inputs)) == (("new",), {"city", "day"})


def test_the_token_names_no_texts(client, dataset):
    token = json.loads(open_form(client, dataset)["seen"])

    assert list(token) == ["input:city", "input:day", "answer", "calls", "tags"]
    assert all(len(value) == 16 for value in token.values())


def post_cell(client, dataset: Dataset, field: str, text: str, seen: str = ""):
    cell = {"field": field, "text": text, "seen": seen}
    url = f"/datasets/{dataset.pk}/examples/1/cell/"
    return client.post(url, cell, headers=HTMX)


def get_seen(page: str) -> str:
    [seen] = re.findall(r'name="seen" value="(\w+)"', page.partition("<hx-partial")[0])
    return seen


def open_cell(client, dataset: Dataset, field: str) -> str:
    url = f"/datasets/{dataset.pk}/examples/1/cell/?field={field}"
    return get_seen(client.get(url, headers=HTMX).text)


def test_two_people_edit_different_cells_of_a_row(client, dataset):
    seen = open_cell(client, dataset, "answer")
    edit(dataset, city="Bergen")

    post_cell(client, dataset, "answer", "Snow", seen)

    stored = content_of(dataset)
    assert (stored.expected_answer, stored.inputs["city"]) == ("Snow", "Bergen")


def test_a_cell_stays_open_if_someone_else_has_changed_it(client, dataset):
    seen = open_cell(client, dataset, "answer")
    edit(dataset, answer="Sun")

    row = post_cell(client, dataset, "answer", "Snow", seen).text

    assert CHANGED in row
    assert "“Sun”" in row
    assert "\nSnow</textarea>" in row
    assert content_of(dataset).expected_answer == "Sun"
    post_cell(client, dataset, "answer", "Snow", get_seen(row))
    assert content_of(dataset).expected_answer == "Snow"


def test_a_refused_text_does_not_hide_a_later_change(client, dataset):
    seen = open_cell(client, dataset, "calls")
    edit(dataset, calls="get")

    row = post_cell(client, dataset, "calls", "put {1", seen).text
    assert CHANGED not in row

    row = post_cell(client, dataset, "calls", "put", get_seen(row)).text
    assert CHANGED in row
    assert content_of(dataset).expected_calls[0].tool == "get"


def after_first_read(work: Callable[[], None]) -> Callable[..., Any]:
    """Return a wrapper that does `work` once a request has read the example."""
    done: list[bool] = []

    def execute(run: Callable[..., Any], sql: str, *rest: Any) -> Any:
        result = run(sql, *rest)
        if not done and 'FROM "runs_example"' in sql:
            done.append(True)
            work()
        return result

    return execute


def test_a_cell_is_read_and_stored_under_one_lock(client, dataset):
    seen = open_cell(client, dataset, "answer")

    with connection.execute_wrapper(
        after_first_read(lambda: edit(dataset, city="Bergen"))
    ):
        post_cell(client, dataset, "answer", "Snow", seen)

    stored = content_of(dataset)
    assert (stored.expected_answer, stored.inputs["city"]) == ("Snow", "Bergen")


def test_a_form_is_read_and_stored_under_one_lock(client, dataset):
    form = open_form(client, dataset)

    with connection.execute_wrapper(
        after_first_read(lambda: edit(dataset, city="Bergen"))
    ):
        send(client, dataset, form | {"answer": "Snow"})

    stored = content_of(dataset)
    assert (stored.expected_answer, stored.inputs["city"]) == ("Snow", "Bergen")


def test_an_example_that_is_removed_meanwhile_is_not_found(client, ann):
    dataset = make_dataset(ann)
    add_examples(dataset, [ExampleContent(inputs={"input": "a"})], by=ann)

    with connection.execute_wrapper(
        after_first_read(lambda: remove_example(dataset, 1, by=ann))
    ):
        answer = post_cell(client, dataset, "answer", "Snow")

    assert answer.status_code == 404
    assert not dataset.examples.exists()


REMOVED = "This example was removed. Undo that before you edit it."


def test_an_open_form_does_not_bring_a_removed_example_back(client, dataset):
    form = open_form(client, dataset)
    remove_example(dataset, 1, by=dataset.owner)

    page = send(client, dataset, form | {"answer": "Snow"}).text

    assert REMOVED in page
    assert read_form(page)["answer"] == "Snow"
    assert find_working_example(dataset, 1).change == "removed"


def test_an_open_cell_does_not_bring_a_removed_example_back(client, dataset):
    seen = open_cell(client, dataset, "answer")
    remove_example(dataset, 1, by=dataset.owner)

    row = post_cell(client, dataset, "answer", "Snow", seen).text

    assert REMOVED in row
    assert "Snow</textarea>" in row
    assert find_working_example(dataset, 1).change == "removed"


def test_a_removed_example_can_only_be_restored(client, dataset):
    remove_example(dataset, 1, by=dataset.owner)

    table = client.get(f"/datasets/{dataset.pk}/").text
    page = client.get(f"/datasets/{dataset.pk}/examples/1/").text

    assert "data-field" not in table
    assert REMOVED in page
    assert re.search(r'<button class="btn primary"\s+disabled>', page)
    assert "Undo the change" in page
