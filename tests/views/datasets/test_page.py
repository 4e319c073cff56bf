"""Datasets: list, page, cells, import, export, versions and runs that are added."""

import json
import re
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils.html import strip_tags

from runs.models import Dataset, DatasetUpload, Run
from runs.services.datasets.content import ExampleContent
from runs.services.datasets.edit import add_examples, edit_example
from runs.services.datasets.save_version import save_dataset_version
from tests.make import make_call, make_dataset, make_run, make_step, make_user
from tools.models import AuditEntry

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


@pytest.fixture
def dataset(ann) -> Dataset:
    """A dataset with version 1: questions a and b."""
    found = make_dataset(ann, name="Tickets", input_names=["input"])
    contents = [
        ExampleContent(
            inputs={"input": name}, expected_answer=name.upper(), tags=(tag,)
        )
        for name, tag in (("aaa", "one"), ("bbb", "two"))
    ]
    add_examples(found, contents, by=ann)
    save_dataset_version(found, seen=0, by=ann)
    return Dataset.objects.get(pk=found.pk)


def edit(dataset: Dataset, number: int, answer: str) -> None:
    content = ExampleContent.of(dataset.examples.get(number=number, change=""))
    edited = content.model_copy(update={"expected_answer": answer})
    edit_example(dataset, number, edited, by=dataset.owner)


def page_of(client, dataset: Dataset, query: str = "") -> str:
    return client.get(f"/datasets/{dataset.pk}/{query}").content.decode()


def test_a_new_row_becomes_an_example_with_the_text_of_its_first_cell(client, dataset):
    url = f"/datasets/{dataset.pk}/examples/0/cell/"
    assert f'data-row-url="{url}?field=input:input"' in page_of(client, dataset)
    row = client.get(f"{url}?field=input:input", headers=HTMX).content.decode()
    assert 'id="dataset-row-0"' in row
    assert 'class="cellbox"' in row

    given = {"field": "input:input", "text": ""}
    refused = client.post(url, given, headers=HTMX).content.decode()
    assert "Enter an input." in refused
    added = client.post(url, {**given, "text": "ccc"}, headers=HTMX).content.decode()

    assert 'id="dataset-row-3"' in added
    assert dataset.examples.get(number=3).inputs == {"input": "ccc"}
    assert client.get(f"/datasets/{dataset.pk}/examples/0/").status_code == 404


def test_shows_the_list_and_hides_what_is_someone_elses(client, dataset):
    make_dataset(name="Their dataset")

    page = client.get("/datasets/").content.decode()

    assert "Tickets" in page
    assert "Their dataset" not in page


def test_creates_a_dataset_with_its_variables(client, ann):
    client.post(
        "/datasets/new/",
        {"name": "New", "variables": "city, day,city", "visibility": "private"},
    )

    found = Dataset.objects.get()
    assert found.input_names == ["city", "day"]
    assert AuditEntry.objects.get(noun="dataset").action == "made"


def test_shows_the_examples_with_unsaved_changes_to_the_owner_only(client, dataset):
    edit(dataset, 1, "CHANGED")
    dataset.visibility = "everyone"
    dataset.save()

    assert "CHANGED" in page_of(client, dataset)
    assert "Version 2, not saved" in page_of(client, dataset)
    assert "CHANGED" not in page_of(client, dataset, "?version=1")
    client.force_login(make_user("other"))
    page = page_of(client, dataset)
    assert "AAA" in page
    assert "CHANGED" not in page
    assert "dataset-savebar" not in page


def test_searches_and_filters_by_tag_and_change(client, dataset):
    edit(dataset, 2, "Ünsaved")

    assert "aaa" not in page_of(client, dataset, "?q=üNSAVED")
    assert "bbb" not in page_of(client, dataset, "?tag=one")
    assert "aaa" not in page_of(client, dataset, "?show=changed")
    assert "No matching examples" in page_of(client, dataset, "?q=nothing")


