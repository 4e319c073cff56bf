"""`GET /api/v1/runs/{id}`."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from runs.models import AgentStep, ProviderOutage
from runs.serializers import format_timestamp
from tests.api.make_client import Api, fields_of
from tests.make import make_call, make_provider, make_run, make_step, make_user

pytestmark = pytest.mark.django_db


def test_shows_the_whole_run():
    run = make_run(status="running")
    make_step(run, log="I add.", observation="4", duration=0.25)

    said = Api(run.owner).get(f"runs/{run.pk}").json()

    times = {name: said.pop(name) for name in ("created_at", "started_at", "ended_at")}
    assert times["created_at"].endswith("Z")
    assert times["ended_at"] is None
    assert said == {
        "id": run.pk,
        "status": "running",
        "is_over": False,
        "stop_reason": None,
        "error": None,
        "agent": run.agent.slug,
        "version": None,
        "conversation": None,
        "inputs": {"input": "What is 2 + 2?"},
        "output": None,
        "finish_reason": None,
        "truncated": False,
        "keep_forever": False,
        "seq": 2,
        "usage": {
            "input_tokens": 100,
            "output_tokens": 20,
            "cost": 0.0,
            "model_calls": 1,
        },
        "steps": [
            {
                "index": 0,
                "round": 1,
                "tool": "calculator",
                "tool_input": {"expression": "2 + 2"},
                "log": "I add.",
                "observation": "4",
                "error": False,
                "status": "succeeded",
                "duration_ms": 250,
            }
        ],
        "steps_next": None,
    }


def test_says_why_a_run_failed():
    run = make_run(status="failed")

    said = Api(run.owner).get(f"runs/{run.pk}").json()

    assert said["is_over"]
    assert said["error"] == {"code": "refused", "message": "The server said no."}


def test_says_why_a_run_stopped():
    run = make_run(status="limit_reached")

    assert Api(run.owner).get(f"runs/{run.pk}").json()["stop_reason"] == "iterations"


@pytest.mark.parametrize("output", ["text", {"a": [1, None]}, [], 0, False])
def test_an_output_is_any_json(output):
    run = make_run(status="succeeded", output=output)

    assert Api(run.owner).get(f"runs/{run.pk}").json()["output"] == output


def test_a_step_under_way_has_no_observation_yet():
    run = make_run(status="running")
    make_step(run, status="started")
    make_step(run, status="failed", observation="Broken.")

    first, second = Api(run.owner).get(f"runs/{run.pk}").json()["steps"]

    assert (first["observation"], first["duration_ms"]) == (None, None)
    assert (second["observation"], second["error"]) == ("Broken.", True)


def test_without_steps_it_is_one_query_for_token_and_run(django_assert_max_num_queries):
    run = make_run()
    api = Api(run.owner)
    api.get(f"runs/{run.pk}?steps=none")

    with django_assert_max_num_queries(2):
        said = api.get(f"runs/{run.pk}?steps=none").json()

    assert "steps" not in said


def test_many_steps_come_in_windows():
    run = make_run(status="running")
    call = make_call(run)
    AgentStep.objects.bulk_create(
        AgentStep(
            run=run,
            model_call=call,
            index=index,
            round=1,
            tool="t",
            created_seq=1,
            changed_seq=1,
        )
        for index in range(1001)
    )
    api, seen, after = Api(run.owner), [], ""

    while True:
        said = api.get(f"runs/{run.pk}{after}").json()
        seen.append(len(said["steps"]))
        if said["steps_next"] is None:
            break
        after = f"?steps_after={said['steps_next']}"

    assert seen == [500, 500, 1]
    assert said["steps"][0]["index"] == 1000


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("?steps=all", "steps"),
        ("?steps_after=x", "steps_after"),
        ("?steps_after=", "steps_after"),
        ("?steps_after=99999999999999", "steps_after"),
        ("?stpes=none", "stpes"),
    ],
)
def test_an_odd_query_is_refused(query, field):
    run = make_run()

    answer = Api(run.owner).get(f"runs/{run.pk}{query}")

    assert (answer.status_code, fields_of(answer)) == (422, [field])


@pytest.mark.parametrize("pk", ["0", "999999", "9" * 18, "9" * 30, "abc"])
def test_a_missing_run_is_404(pk):
    answer = Api(make_user()).get(f"runs/{pk}")

    assert answer.status_code == 404
    assert fields_of(answer)


def test_a_stranger_gets_404():
    run = make_run()

    answer = Api(make_user()).get(f"runs/{run.pk}")

    assert (answer.status_code, fields_of(answer)) == (404, ["id"])


def test_a_superuser_sees_all():
    assert Api(make_user(is_superuser=True)).get(f"runs/{make_run().pk}").json()


def test_a_session_may_read():
    run, client = make_run(), Client()
    client.force_login(run.owner)

    assert client.get(f"/api/v1/runs/{run.pk}").json()["id"] == run.pk


def test_parent_and_child_name_each_other():
    parent = make_run(status="waiting")
    make_step(parent, status="succeeded")
    step = make_step(parent, status="started", attempts=1)
    child = make_run(parent.owner, parent_step=step, source="parent")
    api = Api(parent.owner)

    above, below = (api.get(f"runs/{run.pk}").json() for run in (parent, child))

    assert ["child" in step for step in above["steps"]] == [False, True]
    assert above["steps"][1]["child"] == child.pk
    assert "parent" not in above
    assert below["parent"] == {"run": parent.pk, "step": 1}


def test_a_run_that_waits_for_its_provider_says_how_long():
    now, owner = timezone.now(), make_user()
    provider = make_provider(owner, slug="local")
    probe_at = now + timedelta(seconds=20)
    outage = ProviderOutage.objects.create(
        provider=provider, started_at=now, probe_at=probe_at
    )
    run = make_run(
        owner, status="waiting", waiting_provider=provider, waiting_since=now
    )

    said = Api(run.owner).get(f"runs/{run.pk}").json()["waiting_for"]
    assert said == {
        "provider": "local",
        "next_attempt_at": format_timestamp(probe_at),
        "until": format_timestamp(now + timedelta(minutes=30)),
    }
    outage.probe_run = make_run()
    outage.save()
    said = Api(run.owner).get(f"runs/{run.pk}").json()["waiting_for"]
    assert said["next_attempt_at"] is None


def test_the_provider_that_a_run_waits_for_is_hidden_from_strangers():
    now = timezone.now()
    provider = make_provider(slug="local", base_url="http://10.0.0.7/v1")
    message = "No server answers at http://10.0.0.7/v1. Check provider 'local'."
    ProviderOutage.objects.create(
        provider=provider, started_at=now, probe_at=now, error_message=message
    )
    run = make_run(status="waiting", waiting_provider=provider, waiting_since=now)

    said = Api(run.owner).get(f"runs/{run.pk}").json()["waiting_for"]
    assert said["provider"] is None
    page = Client()
    page.force_login(run.owner)
    text = page.get(f"/runs/{run.pk}/").content.decode()
    assert "Waiting for provider [hidden]" in text
    assert "10.0.0.7" not in text
    assert "local" not in text.replace("localhost", "")
