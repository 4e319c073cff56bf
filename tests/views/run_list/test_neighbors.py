"""From one run of a list to the next."""

import pytest

from tests.make import make_call, make_run, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def runs(ann):
    """Four runs; the second failed."""
    statuses = ("succeeded", "failed", "succeeded", "succeeded")
    return [make_run(ann, status=status) for status in statuses]


def step(client, run, direction, listed="status=succeeded"):
    address = f"/runs/{run.pk}/{direction}/in-list/"
    return client.get(address, {"in": listed}).headers["Location"]


def test_steps_through_the_runs_of_the_list_and_keeps_its_filters(client, runs):
    first, _failed, third, fourth = runs

    assert step(client, fourth, "next") == f"/runs/{third.pk}/?in=status%3Dsucceeded"
    assert step(client, third, "next").startswith(f"/runs/{first.pk}/")
    assert step(client, first, "previous").startswith(f"/runs/{third.pk}/")


def test_the_ends_of_the_list_say_so(client, runs):
    assert step(client, runs[0], "next").startswith(f"/runs/{runs[0].pk}/")

    page = client.get(f"/runs/{runs[0].pk}/").content.decode()

    assert "This is the last run of the list." in page


def test_runs_of_others_are_no_neighbors(client, ann, runs):
    make_run(make_user("bob"), status="succeeded")
    mine = make_run(ann, status="succeeded")

    assert step(client, mine, "next").startswith(f"/runs/{runs[3].pk}/")


def test_the_list_and_the_steps_keep_the_list(client, runs):
    rows = client.get("/runs/", {"status": "failed"}).content.decode()
    assert f'href="/runs/{runs[1].pk}/?in=status%3Dfailed"' in rows

    page = client.get(f"/runs/{runs[1].pk}/?in=status%3Dfailed").content.decode()

    assert 'href="/runs/?status=failed"' in page
    assert f"/runs/{runs[1].pk}/next/in-list/?in=status%3Dfailed" in page
    assert 'href="?in=status%3Dfailed&amp;step=0"' in page


def test_a_peek_opens_the_run_in_its_list(client, runs):
    rows = client.get("/runs/", {"status": "failed"}).content.decode()
    peek = f"/runs/{runs[1].pk}/peek/?in=status%3Dfailed"
    assert f'data-peek-url="{peek}"' in rows

    pane = client.get(peek).content.decode()

    assert f'href="/runs/{runs[1].pk}/?in=status%3Dfailed"' in pane
    assert f'name="here" value="{peek}"' in pane


def test_search_and_follow_keep_the_list(client, ann):
    live = make_run(ann, status="running")
    make_call(live)
    url = f"/runs/{live.pk}/?in=status%3Dunfinished"

    page = client.get(f"{url}&step=0").content.decode()
    assert '<input type="hidden" name="in" value="status=unfinished">' in page
    assert 'id="run-follow-link" href="?in=status%3Dunfinished"' in page
    assert f'hx-push-url="{url}"' in page

    page = client.get(f"{url}&q=xyz&show=tools&as=time").content.decode()
    assert 'href="?as=time&amp;in=status%3Dunfinished"' in page


@pytest.mark.parametrize(
    ("path", "data", "target"),
    [
        ("rate/", {"rating": "good"}, "?step=0&in=status%3Dfailed#run-feedback"),
        ("keep/", {"keep": "1"}, "?in=status%3Dfailed"),
    ],
)
def test_a_form_without_a_script_returns_to_the_list(client, runs, path, data, target):
    url = f"/runs/{runs[1].pk}/"

    def post(**headers):
        return client.post(f"{url}{path}", data, headers=headers).headers["Location"]

    assert post(referer=f"http://testserver{url}?in=status%3Dfailed") == url + target
    other = f"http://testserver/runs/{runs[0].pk}/?in=status%3Dfailed"
    assert "in=" not in post(referer=other)


def test_a_canceled_fork_returns_to_the_list(client, ann):
    run = make_run(ann, status="succeeded")
    make_call(run)
    url = f"/runs/{run.pk}/"
    sender = f"http://testserver{url}?in=status%3Dsucceeded"

    page = client.get(f"{url}fork/1/", headers={"referer": sender}).content.decode()

    assert f'href="{url}?step=1&amp;in=status%3Dsucceeded"' in page


def test_runs_of_an_agent_are_opened_in_its_list(client, runs):
    agent = runs[0].agent

    page = client.get(f"/agents/{agent.pk}/").content.decode()

    assert f'href="/runs/{runs[0].pk}/?in=agent%3D{agent.pk}%26tests%3Dwith"' in page


def test_a_run_opened_elsewhere_has_no_neighbors(client, runs):
    assert "in-list" not in client.get(f"/runs/{runs[0].pk}/").content.decode()
