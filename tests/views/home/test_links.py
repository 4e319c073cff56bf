"""The figures of the home page are those of the lists that they lead to."""

import html
import re
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import NamedTuple

import pytest
from django.utils import timezone

from runs.models import Run
from runs.services.search import run_sample
from runs.services.search.index_runs import index_runs
from runs.services.search.run_sample import limit_query_time
from runs.time_zone import ZONE_COOKIE
from tests.make import (
    make_agent,
    make_decision,
    make_run,
    make_spec,
    make_step,
    make_tool,
    make_user,
)
from tools.models import ToolUsage

pytestmark = pytest.mark.django_db

TILE = re.compile(r'<span class="tl">([^<]*)</span><b>([^<]*)</b>')
LINKS = {
    "attention": (
        r'<code>(?P<label>[^<]*)</code></b>\s*<span class="count">(?P<shown>\d+)<.*?'
        r'href="(?P<url>/approvals/\?[^"]*)"'
    ),
    "figures": (
        r'href="(?P<url>/runs/\?[^"]*)">\s*'
        r'<span class="tl">(?P<label>Runs|Cost)[^<]*</span>\s*<b>(?P<shown>[^<]*)</b>'
    ),
    "chart": (
        r'<a href="(?P<url>/runs/\?[^"]*)" '
        r'aria-label="(?P<label>[^"]*): (?P<shown>\d+) run'
    ),
    "worst": r'<a href="(?P<url>/runs/\?[^"]*)">(?P<label>[^<]*), (?P<shown>\d+)</a>',
    "rankings": (
        r'href="(?P<url>/runs/\?[^"]*)">(?P<label>[^<]*)</a>.*?'
        r'<span class="num">(?P<shown>[^<]*)<'
    ),
    "agents": (
        r'class="name clip"[^>]*>(?P<label>[^<]*)</a>.*?'
        r'<td class="num"><a href="(?P<url>/runs/\?[^"]*)">(?P<shown>[^<]*)<'
    ),
}
"""Card, and a link in it with its figure."""
CARDS = {"worst": "chart"}
MODELS = ("model-a", "model-b")
TODAY = timezone.localdate()
ADDRESSES = {
    "7 days": "/",
    "7 days with tests": "/?tests=1",
    "7 days of one's own": "/?mine=1",
    "24 hours": "/?range=24h",
    "30 days": "/?range=30d",
    "days that are over": f"/?begin={TODAY - timedelta(6)}&end={TODAY - timedelta(1)}",
}


class Figure(NamedTuple):
    """A figure of the page, and what is in its list."""

    card: str
    label: str
    shown: str
    listed: str


@pytest.mark.slow
def test_every_figure_is_that_of_its_list(admin_client, admin_user, monkeypatch):
    # A busy machine is slow, not wrong.
    monkeypatch.setattr(
        run_sample, "limit_query_time", partial(limit_query_time, 60_000)
    )
    for owner in (admin_user, make_user("ben")):
        make_runs_of_each_sort(owner)
    admin_client.cookies[ZONE_COOKIE] = "Asia/Kathmandu"

    wrong, lists = [], {}
    for name, url in ADDRESSES.items():
        page = admin_client.get(url).text
        figures = list(read_figures(admin_client, page, lists))
        has_tools = "?failed_tool=" in page or "&amp;failed_tool=" in page
        assert has_tools == ("mine" not in url and "24h" not in url), name
        cards = {one.card for one in figures}
        assert cards >= {"figures", "chart", "rankings", "agents"}, name
        wrong += [(name, one) for one in figures if one.shown != one.listed]

    assert wrong == []


def test_runs_without_a_model_have_no_list(client, ann):
    agent = make_agent(ann)
    spec = make_spec(model={"model": ""})
    for _ in range(10):
        make_run(ann, agent=agent, spec=spec, status="succeeded", cost="0.1")
    index_runs()

    card = client.get("/").text.split('id="home-rankings"')[1].split("</section>")[0]

    assert '<span class="clip">Unknown model</span>' in card


def make_runs_of_each_sort(owner):
    """Make ended, unfinished, called, test and earlier runs of two models."""
    agent = make_agent(owner, name=f"Agent of {owner}")
    other = make_agent(owner, name=f"Helper of {owner}")
    for model in MODELS:
        spec = make_spec(model={"model": model})
        for hours, fields in (
            (0, {"status": "running"}),
            (1, {"status": "queued", "agent": other}),
            (2, {"status": "running", "is_test": True}),
            (3, {"status": "failed", "error_code": "auth"}),
            (30, {"status": "waiting"}),
            (40, {"status": "limit_reached", "stop_reason": "time"}),
            (50, {"status": "succeeded", "is_test": True}),
            (150, {"status": "canceled", "agent": other}),
            (400, {"status": "succeeded"}),
            (400, {"status": "running"}),
        ):
            fields = {"agent": agent, "spec": spec, "cost": "0.5", **fields}
            parent = start(hours, owner=owner, **fields)
            for index, status in enumerate(("succeeded", "queued")):
                start(
                    hours,
                    owner=owner,
                    agent=other,
                    spec=spec,
                    status=status,
                    is_test=parent.is_test,
                    parent_step=make_step(parent, index=index),
                    source="parent",
                    cost="0.25",
                )
    tool = make_tool(owner, name=f"look_up_{owner.pk}")
    for hours in (30, 100):
        run = start(hours, owner=owner, agent=agent, spec=spec, status="succeeded")
        make_step(run, tool=tool.name, status="failed")
        hour = run.created_at.replace(minute=0, second=0, microsecond=0)
        ToolUsage.objects.create(tool=tool, hour=hour, calls=3, failures=1)
        start(hours, owner=owner, agent=agent, spec=spec, status="succeeded")
        make_step(Run.objects.latest("pk"), tool=tool.name)
    for _ in range(2):
        run = make_run(owner, agent=agent, status="awaiting_approval")
        make_decision(make_step(run, tool=f"refund_{owner.pk}"))
    index_runs()
    return agent


def start(hours, **fields):
    run = make_run(**fields)
    run.created_at = timezone.now() - timedelta(hours=hours, minutes=5)
    run.save()
    return run


def read_figures(client, page, lists: dict[str, str]) -> Iterator[Figure]:
    """Yield what each link says, next to what the list says that it opens.

    `lists` are the lists opened so far, by address.
    """
    for card, pattern in LINKS.items():
        part = page.split(f'id="home-{CARDS.get(card, card)}"')[-1]
        part = part.split("</section>")[0]
        for found in re.finditer(pattern, part, re.S):
            url, shown = html.unescape(found["url"]), found["shown"]
            url = url.replace("/runs/", "/runs/figures/")
            if url not in lists:
                lists[url] = client.get(url).text
            if url.startswith("/approvals/"):
                listed = str(lists[url].count('id="approval-item-'))
            else:
                tiles = dict(TILE.findall(lists[url]))
                listed = tiles["Cost" if shown.startswith("$") else "Runs"]
            yield Figure(card, found["label"], shown, listed)
