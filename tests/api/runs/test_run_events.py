"""The events of a run, through a real web server."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from django.test import Client

from runs.models import ApiToken, Run
from runs.services.accounts.tokens import create_token
from tests.live.hub_parts import commit_end, commit_outcome, commit_reply, work
from tests.make import make_run, make_user
from tests.support.web_server import served

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def url(django_db_setup: None, redis_url: str) -> Iterator[str]:
    with served() as (address, _):
        yield f"{address}/api/v1/runs"


@pytest.fixture
def run() -> Run:
    return make_run(make_user("ann"), status="succeeded")


def bearer(run: Run, **token: Any) -> dict[str, str]:
    return {"Authorization": f"Bearer {create_token(run.owner, **token)}"}


def get_events(url: str, run: Run, query: str = "", **headers: str) -> httpx.Response:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.get(f"{url}/{run.pk}/events{query}", headers=sent, timeout=60)


def test_a_token_opens_the_events_of_its_own_run(url, run):
    answer = get_events(url, run, **bearer(run))

    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    assert answer.headers["Cache-Control"] == "no-store"
    assert "event: end" in answer.text


def test_a_session_opens_the_events_of_its_own_run(url, run):
    client = Client()
    client.force_login(run.owner)
    cookie = client.cookies.output(header="", sep=";").strip().partition(";")[0]

    assert "event: end" in get_events(url, run, Cookie=cookie).text


def test_a_request_for_the_head_does_not_follow_the_run(url):
    run = make_run(status="running")

    answer = httpx.head(f"{url}/{run.pk}/events", headers=bearer(run), timeout=20)

    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        pytest.param({"scopes": "run approve"}, 403, "missing_scope", id="scope"),
        pytest.param({"expires_at": LONG_AGO}, 401, "expired_token", id="expired"),
        pytest.param({"revoked_at": LONG_AGO}, 401, "revoked_token", id="revoked"),
        pytest.param({"digest": "another"}, 401, "invalid_token", id="unknown"),
    ],
)
def test_each_invalid_token_is_told_why(url, run, fields, status, code):
    headers = bearer(run)
    ApiToken.objects.update(**fields)

    answer = get_events(url, run, **headers)

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_a_missing_token_and_a_run_of_somebody_else_are_refused(url, run):
    nobody = get_events(url, run)
    other = get_events(url, run, **bearer(make_run()))

    assert (nobody.status_code, nobody.json()["code"]) == (401, "missing_token")
    assert nobody.headers["WWW-Authenticate"].startswith("Bearer")
    assert (other.status_code, other.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize("query", ["after=x", "after=-1", "from=3"])
def test_invalid_parameters_are_refused_by_name(url, run, query):
    answer = get_events(url, run, f"?{query}", **bearer(run))

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == query.partition("=")[0]


def test_last_event_id_wins_over_after(url):
    run = make_run(status="running")
    for _ in range(3):
        commit_reply(run)
        seen = commit_outcome(run)
    commit_end(run)

    answer = get_events(url, run, "?after=0", Last_Event_ID=str(seen), **bearer(run))

    assert "event: step" not in answer.text
    assert "event: end" in answer.text


def test_breaking_off_anywhere_loses_no_event(url):
    run = make_run(status="running")
    work(run, rounds=3)
    headers = bearer(run)
    blocks = list_events(get_events(url, run, **headers))
    for cut in range(1, len(blocks)):
        last = blocks[cut - 1].partition("\n")[0].removeprefix("id: ")
        again = list_events(get_events(url, run, Last_Event_ID=last, **headers))
        assert without_ids(blocks[cut:]) <= without_ids(again)


def list_events(answer: httpx.Response) -> list[str]:
    return [block for block in answer.text.split("\n\n") if "event: " in block]


def without_ids(events: list[str]) -> set[str]:
    return {event.partition("\n")[2] for event in events}