def test_a_version_that_does_not_exist_is_not_found(client, dataset):
    assert client.get(f"/datasets/{dataset.pk}/?version=2").status_code == 404


def test_a_cell_is_edited_in_place(client, dataset):
    url = f"/datasets/{dataset.pk}/examples/1/cell/"
    editor = client.get(f"{url}?field=answer", headers=HTMX).content.decode()
    assert ">\nAAA</textarea>" in editor

    row = client.post(url, {"field": "answer", "text": "New"}, headers=HTMX)

    assert "edited-cell" in row.content.decode()
    assert "Save version 2" in row.content.decode().replace("\n", " ").replace("  ", "")
    assert dataset.examples.unsaved().get().expected_answer == "New"


def test_a_cell_that_cannot_be_read_stays_open_with_its_text(client, dataset):
    url = f"/datasets/{dataset.pk}/examples/1/cell/"

    row = client.post(url, {"field": "calls", "text": "get {1"}, headers=HTMX)

    page = row.content.decode()
    assert "get {1" in page
    assert "write the arguments as a JSON object" in page
    assert not dataset.examples.unsaved().exists()


def test_the_only_input_cannot_be_emptied(client, dataset):
    url = f"/datasets/{dataset.pk}/examples/1/cell/"

    row = client.post(url, {"field": "input:input", "text": " "}, headers=HTMX)

    assert "Enter an input" in row.content.decode()


def test_an_example_is_added_removed_and_restored(client, dataset):
    url = f"/datasets/{dataset.pk}/examples"
    client.post(f"{url}/new/", {"input-0": "ccc", "tags": "x, y"})
    assert dataset.examples.unsaved().get().tags == ["x", "y"]

    client.post(f"{url}/3/remove/")
    client.post(f"{url}/1/remove/")
    assert dataset.examples.unsaved().get().change == "removed"

    client.post(f"{url}/1/remove/", {"restore": "1"})
    assert not dataset.examples.unsaved().exists()


def test_saving_writes_an_audit_entry(client, dataset):
    edit(dataset, 1, "CHANGED")

    client.post(f"/datasets/{dataset.pk}/save/", {"seen": "1"})

    dataset.refresh_from_db()
    assert dataset.version == 2
    entry = AuditEntry.objects.filter(noun="dataset version").latest("pk")
    assert (entry.action, entry.thing) == ("saved", "Tickets v2")


def test_saving_over_a_newer_version_is_refused_with_a_reason(client, dataset):
    edit(dataset, 1, "CHANGED")

    answer = client.post(f"/datasets/{dataset.pk}/save/", {"seen": "0"}, follow=True)

    assert "saved version 1 meanwhile" in answer.content.decode()
    assert dataset.examples.unsaved().count() == 1


def test_discards_the_changes(client, dataset):
    edit(dataset, 1, "CHANGED")

    page = client.post(f"/datasets/{dataset.pk}/discard/").text
    assert f"Discard 1 change of {dataset.name}?" in page
    assert dataset.examples.unsaved().exists()
    url = f"/datasets/{dataset.pk}/discard/?changes=1"
    assert f'action="{url}"' in page
    edit(dataset, 2, "CHANGED MEANWHILE")
    assert "Discard 2 changes of" in client.post(url, {"sure": "1"}).text
    client.post(url.replace("=1", "=2"), {"sure": "1"})

    assert not dataset.examples.unsaved().exists()


def upload(client, dataset: Dataset, text: str, name: str = "a.csv"):
    file = SimpleUploadedFile(name, text.encode())
    return client.post(f"/datasets/{dataset.pk}/upload/", {"file": file}, follow=True)


