"""Importing an uploaded file: mapping, duplicates, and all or nothing."""

import pytest

from runs.models import Dataset, DatasetUpload, Example
from runs.services.datasets.content import (
    ExampleContent,
    parse_calls_cell,
    parse_tags_cell,
)
from runs.services.datasets.edit import add_examples
from runs.services.datasets.import_rows import (
    ImportCounts,
    count_missing_source_runs,
    find_source_runs,
    import_upload,
    plan_dataset_import,
)
from runs.services.datasets.mapping import ImportMapping, guess_mapping
from runs.services.datasets.parse_file import parse_dataset_file
from runs.services.datasets.uploads import (
    load_file_table,
    load_import_mapping,
    save_import_mapping,
    store_dataset_upload,
)
from runs.services.errors import DatasetFileRefused, DatasetFull, ExampleRefused
from tests.make import make_dataset, make_run

pytestmark = pytest.mark.django_db

TICKETS = """question,agent_reply,category,run_id,csat
a,A,shipping,{run},4
b,B,"billing, urgent",,5
"""


def uploaded(dataset: Dataset, text: str, name: str = "a.csv") -> DatasetUpload:
    return store_dataset_upload(
        dataset, by=dataset.owner, name=name, content=text.encode()
    )


def imported(dataset: Dataset, text: str, duplicates: str = "skip") -> ImportCounts:
    upload = uploaded(dataset, text)
    mapping = load_import_mapping(upload)
    save_import_mapping(upload, mapping.model_copy(update={"duplicates": duplicates}))
    return import_upload(dataset, upload, by=dataset.owner)


def planned(dataset, upload):
    return plan_dataset_import(
        dataset,
        load_file_table(upload),
        load_import_mapping(upload),
        by=dataset.owner,
    )


def answers(dataset: Dataset) -> dict[int, str]:
    rows = dataset.examples.order_by("number")
    return dict(rows.values_list("number", "expected_answer"))


def test_columns_are_mapped_by_their_names():
    dataset = make_dataset()
    run = make_run(owner=dataset.owner)

    imported(dataset, TICKETS.format(run=run.pk))

    first, second = dataset.examples.order_by("number")
    assert first.inputs == {"input": "a"}
    assert (first.expected_answer, first.tags) == ("A", ["shipping"])
    assert first.source_run == run
    assert first.source == Example.Source.IMPORT
    assert second.tags == ["billing", "urgent"]
    assert second.source_run is None
    dataset.refresh_from_db()
    assert dataset.input_names == ["input"]
    assert not DatasetUpload.objects.exists()


def test_runs_of_others_do_not_become_sources():
    dataset = make_dataset()
    run = make_run()

    imported(dataset, TICKETS.format(run=run.pk))

    assert dataset.examples.get(number=1).source_run is None


@pytest.mark.parametrize(
    ("cell", "is_found"),
    [
        ("{run}", True),
        ("{run}@{time}", True),
        ("{run}@2001-01-01T00:00:00Z", False),
        ("{run}@yesterday", False),
        ("{run}@", False),
        ("@{time}", False),
    ],
)
def test_a_source_run_with_a_time_is_the_run_created_then(cell, is_found):
    dataset = make_dataset()
    run = make_run(owner=dataset.owner)

    imported(
        dataset,
        f"input,run\na,{cell.format(run=run.pk, time=run.created_at.isoformat())}\n",
    )

    assert dataset.examples.get().source_run == (run if is_found else None)


def test_rows_of_different_conversations_are_no_duplicates():
    dataset = make_dataset()
    one, two = (
        make_run(owner=dataset.owner, given_turns=[[text, "Sure."]])
        for text in ("Delete it?", "Keep it?")
    )
    content = ExampleContent(inputs={"input": "yes"}, expected_answer="old")
    add_examples(dataset, [content, content], by=dataset.owner, runs=[one, two])
    upload = uploaded(
        dataset, f"input,answer,run\nyes,A,{one.pk}\nyes,B,{two.pk}\nyes,C,\n"
    )

    plan = planned(dataset, upload)

    same = [(row.same_as, row.repeats_line) for row in plan.rows]
    assert same == [(1, None), (2, None), (None, None)]


def test_each_source_run_that_is_lost_is_counted():
    dataset = make_dataset()
    run = make_run(owner=dataset.owner)
    lost = [10**9, "abc", f"{run.pk}@2020-01-01", -5, "@", f"{run.pk}.5"]
    cells = [run.pk, f"{run.pk}.0", "", *lost]
    text = "input,run\n" + "".join(f"q{n},{one}\n" for n, one in enumerate(cells))
    table = parse_dataset_file("a.csv", text.encode()).table
    mapping = guess_mapping(table.columns, ["input"])

    plan = plan_dataset_import(dataset, table, mapping, by=dataset.owner)

    assert count_missing_source_runs(plan.rows, dataset.owner) == len(lost)
    found = find_source_runs(plan.rows, dataset.owner)
    assert [found.get(row.source_run) for row in plan.rows[:3]] == [run, run, None]


def test_known_variables_are_mapped_to_their_columns():
    mapping = guess_mapping(("text", "city", "Expected Answer"), ["city", "text"])

    assert mapping.fields == ("input:text", "input:city", "answer")


