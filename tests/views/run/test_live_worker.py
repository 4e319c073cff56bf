"""Whether pages say that a run or all workers have no heartbeat."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from runs.live.batches import RendererState
from runs.live.page_renderer import PageRenderer
from runs.store.database_clock import db_time_from_now
from runs.ui.run_list_rows import annotate_current_tool, build_run_rows
from runs.views.run.state import has_live_worker
from tests.make import make_delivery, make_run, make_step, make_webhook, make_worker

pytestmark = pytest.mark.django_db


def shift_web_clock(monkeypatch, hours):
    """Let the clock of the web server differ from that of the database."""
    clock = timezone.now() + timedelta(hours=hours)
    monkeypatch.setattr(timezone, "now", lambda: clock)


@pytest.mark.parametrize(
    ("seconds", "is_live"),
    [pytest.param(0, True, id="live"), pytest.param(-1800, False, id="silent")],
)
@pytest.mark.parametrize("hours", [1, -1])
def test_the_clock_of_the_web_server_does_not_matter(
    monkeypatch, hours, seconds, is_live
):
    make_worker(last_heartbeat=db_time_from_now(seconds))
    shift_web_clock(monkeypatch, hours)

    assert has_live_worker() is is_live


@pytest.fixture
def run(ann):
    run = make_run(ann, status="running")
    make_step(run, status="started", tool="look_up")
    return run


@pytest.mark.parametrize(
    ("seconds", "is_lost"),
    [pytest.param(30, False, id="live"), pytest.param(-1, True, id="silent")],
)
@pytest.mark.parametrize("hours", [1, -1])
@pytest.mark.parametrize(
    ("address", "text"),
    [
        pytest.param("/runs/{}/", "no heartbeat for", id="page"),
        pytest.param("/runs/{}/", ">no heartbeat<", id="row"),
        pytest.param("/runs/", "No heartbeat, and no worker", id="list"),
        pytest.param("/", "No heartbeat, and no worker", id="home"),
    ],
)
def test_a_lease_expires_by_the_clock_of_the_database(
    client, run, monkeypatch, address, text, hours, seconds, is_lost
):
    type(run).objects.update(lease_until=db_time_from_now(seconds))
    shift_web_clock(monkeypatch, hours)
    page = client.get(address.format(run.pk)).content.decode()

    assert (text in page) is is_lost


@pytest.mark.parametrize("has_worker", [True, False])
@pytest.mark.parametrize("address", ["/runs/", "/", "/runs/{}/peek/"])
def test_pages_say_whether_a_worker_is_there_to_take_over(
    client, run, address, has_worker
):
    type(run).objects.update(lease_until=db_time_from_now(-1))
    if has_worker:
        make_worker()
    page = client.get(address.format(run.pk)).content.decode()

    assert ("No heartbeat, another worker will take over" in page) is has_worker
    alone = "No heartbeat, and no worker is running to take over" in page
    assert alone is not has_worker


@pytest.mark.parametrize(("seconds", "more"), [(30, 0), (-1, 1)])
def test_only_rows_without_heartbeat_ask_for_workers(run, seconds, more):
    type(run).objects.update(lease_until=db_time_from_now(seconds))
    runs = annotate_current_tool(type(run).objects.all())
    with CaptureQueriesContext(connection) as queries:
        build_run_rows(runs)

    asked = [one for one in queries if '"runs_worker"' in one["sql"]]
    assert len(asked) == more


@pytest.mark.parametrize(
    ("seconds", "is_lost"),
    [pytest.param(30, False, id="live"), pytest.param(-1, True, id="silent")],
)
@pytest.mark.parametrize("hours", [1, -1])
def test_so_does_the_stream_of_the_page(run, monkeypatch, hours, seconds, is_lost):
    type(run).objects.update(lease_until=db_time_from_now(seconds))
    renderer, memories = PageRenderer(), {run.pk: RendererState()}
    shift_web_clock(monkeypatch, hours)
    renderer.read_batches({run.pk: 0}, memories)
    header = renderer.render_heads([run.pk], memories)[run.pk]["header"].decode()

    assert ("no heartbeat for" in header) is is_lost
    assert renderer.find_stale_runs([run.pk], memories) == [run.pk]
    assert memories[run.pk].entries["page"].liveness[-1] is is_lost


@pytest.mark.parametrize("hours", [1, -1])
def test_so_does_a_delivery(client, ann, monkeypatch, hours):
    webhook = make_webhook(ann)
    make_delivery(webhook, lease_until=db_time_from_now(30))
    shift_web_clock(monkeypatch, hours)
    page = client.get(f"/webhooks/{webhook.pk}/").content.decode()

    assert "Sending" in page