def test_a_file_is_previewed_mapped_and_imported(client, dataset):
    page = upload(client, dataset, "q,extra\nccc,C\naaa,A2\n").content.decode()
    assert "same as 1" not in page  # `q` says nothing yet
    assert "Select the column with the input" in page

    url = f"/datasets/{dataset.pk}/import/"
    fields = {"column-0": "input:input", "column-1": "answer", "duplicates": "update"}
    part = client.post(url, fields, headers=HTMX).content.decode()
    assert "same as 1" in part
    assert not dataset.examples.unsaved().exists()

    client.post(url, {**fields, "do": "import"})

    changes = dataset.examples.unsaved().values_list("change", "expected_answer")
    assert set(changes) == {("added", "C"), ("edited", "A2")}
    assert not DatasetUpload.objects.exists()


def test_a_file_that_cannot_be_read_is_refused_in_place(client, dataset):
    page = upload(client, dataset, "q,q\n1,2\n").content.decode()

    assert "Columns 1 and 2 are both called “q”" in page
    assert not DatasetUpload.objects.exists()


def test_a_file_that_is_refused_takes_the_one_before_away(client, dataset):
    page = upload(client, dataset, "input\nccc\n").content.decode()
    assert "<b>1</b> new example" in page
    assert "new examples" not in page
    assert "Import 1 example" in page

    client.post(f"/datasets/{dataset.pk}/upload/")  # without a file
    assert DatasetUpload.objects.exists()
    page = upload(client, dataset, "q,q\n1,2\n").content.decode()

    assert "Import 1 example" not in page
    assert not DatasetUpload.objects.exists()


def test_large_counts_have_separators(client, dataset):
    dataset.versions.update(example_count=10_000)
    rows = "input\n" + "".join(f"q{n}\n" for n in range(1_200))

    page = upload(client, dataset, rows).content.decode()

    assert "10,000 examples" in strip_tags(page)
    assert "Import 1,200 examples" in strip_tags(page)
    assert "CSV, 1,200 rows" in strip_tags(page)


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        pytest.param(
            "input\n" + "x\n" * 100_000, "a.csv", "more than 10,000 rows", id="rows"
        ),
        pytest.param(
            '{"input": "x"}\n' * 100_000, "a.jsonl", "more than 10,000", id="JSON rows"
        ),
        pytest.param(
            "input\n" + "x" * 10_000_000, "a.csv", "at most 100,000 are", id="10 MB"
        ),
        pytest.param('{"q": "1", "q": "2"}', "a.json", "“q” occurs twice", id="twice"),
    ],
)
def test_a_file_out_of_bounds_is_refused_in_place_and_nothing_is_stored(
    client, dataset, text, name, said
):
    before = list(dataset.examples.values_list("pk", "change"))

    answer = upload(client, dataset, text, name)

    assert answer.status_code == 200
    assert said in answer.content.decode()
    assert not DatasetUpload.objects.exists()
    assert list(dataset.examples.values_list("pk", "change")) == before


@pytest.mark.parametrize(
    ("size", "status", "said"),
    [(200_000, 200, "at most 100,000"), (10_000_000, 400, "Nothing was changed.")],
)
def test_a_cell_that_is_too_long_is_refused_and_nothing_is_stored(
    client, dataset, size, status, said
):
    url = f"/datasets/{dataset.pk}/examples/1/cell/"
    before = list(dataset.examples.values_list("pk", "expected_answer"))

    answer = client.post(url, {"field": "answer", "text": "x" * size}, headers=HTMX)

    assert answer.status_code == status
    assert said in answer.content.decode()
    assert list(dataset.examples.values_list("pk", "expected_answer")) == before


