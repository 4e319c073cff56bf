"""The bars above the list of runs."""

import html
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from runs.models import Run
from tests.make import make_run, make_user
from tests.support.html import join_lines

pytestmark = pytest.mark.django_db
BAR = re.compile(r'<a href="([^"]*)"[^>]*data-begin="([^"]*)"[^>]*aria-label="([^"]*)"')


def bars(client, query=""):
    """Return URL, beginning and words of each bar."""
    page = join_lines(client.get(f"/runs/figures/{query}").content.decode())
    return [tuple(map(html.unescape, found)) for found in BAR.findall(page)]


def run_at(owner, at, **fields):
    run = make_run(owner, **fields)
    Run.objects.filter(pk=run.pk).update(created_at=at)
    return run


def test_counts_runs_by_the_time_of_their_start(client, ann):
    day = datetime(2026, 11, 20, tzinfo=UTC)
    run_at(ann, day + timedelta(hours=9, minutes=10), status="succeeded")
    run_at(ann, day + timedelta(hours=9, minutes=50), status="failed")
    run_at(ann, day + timedelta(hours=11), status="succeeded")
    run_at(make_user(), day + timedelta(hours=9), status="failed")

    found = bars(client, "?begin=2026-11-20&end=2026-11-20")

    words = [one for _url, _begin, one in found if ": 0 runs" not in one]
    assert len(found) == 24
    assert words == ["Nov 20 09:00: 2 runs, 1 failed", "Nov 20 11:00: 1 run"]


def test_a_bar_leads_to_the_runs_of_its_time(client, ann):
    at = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
    run_at(ann, at, title="Inside", status="succeeded")
    run_at(ann, at + timedelta(hours=3), title="Outside", status="succeeded")
    query = "?status=succeeded&begin=2026-11-20&end=2026-11-20"

    (url,) = [url for url, _, words in bars(client, query) if "09:00: 1 run" in words]
    page = client.get(f"/runs/{url}").content.decode().split('id="run-list"')[1]

    assert url == "?status=succeeded&begin=2026-11-20T09:00&end=2026-11-20T10:00"
    assert ">Inside<" in page
    assert ">Outside<" not in page


@pytest.mark.parametrize("days", [0, 1, 20, 400, 4000])
def test_has_few_bars_however_long_ago_the_first_run_was(client, ann, days):
    run_at(ann, timezone.now() - timedelta(days=days))
    make_run(ann)

    found = bars(client)

    assert 20 <= len(found) <= 62
    assert sum(int(re.search(r": (\d+) run", one[2])[1]) for one in found) == 2


def test_there_are_no_bars_without_runs(client, ann):
    assert bars(client) == []


def test_without_the_zone_of_the_viewer_it_says_utc(client, ann):
    make_run(ann)

    assert "<span>UTC</span>" in client.get("/runs/figures/").text
    assert "<span>UTC</span>" in client.get("/runs/?figures=1").text
    client.cookies["time_zone"] = "Asia/Shanghai"
    assert "<span>UTC</span>" not in client.get("/runs/figures/").text
