"""The workers page."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from runs.models import QueueSample
from runs.views.charts.queue import build_queue_chart, build_wait_ticks, round_up_wait
from tests.make import make_run, make_user, make_worker

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _signed_in(client):
    client.force_login(make_user())


def test_shows_who_lives(client):
    make_worker(name="host-a")

    assert "host-a" in client.get("/workers/").content.decode()


def test_shows_the_part_to_htmx(client):
    part = client.get("/workers/", headers={"HX-Request": "true"}).content.decode()

    assert part.strip().startswith('<div id="worker-list"')


def test_says_what_to_do_where_none_lives_and_how_the_last_ended(client):
    long_ago = timezone.now() - timedelta(hours=1)
    make_worker(name="crashed", last_heartbeat=long_ago)
    make_worker(name="ended", last_heartbeat=long_ago, stopped_at=long_ago)

    page = client.get("/workers/").content.decode()

    assert "make run" in page
    assert "no further heartbeat" in page
    assert "clean shutdown" in page


def test_counts_the_queue(client):
    make_run()
    make_run()

    page = client.get("/workers/").content.decode()

    assert "No worker is running, 2 runs waiting" in page


def test_says_what_each_worker_does_now(client):
    user = User.objects.get()
    worker = make_worker(name="host-a", running=2)
    make_run(user, status="running", worker=worker, title="Plan a day")
    make_run(make_user(), status="running", worker=worker, title="Secret question")

    page = client.get("/workers/").content.decode()

    assert "Plan a day" in page
    assert "Secret question" not in page


def test_draws_how_long_the_queue_has_waited(client):
    minute = timezone.now().replace(second=0, microsecond=0)
    for ago, wait, workers in ((60, 12.0, 1), (30, 0.0, 1), (1, 3.0, 1)):
        QueueSample.objects.create(
            minute=minute - timedelta(minutes=ago),
            queued=5,
            running=1,
            wait=wait,
            workers=workers,
        )

    page = client.get("/workers/").content.decode()

    assert "maximum, with at most 5 runs queued" in page
    assert "the oldest for 12 s" in page
    assert "No worker was running" in page


def test_the_drawing_fills_its_axis_from_a_day_ago_until_now():
    now = timezone.now()
    first, last = (
        QueueSample(minute=now - ago, queued=1, running=0, wait=5.0, workers=1)
        for ago in (timedelta(hours=24, seconds=-1), timedelta())
    )

    chart = build_queue_chart([first, last], now=now)

    (begin, *_), (end, *_) = chart.bars
    assert float(begin) == 0
    assert 99 < float(end) + float(chart.width) <= 100
    assert [(day.at, day.anchor) for day in chart.days] == [
        ("0", "start"),
        ("50", "middle"),
        ("100", "end"),
    ]


def test_what_waits_now_counts_for_the_longest_wait(client):
    now = timezone.now()
    minute = now.replace(second=0, microsecond=0) - timedelta(minutes=30)
    QueueSample.objects.create(minute=minute, queued=1, running=0, wait=30, workers=1)
    make_run(queued_at=now - timedelta(minutes=12))

    wait = client.get("/workers/").content.decode().split('id="worker-wait"')[1]

    assert re.search(r">12:\d\d min</time></b>", wait)
    assert re.search(r"the oldest for 12:\d\d min<", wait)
    assert ">10 min</text>" in wait  # half of the axis


def test_a_run_whose_worker_is_gone_is_distinguished_from_those_at_work(client):
    long_ago = timezone.now() - timedelta(hours=1)
    make_run(status="running", worker=make_worker(name="here", running=1))
    gone = make_worker(name="gone", last_heartbeat=long_ago)
    make_run(status="running", worker=gone)

    page = client.get("/workers/").content.decode()

    assert "1 lost its worker" in page
    assert "1 run not yet taken over" in page.split('id="worker-gone"')[1]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "1 s"), (30, "40 s"), (50, "1 min"), (2000, "40 min"), (90_000, "2 d")],
)
def test_the_axis_of_waits_ends_at_a_round_time(seconds, words):
    assert build_wait_ticks(round_up_wait(seconds))[-1].word == words


@pytest.mark.parametrize("hours", [1, -1])
def test_the_clock_of_the_web_server_does_not_matter(client, monkeypatch, hours):
    clock = timezone.now() + timedelta(hours=hours)
    make_worker(name="host-a")
    make_run()
    monkeypatch.setattr(timezone, "now", lambda: clock)

    page = client.get("/workers/").content.decode()

    assert "No worker is running" not in page
    assert "<dt>Workers</dt><dd>1</dd>" in page
    assert 'id="worker-gone"' not in page


def test_the_search_finds_workers_that_live_and_that_are_gone(client):
    long_ago = timezone.now() - timedelta(hours=1)
    make_worker(name="alpha-1", host="alpha")
    make_worker(name="beta-1", host="beta")
    make_worker(name="alpha-0", host="alpha", last_heartbeat=long_ago)

    page = client.get("/workers/?q=alpha").content.decode()

    assert "alpha-1" in page
    assert "alpha-0" in page
    assert "beta-1" not in page
    assert "<dd>2</dd>" in page  # the queue is that of all workers
    assert 'hx-get="/workers/?q=alpha"' in page


def test_a_search_without_a_result_leads_back_to_all(client):
    make_worker(name="alpha-1")

    page = client.get("/workers/?q=omega").content.decode()

    assert "Nothing in this list matches “omega”." in page
    assert "No worker is running" not in page