def test_an_import_can_be_canceled(client, dataset):
    upload(client, dataset, "input\nccc\n")

    client.post(f"/datasets/{dataset.pk}/import/", {"do": "cancel"})

    assert not DatasetUpload.objects.exists()
    assert not dataset.examples.unsaved().exists()


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_an_export_can_be_imported_again(client, ann, kind):
    original = make_dataset(ann, name="Original")
    content = ExampleContent.model_validate(
        {
            "inputs": {"input": "=SUM(A1)\n-5", "tags": "a variable"},
            "expected_answer": '+1 "said"',
            "expected_calls": [{"tool": "get", "tool_input": {"id": 5}}],
            "tags": ("one", "two"),
        }
    )
    add_examples(original, [content], by=ann)

    answer = client.get(f"/datasets/{original.pk}/export/?as={kind}")
    text = b"".join(answer.streaming_content).decode()

    copy = make_dataset(ann, name="Copy", input_names=["input", "tags"])
    upload(client, copy, text, f"a.{kind}")
    mapping = DatasetUpload.objects.get().mapping["fields"]
    fields = {f"column-{n}": field for n, field in enumerate(mapping)}
    client.post(f"/datasets/{copy.pk}/import/", {**fields, "do": "import"})
    assert ExampleContent.of(copy.examples.get()) == content


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_run_of_the_same_number_on_another_site_is_no_source_run(client, ann, kind):
    original = make_dataset(ann, name="Original")
    kept, other = make_run(ann), make_run(ann)
    contents = [ExampleContent(inputs={"input": text}) for text in "ab"]
    add_examples(original, contents, by=ann, runs=[kept, other])
    answer = client.get(f"/datasets/{original.pk}/export/?as={kind}")
    text = b"".join(answer.streaming_content).decode()
    later = other.created_at + timedelta(days=1)
    Run.objects.filter(pk=other.pk).update(created_at=later)

    copy = make_dataset(ann, name="Copy")
    upload(client, copy, text, f"a.{kind}")
    page = page_of(client, copy)
    mapping = DatasetUpload.objects.get().mapping["fields"]
    fields = {f"column-{n}": field for n, field in enumerate(mapping)}
    client.post(f"/datasets/{copy.pk}/import/", {**fields, "do": "import"})

    assert "1 row is imported without its source run" in page
    rows = copy.examples.order_by("number")
    assert [row.source_run for row in rows] == [kept, None]


def test_a_copy_has_the_saved_examples(client, dataset):
    edit(dataset, 1, "CHANGED")

    client.post(f"/datasets/{dataset.pk}/duplicate/")

    copy = Dataset.objects.exclude(pk=dataset.pk).get()
    assert copy.version == 1
    answers = copy.examples.order_by("number").values_list("expected_answer", flat=True)
    assert list(answers) == ["AAA", "BBB"]


def test_an_archived_dataset_is_read_only(client, dataset):
    client.post(f"/datasets/{dataset.pk}/archive/")

    assert "cannot be edited" in page_of(client, dataset)


def make_answered_run(ann, **fields):
    answer = {"inputs": {"input": "aaa"}, "output": "Yes."}
    run = make_run(owner=ann, status="succeeded", **answer, **fields)
    make_call(run)
    make_step(run, tool="get", tool_input={"id": 5}, status="succeeded")
    return run


def test_a_run_becomes_an_example_with_its_answer_and_calls(client, ann):
    run = make_answered_run(ann)
    page = client.get(f"/runs/{run.pk}/dataset/").content.decode()
    assert "Yes.</textarea>" in page
    assert "get {&quot;id&quot;: 5}</textarea>" in page

    form = {"name": "From runs", "input-0": "aaa", "answer": "No.", "calls": "get"}
    client.post(f"/runs/{run.pk}/dataset/", form)

    example = Dataset.objects.get(name="From runs").examples.get()
    assert (example.expected_answer, example.source_run) == ("No.", run)
    assert example.expected_calls == [{"tool": "get", "tool_input": None}]


def test_a_run_with_the_input_of_an_example_asks_what_to_do(client, ann, dataset):
    run = make_answered_run(ann)
    form = {"dataset": dataset.pk, "input-0": "aaa", "answer": "Yes."}
    url = f"/runs/{run.pk}/dataset/"

    page = client.post(url, form).content.decode()
    assert "of the dataset has the same input" in page
    assert not dataset.examples.unsaved().exists()

    client.post(url, {**form, "same": "update"})
    assert dataset.examples.unsaved().get().change == "edited"