@pytest.mark.parametrize(
    ("rule", "counts", "left"),
    [
        ("skip", (1, 0, 2), {1: "old", 2: "C"}),
        ("update", (1, 1, 1), {1: "A", 2: "C2"}),
        ("add", (3, 0, 0), {1: "old", 2: "A", 3: "C", 4: "C2"}),
    ],
)
def test_duplicates_are_skipped_updated_or_added(rule, counts, left):
    dataset = make_dataset()
    old = ExampleContent(inputs={"input": "a"}, expected_answer="old", tags=("x",))
    add_examples(dataset, [old], by=dataset.owner)

    assert imported(dataset, "input,answer\na ,A\nc,C\nc,C2\n", rule) == counts
    assert answers(dataset) == left
    assert dataset.examples.get(number=1).tags == ["x"]


def test_rows_without_an_input_are_named_and_skipped():
    dataset = make_dataset(input_names=["input", "city"])
    upload = uploaded(dataset, "input,city\na,Oslo\nb,\n,Rome\nc,Bonn\n")

    plan = planned(dataset, upload)

    assert [row.content.inputs["input"] for row in plan.new] == ["a", "c"]
    assert plan.missing == {"city": [3], "input": [4]}


def test_an_example_of_an_export_may_lack_an_input_but_not_all():
    dataset = make_dataset(input_names=["input", "city"])
    head = "input,city,expected_answer,expected_calls,tags,source_run\n"
    upload = uploaded(dataset, f"{head}a,Oslo,,,,\nb, ,B,,,\n,,C,,,\n")

    plan = planned(dataset, upload)

    inputs = [row.content.inputs for row in plan.new]
    assert inputs == [{"input": "a", "city": "Oslo"}, {"input": "b"}]
    assert plan.missing == {"input": [4], "city": [4]}


def test_rows_with_calls_or_tags_that_cannot_be_read_are_named_and_skipped():
    dataset = make_dataset()
    upload = uploaded(
        dataset, 'input,calls,tags\na,"get {",x\nb,get,' + "y" * 41 + "\n"
    )

    plan = planned(dataset, upload)

    assert [row.line for row in plan.invalid] == [2, 3]
    assert plan.rows == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (("", "answer"), "Select the column with the input"),
        (("input:a", "input:a"), "Two columns are mapped to a"),
    ],
)
def test_a_mapping_that_cannot_be_used_imports_nothing(fields, message):
    dataset = make_dataset()
    upload = uploaded(dataset, "x,y\n1,2\n")
    save_import_mapping(upload, ImportMapping(fields=fields))

    with pytest.raises(DatasetFileRefused, match=message):
        import_upload(dataset, upload, by=dataset.owner)
    assert not dataset.examples.exists()


def test_a_file_that_does_not_fit_changes_nothing(monkeypatch):
    monkeypatch.setattr("runs.services.datasets.edit.MAX_EXAMPLES", 1)
    dataset = make_dataset()

    with pytest.raises(DatasetFull):
        imported(dataset, "input\na\nb\n")
    assert not dataset.examples.exists()
    assert DatasetUpload.objects.count() == 1


def test_many_rows_take_few_queries(django_assert_max_num_queries):
    dataset = make_dataset()
    text = "input,answer\n" + "".join(f"question {n},{n}\n" for n in range(1000))
    imported(dataset, text)

    with django_assert_max_num_queries(50):
        imported(dataset, text.replace(",1", ",one"), "update")
    assert answers(dataset)[2] == "one"


def test_a_second_file_replaces_the_first():
    dataset = make_dataset()
    uploaded(dataset, "input\na\n")
    upload = uploaded(dataset, "input\nb\n", "b.csv")

    assert DatasetUpload.objects.get() == upload
    assert load_file_table(upload).rows == (("b",),)


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('["get_order", "track"]', [("get_order", None), ("track", None)]),
        ('[{"tool": "a", "tool_input": {"n": 1}}]', [("a", {"n": 1})]),
        ('[{"name": "a", "arguments": "{\\"n\\": 1}"}]', [("a", {"n": 1})]),
        ("[]", []),
        ("get_order, track", [("get_order", None), ("track", None)]),
    ],
)
def test_a_list_of_calls_in_a_file_is_a_list(text, calls):
    found = [(one.tool, one.tool_input) for one in parse_calls_cell(text)]

    assert found == calls


@pytest.mark.parametrize(
    "text", ['[{"id": 1}]', "[5]", '[{"tool": "a", "arguments": 5}]']
)
def test_a_listed_call_that_cannot_be_read_is_refused(text):
    with pytest.raises(ExampleRefused, match="Expected calls, line 1"):
        parse_calls_cell(text)


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ('[2024, 1.5, "x"]', ("2024", "1.5", "x")),
        ('["shipping", "order"]', ("shipping", "order")),
        ("[]", ()),
        ("a, b, a", ("a", "b")),
        ("[draft], b", ("[draft]", "b")),
    ],
)
def test_a_list_of_tags_in_a_file_is_a_list(text, tags):
    assert parse_tags_cell(text) == tags


@pytest.mark.parametrize("text", [r'["a\u0000"]', r'["\ud800"]'])
def test_a_list_that_cannot_be_stored_is_read_as_text(text):
    assert parse_tags_cell(text) == (text,)
    assert [one.tool for one in parse_calls_cell(text)] == [text]
