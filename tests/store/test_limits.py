"""Limits on concurrent runs of a user, an agent and a provider."""

import pytest

from runs.models import Run
from runs.services.health.invariants import check_invariants
from runs.services.runs.cancel import cancel_run
from runs.services.runs.limit_wait import get_limit_wait
from runs.store.claims import worker_state
from runs.store.limits import claim_limited_run, sweep_limits
from runs.store.transitions import claim_run, transition
from runs.ui.run_wait import describe_limit_wait
from runs.worker.execute_run import execute_run
from runs.worker.sweep import sweep
from tests.api.make_client import Api
from tests.fakes.model_server import model_server
from tests.make import make_agent, make_provider, make_run, make_user
from tests.support.threads import at_once
from tests.worker.run_parts import agent_on, started

pytestmark = pytest.mark.django_db(transaction=True)

STATUS, LATER = Run.Status, "2999-01-01T00:00:00Z"


def make_limited(count, *, most=1, **fields):
    agent = fields.pop("agent", None) or make_agent()
    return [make_run(agent=agent, agent_limit=most, **fields) for _ in range(count)]


def claim(run):
    """Claim a run as a worker does."""
    return claim_run(run.pk, None) or claim_limited_run(run.pk, None)


def count(*runs):
    """Return the statuses of the runs."""
    rows = dict(Run.objects.values_list("pk", "status"))
    return [rows[run.pk] for run in runs]


def test_a_run_beyond_the_limit_of_its_agent_waits():
    first, second = make_limited(2)

    assert claim(first)
    assert claim(second) is None

    second.refresh_from_db()
    assert (second.status, second.waiting_for) == ("waiting", "agent")
    assert second.available_at is None
    assert list(check_invariants()) == []


def test_the_limit_of_a_provider_counts_runs_of_all_its_agents():
    provider = make_provider(max_concurrent_runs=1)
    fields = {"provider_key": provider.pk}
    first, second = make_run(**fields), make_run(**fields)

    assert claim(first)
    assert claim(second) is None
    second.refresh_from_db()
    assert (second.waiting_for, second.waiting_provider) == ("provider", provider)


def test_the_limit_of_a_user_leaves_others_alone(settings):
    settings.USER_CONCURRENT_RUNS = 1
    ann = make_user()
    first, second = make_run(ann), make_run(ann)

    assert claim(first)
    assert claim(second) is None
    assert claim(make_run())


def test_the_end_of_a_run_starts_the_one_that_has_waited_longest():
    with model_server(script=lambda _: "Done.") as server:
        agent = agent_on(server, executor={"max_concurrent_runs": 1})
        first, second, third = (started(agent) for _ in range(3))
        Run.objects.filter(pk=first.pk).update(status="running", lease_until=LATER)
        for run in (third, second):
            execute_run(run.pk)
        assert count(second, third) == ["waiting", "waiting"]

        Run.objects.filter(pk=first.pk).update(status="queued", lease_until=None)
        execute_run(first.pk)
        assert count(first, second, third) == ["succeeded", "queued", "waiting"]
        execute_run(second.pk)
        assert count(second, third) == ["succeeded", "queued"]


def test_a_newer_run_does_not_pass_one_that_waits():
    first, second, third = make_limited(3, most=2)
    assert claim(first)
    transition(second, to=STATUS.WAITING, waiting_for="agent")

    assert claim(third) is None


def test_a_sweep_wakes_runs_whose_place_got_free_unnoticed():
    first, second = make_limited(2)
    assert claim(first)
    claim(second)
    Run.objects.filter(pk=first.pk).update(
        status="succeeded", lease_until=None, ended_at="2026-01-01T00:00Z"
    )

    sweep(free=0)

    assert count(second) == ["queued"]


def test_a_sweep_leaves_runs_alone_that_still_have_to_wait():
    first, second = make_limited(2)
    assert claim(first)
    claim(second)

    sweep(free=0)

    assert count(second) == ["waiting"]


def test_a_removed_limit_wakes_all_that_wait_for_it():
    provider = make_provider(max_concurrent_runs=1)
    runs = [make_run(provider_key=provider.pk) for _ in range(3)]
    for run in runs:
        claim(run)
    provider.max_concurrent_runs = None
    provider.save()

    sweep_limits()

    assert count(*runs) == ["running", "queued", "queued"]


def test_a_run_that_waits_for_a_limit_can_be_canceled():
    first, second = make_limited(2)
    assert claim(first)
    claim(second)
    second.refresh_from_db()

    assert cancel_run(second)
    assert (second.status, second.waiting_for) == ("canceled", "")


def test_two_workers_do_not_pass_a_limit_together():
    runs = make_limited(8, most=3)

    at_once(*(lambda run=run: claim(run) for run in runs))

    assert count(*runs).count("running") == 3
    assert count(*runs).count("waiting") == 5


def test_many_runs_of_one_user_never_run_more_than_the_limit(settings):
    settings.USER_CONCURRENT_RUNS, settings.USER_RUNS = 3, 0
    agent = make_agent()
    first = make_run(agent=agent)
    Run.objects.bulk_create(
        Run(owner=agent.owner, agent=agent, spec=first.spec, queued_at=first.queued_at)
        for _ in range(59)
    )
    ids = list(Run.objects.values_list("pk", flat=True))
    for run_id in ids:
        claim_limited_run(run_id, None)

    running = Run.objects.filter(status="running")
    assert running.count() == 3
    assert Run.objects.filter(status="waiting", waiting_for="user").count() == 57
    assert claim(make_run())
    assert worker_state.claims == {}


def test_a_waiting_run_says_what_it_waits_for(settings):
    provider = make_provider(name="Local", max_concurrent_runs=2)
    agent = make_agent(make_user("ann"), name="Helper")
    waiting = {"agent": agent, "status": "waiting", "agent_limit": 3}
    settings.USER_CONCURRENT_RUNS = 5

    said = [
        describe_limit_wait(get_limit_wait(make_run(**waiting, **each)))
        for each in (
            {"waiting_for": "agent"},
            {"waiting_for": "user"},
            {"waiting_for": "provider", "waiting_provider": provider},
        )
    ]

    assert said[:2] == [
        "Waiting for a slot: agent Helper runs 3 of 3",
        "Waiting for a slot: ann runs 5 of 5",
    ]
    assert "Local" not in said[2]  # it is another user's


def test_the_page_and_the_api_say_what_a_run_waits_for(client):
    agent = make_agent(name="Helper")
    run = make_run(agent=agent, status="waiting", waiting_for="agent", agent_limit=3)
    client.force_login(run.owner)
    text = "Waiting for a slot: agent Helper runs 3 of 3"

    assert text in client.get(f"/runs/{run.pk}/").content.decode()
    assert text in client.get("/runs/").content.decode()
    found = Api(run.owner).get(f"runs/{run.pk}").json()["waiting_for"]
    assert found == {
        **{"limit": "agent", "most": 3},
        **{"provider": None, "next_attempt_at": None},
    }