def test_runs_are_added_to_own_datasets_only(client, ann):
    run = make_answered_run(ann)
    theirs = make_dataset(visibility="everyone")

    form = {"dataset": theirs.pk, "input-0": "aaa"}
    page = client.post(f"/runs/{run.pk}/dataset/", form)

    assert page.status_code == 200
    assert not theirs.examples.exists()


def test_an_example_of_a_step_expects_the_calls_up_to_it(client, ann):
    run = make_answered_run(ann)
    make_step(run, call=make_call(run), tool="put", tool_input={"name": "x"})
    make_call(run)
    url = f"/runs/{run.pk}/dataset/?step="

    rows = (1, 2, 3, 4, 5, 10**18)
    pages = [client.get(f"{url}{row}").content.decode() for row in rows]

    found = [("get {" in page, "put {" in page, "Yes.<" in page) for page in pages]
    calls, answer = [(True, False, False)] * 2, [(True, True, True)] * 2
    assert found == [*calls, *[(True, True, False)] * 2, *answer]


def test_selected_runs_become_examples_each_input_once(client, ann):
    dataset = make_dataset(ann)
    given = {"owner": ann, "status": "succeeded", "output": "Yes."}
    asked = [make_run(inputs={"input": text}, **given) for text in "abb"]
    bad = make_run(inputs={"input": "c"}, rating=-1, **given)
    others = [
        make_run(owner=ann, inputs={"input": "d"}),
        make_run(inputs={}, **given),
        make_run(inputs={"input": "e"}, **{**given, "owner": make_user()}),
    ]
    picked = {"run": [run.pk for run in (*asked, bad, *others)], "do": "dataset"}
    page = client.post("/runs/selected/", picked).content.decode()
    runs = re.findall(r'name="run"\s+value="(\d+)"', page)
    assert len(runs) == 6

    form = {"dataset": dataset.pk, "run": runs}
    page = client.post("/datasets/add/", form, follow=True).content.decode()

    rows = dataset.examples.unsaved().order_by("number")
    assert [(one.inputs["input"], one.expected_answer) for one in rows] == [
        ("a", "Yes."),
        ("b", "Yes."),
        ("c", ""),
    ]
    assert [one.source_run for one in rows] == [asked[0], asked[1], bad]
    said = ("3 runs added", "has its input", "it has not ended", "it has no input")
    assert all(one in page for one in said)


def test_selected_runs_become_a_new_dataset_that_needs_a_name(client, ann):
    run = make_answered_run(ann)

    page = client.post("/datasets/add/", {"run": run.pk, "name": ""}).content.decode()
    assert "Enter a name for the new dataset." in page
    assert not Dataset.objects.exists()

    client.post("/datasets/add/", {"run": run.pk, "name": "From runs"})
    assert Dataset.objects.get(name="From runs").examples.get().source_run == run


def test_no_run_is_added_to_a_full_dataset(client, ann, dataset, monkeypatch):
    monkeypatch.setattr("runs.services.datasets.edit.MAX_EXAMPLES", 2)
    run = make_run(owner=ann, status="succeeded", inputs={"input": "new"})
    before = dataset.examples.count()

    form = {"run": run.pk, "dataset": dataset.pk}
    page = client.post("/datasets/add/", form).content.decode()

    assert "at most 2 are allowed" in page
    assert dataset.examples.count() == before


def test_nothing_is_added_without_runs(client, ann):
    page = client.post("/datasets/add/", {"name": "Empty"}).content.decode()

    assert "Select runs in the list first." in page
    assert not Dataset.objects.exists()


