"""A run whose calls are not made says so, and so does each step."""

import json

import pytest

from runs.engine.types import ToolMode
from tests.make import make_call, make_run, make_spec, make_step, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def replayed(client):
    ann = make_user()
    client.force_login(ann)
    recorded = make_run(ann, status="succeeded")
    mode = ToolMode(kind="replay_by_tool", recording=recorded.pk)
    run = make_run(
        ann,
        status="succeeded",
        tool_mode=mode.kind,
        spec=make_spec(tool_mode=mode, kind="tool-calling"),
    )
    make_call(run)
    for answered_by in ("recording", "other_arguments", "held_back", "no_recording"):
        make_step(run, answered_by=answered_by)
    return run, recorded


def test_the_page_marks_the_run_and_its_steps(client, replayed):
    run, recorded = replayed

    page = client.get(f"/runs/{run.pk}/?step=2").text

    assert "Replay by tool" in page
    assert f'<a href="/runs/{recorded.pk}/">' in page
    for tag in ("replayed", "replayed, other arguments", "held back", "not recorded"):
        assert f">{tag}<" in page
    assert "Answered from the recording of another run. Nothing was sent." in page


def test_exports_mark_them_too(client, replayed):
    run, recorded = replayed

    exported = json.loads(client.get(f"/runs/{run.pk}/export/json/").text)
    stream = client.get("/runs/export/?as=json").streaming_content
    listed = json.loads(b"".join(stream))

    assert exported["run"]["tool_mode"]["recording"] == recorded.pk
    marks = [step["answered_by"] for step in exported["steps"]]
    assert marks == ["recording", "other_arguments", "held_back", "no_recording"]
    assert {row["id"]: row["tool_mode"] for row in listed} == {
        run.pk: "replay_by_tool",
        recorded.pk: "",
    }
