"""The list of runs as a file."""

import csv
import gc
import io
import json

import pytest

from runs.engine.types import ModelSettings
from runs.models import Run, RunTag
from runs.views.run_list import export as run_export
from runs.views.run_list.export import BATCH
from tests.make import make_agent, make_run, make_spec, make_user

pytestmark = pytest.mark.django_db


def fetched(client, query):
    answer = client.get(f"/runs/export/{query}")
    return answer, answer.getvalue().decode()


def test_a_spreadsheet_gets_a_line_a_run(client, ann):
    run = make_run(ann, title="=1+1", status="succeeded", output={"a": [1]})
    RunTag.objects.create(run=run, name="keep")

    answer, text = fetched(client, "?as=csv")
    [row] = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")))

    assert 'filename="runs.csv"' in answer.headers["Content-Disposition"]
    assert (row["id"], row["title"]) == (str(run.pk), "'=1+1")
    assert (row["output"], row["tags"]) == ('{"a": [1]}', '["keep"]')


def test_a_program_gets_all_runs_in_their_order(client, ann):
    agent = make_agent(ann)
    runs = [make_run(ann, agent=agent, status="succeeded") for _ in range(120)]

    message = json.loads(fetched(client, "?as=json")[1])

    assert [one["id"] for one in message] == [run.pk for run in runs[::-1]]
    assert message[0]["agent"] == agent.slug


def test_only_what_passes_the_filters_and_is_ones_own(client, ann):
    make_run(make_user(), status="failed")
    failed = make_run(ann, status="failed")
    make_run(ann)

    message = json.loads(fetched(client, "?as=json&status=failed")[1])

    assert [one["id"] for one in message] == [failed.pk]


def test_a_filter_that_makes_no_sense_is_named_and_nothing_is_sent(client, ann):
    answer = client.get("/runs/export/?as=csv&begin=soon", follow=True)

    assert answer.redirect_chain == [("/runs/?as=csv&begin=soon", 302)]
    assert "is not a date" in answer.content.decode()


def test_an_empty_list_is_a_file_too(client, ann):
    assert json.loads(fetched(client, "?as=json")[1]) == []
    assert fetched(client, "?as=csv")[1].count("\n") == 1


def test_the_first_rows_are_sent_before_the_last_are_read(client, ann):
    agent = make_agent(ann)
    runs = [make_run(ann, agent=agent, status="succeeded") for _ in range(BATCH + 9)]
    sent = iter(client.get("/runs/export/?as=json").streaming_content)
    first = next(sent)
    runs[0].delete()

    message = json.loads(b"".join([first, *sent]))
    assert [one["id"] for one in message] == [run.pk for run in runs[:0:-1]]


def test_a_row_tells_what_stands_in_other_tables(client, ann):
    spec = make_spec(model=ModelSettings(model="large"))
    agent = make_agent(ann, slug="planner")
    run = make_run(ann, agent=agent, spec=spec, status="succeeded", cost="0.25")
    for name in ("b", "a"):
        RunTag.objects.create(run=run, name=name)

    [message] = json.loads(fetched(client, "?as=json")[1])

    assert (message["agent"], message["version"], message["model"]) == (
        "planner",
        None,
        "large",
    )
    assert (message["owner"], message["tags"]) == ("ann", ["a", "b"])
    assert float(message["cost"]) == 0.25
    assert message["created_at"] == run.created_at.isoformat()


def test_no_rows_pile_up_while_a_long_list_is_sent(client, ann, monkeypatch):
    monkeypatch.setattr(run_export, "BATCH", 5)
    agent = make_agent(ann)
    runs = [make_run(ann, agent=agent, status="succeeded") for _ in range(40)]
    RunTag.objects.create(run=runs[0], name="keep")
    answer = client.get("/runs/export/?as=csv")
    gc.collect()
    before = alive()

    gc.disable()  # what refers to itself in a circle stays
    try:
        lines = answer.getvalue().decode().splitlines()
        more = alive() - before
    finally:
        gc.enable()

    assert len(lines) == 41
    assert more <= 6


def alive():
    return sum(isinstance(one, Run) for one in gc.get_objects())