def test_a_large_dataset_is_shown_in_windows(
    client, ann, django_assert_max_num_queries
):
    large = make_dataset(ann)
    contents = [ExampleContent(inputs={"input": f"question {n}"}) for n in range(250)]
    add_examples(large, contents, by=ann)

    with django_assert_max_num_queries(30):
        page = page_of(client, large)
    assert page.count('<tr id="dataset-row-') == 100

    rows = client.get(f"/datasets/{large.pk}/?from=200", headers=HTMX).content.decode()
    assert rows.count('<tr id="dataset-row-') == 50
    assert "dataset-rows" not in rows


def test_deleting_the_source_run_keeps_the_example(client, ann):
    run = make_answered_run(ann)
    client.post(f"/runs/{run.pk}/dataset/", {"name": "Kept", "input-0": "aaa"})

    client.post("/runs/selected/", {"run": run.pk, "do": "delete", "sure": "1"})

    assert not Run.objects.exists()
    example = Dataset.objects.get(name="Kept").examples.get()
    assert json.dumps(example.inputs) == '{"input": "aaa"}'


@pytest.mark.parametrize("turns", [None, [["Hello.", "Hello Ann."]]])
def test_an_example_whose_run_was_deleted_does_not_seem_typed(client, ann, turns):
    run = make_answered_run(ann, given_turns=turns)
    content = ExampleContent(inputs={"input": "aaa"})
    found = make_dataset(ann)
    add_examples(found, [content], by=ann, runs=[run])
    client.post("/runs/selected/", {"run": run.pk, "do": "delete", "sure": "1"})

    page = strip_tags(page_of(client, found))

    assert "deleted run" in page
    assert "typed" not in page
    assert ("earlier messages of its conversation were deleted" in page) is bool(turns)


def test_a_source_run_that_one_may_not_see_is_no_link(client, ann):
    theirs = make_dataset(visibility="everyone")
    run = make_run(theirs.owner, status="succeeded")
    content = ExampleContent(inputs={"input": "aaa"})
    add_examples(theirs, [content], by=theirs.owner, runs=[run])
    save_dataset_version(theirs, seen=0, by=theirs.owner)

    page = page_of(client, theirs)

    assert f"/runs/{run.pk}/" not in page
    assert f"run {run.pk}. You cannot see this run." in " ".join(
        strip_tags(page).split()
    )


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_an_export_makes_the_same_dataset_anew(client, ann, kind):
    names = ["question", "answer", "-city", "tags"]
    original = make_dataset(ann, name="Original", input_names=names)
    content = ExampleContent.model_validate(
        {
            "inputs": {name: f"the {name}" for name in names},
            "expected_answer": "'=x",
            "tags": ("one",),
        }
    )
    other = content.model_copy(update={"expected_answer": "same input"})
    sparse = content.model_copy(update={"inputs": {"-city": "Bonn"}})
    add_examples(original, [content, other, sparse], by=ann)
    answer = client.get(f"/datasets/{original.pk}/export/?as={kind}")
    text = b"".join(answer.streaming_content).decode()

    copy = make_dataset(ann, name="Copy")
    upload(client, copy, text, f"a.{kind}")
    fields = DatasetUpload.objects.get().mapping["fields"]
    chosen = {f"column-{n}": field for n, field in enumerate(fields)}
    rule = DatasetUpload.objects.get().mapping["duplicates"]
    given = {**chosen, "duplicates": rule, "do": "import"}
    client.post(f"/datasets/{copy.pk}/import/", given)
    rows = copy.examples.order_by("number")
    assert [ExampleContent.of(row) for row in rows] == [content, other, sparse]


def test_calls_of_tools_with_strange_names_are_added_and_imported(client, ann, dataset):
    cell = 'search, fetch {"q": 1}'
    form = {"input-input": "new", "expected_calls": cell, "calls": cell}

    assert client.post(f"/datasets/{dataset.pk}/examples/new/", form).status_code < 400
    upload(
        client,
        dataset,
        f'input,expected_calls\nx,"{cell.replace(chr(34), chr(34) * 2)}"\n',
    )
    done = client.post(f"/datasets/{dataset.pk}/import/", {"do": "import"})
    assert done.status_code == 302
