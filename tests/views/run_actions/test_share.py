"""Sharing a run by a link, and what the link shows."""

import re
from threading import BoundedSemaphore

import pytest
from django.test import Client

from runs.engine.stopping import FORCED_STOP_MESSAGE
from runs.models import RunShare
from runs.services.runs.share import share_run
from runs.views.run_actions import document, share
from tests.make import make_agent, make_call, make_run, make_step, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann(client):
    """Someone who is signed in."""
    user = make_user(
        "ann", email="ann@example.com", first_name="Ann", last_name="Aalto"
    )
    client.force_login(user)
    return user


def some_run(owner):
    agent = make_agent(owner, name="private-agent")
    run = make_run(
        owner,
        agent=agent,
        status="succeeded",
        output="**Yes** ![x](http://evil/p.png)",
        inputs={"input": "May I?"},
    )
    make_call(run, reply={"text": "I look it up."})
    make_step(run, tool_input={"token": "abc"}, observation="<script>1</script>")
    return run


def opened(run, hours=1) -> str:
    token = share_run(run, by=run.owner, hours=hours)
    return f"/shared/{token}/"


def test_makes_a_link_that_is_shown_once(client, ann):
    run = some_run(ann)
    first = client.post(f"/runs/{run.pk}/share/", {"hours": "24"}, follow=True)
    link = re.search(r">(http[^<]*/shared/[^<]+)</textarea>", first.content.decode())[1]

    assert Client().get(f"/shared/{link.split('/shared/')[1]}").status_code == 200
    second = client.get(f"/runs/{run.pk}/share/").content.decode()
    assert "/shared/" not in second
    assert "opened 1 time" in second


def test_hides_what_is_someone_elses(client, ann):
    run = some_run(make_user("bob"))
    opened(run)
    share = RunShare.objects.get()

    assert client.get(f"/runs/{run.pk}/share/").status_code == 404
    assert client.post(f"/runs/{run.pk}/share/", {"hours": "1"}).status_code == 404
    assert client.post(f"/runs/{run.pk}/share/{share.pk}/revoke/").status_code == 404
    assert RunShare.objects.get().revoked_at is None


def test_a_link_of_another_run_is_not_revoked_here(client, ann):
    run, other = some_run(ann), some_run(ann)
    opened(other)

    url = f"/runs/{run.pk}/share/{RunShare.objects.get().pk}/revoke/"
    assert client.post(url).status_code == 404


def test_a_revoked_link_says_that_it_opens_nothing(client, ann):
    run = some_run(ann)
    url = opened(run)
    client.post(f"/runs/{run.pk}/share/{RunShare.objects.get().pk}/revoke/")
    answer = Client().get(url)

    assert answer.status_code == 404
    assert "Link not found" in answer.content.decode()


@pytest.mark.parametrize("signed_in", [False, True])
def test_shows_one_run_and_nothing_else(client, ann, signed_in):
    run = some_run(ann)
    make_run(ann, forked_from=run, fork_index=1, fork_row=2)
    reader = client if signed_in else Client()
    answer = reader.get(opened(run))
    text = answer.content.decode()

    assert "<strong>Yes</strong>" in text
    assert "I look it up." in text
    assert "&lt;script&gt;1" in text
    assert "<script>1" not in text
    assert "<img" not in text
    assert "abc" not in text
    for hidden in ("ann@example.com", "Aalto", "private-agent", "/runs/", "/agents/"):
        assert hidden not in re.sub(r'(href|src)="/static/[^"]*"', "", text)


def test_is_not_kept_indexed_or_reported_to_others(client, ann):
    answer = Client().get(opened(some_run(ann)))

    assert "noindex" in answer["X-Robots-Tag"]
    assert answer["Referrer-Policy"] == "no-referrer"
    assert "no-store" in answer["Cache-Control"]
    assert "Set-Cookie" not in answer
    assert Client().post(opened(some_run(ann))).status_code == 405


def test_a_long_run_comes_in_windows(client, ann):
    run = make_run(ann, status="succeeded")
    for _ in range(70):
        make_step(run, call=make_call(run), elapsed=0.0)
    url = opened(run)
    first = Client().get(url).content.decode()
    later = Client().get(f"{url}?after=100").content.decode()

    assert 'id="step-100"' in first
    assert 'id="step-101"' not in first
    assert 'href="?after=100"' in first
    assert 'id="step-101"' in later
    assert 'id="step-140"' in later
    assert Client().get(f"{url}?after={2**63 - 1}").status_code == 200


def test_says_why_a_stopped_run_has_no_answer(client, ann):
    run = make_run(ann, status="limit_reached", rounds=15, output=FORCED_STOP_MESSAGE)
    text = client.get(opened(run)).content.decode()

    assert FORCED_STOP_MESSAGE not in text
    assert "No answer. Round limit reached (15 rounds)." in text


def test_reused_steps_show_nothing_as_paid_again(client, ann):
    run = make_run(ann, status="succeeded")
    call = make_call(run, is_copied=True, input_tokens=700, elapsed=2.0)
    make_step(run, call=call, is_copied=True, duration=3.0)
    make_call(run, input_tokens=900, output_tokens=0, elapsed=4.0)
    text = client.get(opened(run)).content.decode()

    assert re.findall(r'figs">([^<]*)<', text) == ["", "", "4.0 s, 900 tokens"]


def test_only_a_page_that_anyone_may_open_stops_rendering_after_its_time(
    client, ann, monkeypatch
):
    monkeypatch.setattr(document, "MAX_SECONDS_PER_PAGE", 0)
    run = some_run(ann)
    make_call(run, reply={"text": "*long* " * 1_000, "reasoning": "*short*"})
    make_step(run, tool_input={"n": [1] * 1_000}, observation="[1, " * 1_000)

    shared = Client().get(opened(run)).content.decode()
    downloaded = client.get(f"/runs/{run.pk}/export/html/").content.decode()

    assert '<pre class="code plain">*long* *long*' in shared
    assert "6,000 more characters" in shared
    assert "<em>short</em>" in shared
    assert '<span class="n">1</span>' not in shared
    assert "<em>long</em>" in downloaded
    assert "more characters" not in downloaded
    assert '<span class="n">1</span>' in downloaded


def test_few_shared_pages_are_rendered_at_the_same_time(client, ann, monkeypatch):
    url = opened(some_run(ann))
    monkeypatch.setattr(share, "_places", places := BoundedSemaphore(1))
    with places:
        refused = Client().get(url)
    assert refused.status_code == 503
    assert "reloads by itself" in refused.content.decode()
    assert (refused["Refresh"], refused["Retry-After"]) == ("2", "2")

    for _ in range(2):
        assert Client().get(url).status_code == 200
    assert Client().get("/shared/none/").status_code == 404
    assert Client().get(url).status_code == 200
