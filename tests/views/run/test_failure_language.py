"""Why a run failed, in the language of whoever reads it."""

import pytest

from tests.make import make_run, make_schedule
from tools.text.translatable import translatable

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("path", ["/runs/{run}/", "/runs/", "/"])
def test_a_stored_failure_is_in_the_language_of_the_viewer(client, ann, path):
    why = translatable("Enter a message.")
    run = make_run(ann, status="failed", error_message=why)
    make_schedule(ann, agent=run.agent, last_run=run)
    path = path.format(run=run.pk)

    english = client.get(path).text
    client.post("/preferences/language/", {"language": "zh-hans"})
    chinese = client.get(path).text

    assert "Enter a message." in english
    assert "请输入消息。" in chinese
    assert "Enter a message." not in chinese


def test_why_a_schedule_could_not_start_is_in_the_language_of_the_viewer(client, ann):
    why = translatable("Enter a message.")
    make_run(ann)
    schedule = make_schedule(ann, problem=why, problem_at="2026-01-01T00:00:00Z")
    client.post("/preferences/language/", {"language": "zh-hans"})

    for path in ("/", "/schedules/", f"/schedules/{schedule.pk}/"):
        assert "请输入消息。" in client.get(path).text
