"""What the page's stream sends of a run's changes."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.live.batches import RendererState
from runs.live.page_renderer import PageRenderer
from runs.models import Decision, ModelAttempt, ProviderOutage, Run
from tests.make import (
    make_call,
    make_decision,
    make_provider,
    make_run,
    make_step,
    make_user,
)

pytestmark = pytest.mark.django_db


def reader(run):
    """Return a function that gives the batch and the message after a seq."""
    form, memories = PageRenderer(), {run.pk: RendererState()}

    def read(after):
        batch = form.read_batches({run.pk: after}, memories)[0]
        return batch.seq, form.render_message(batch, after).decode()

    return read


def asking():
    """Return a run that waits for a yes."""
    run = make_run(status="awaiting_approval")
    make_decision(make_step(run, status="awaiting_approval"))
    return run


def test_the_next_question_is_reported_though_the_number_is_the_same():
    run = asking()
    read = reader(run)
    seq, _ = read(0)
    Decision.objects.update(answer="approved")
    make_decision(make_step(run, status="awaiting_approval"))

    assert "run-banner" in read(seq)[1]


def test_nothing_is_asked_anew_while_the_question_stays():
    run = asking()
    read = reader(run)
    seq, _ = read(0)
    make_call(run)

    assert "run-banner" not in read(seq)[1]


def test_the_buttons_stay_until_those_of_the_new_state_have_come():
    run = asking()
    text = reader(run)(0)[1]

    for name in ("actions", "banner"):
        assert f'hx-target="#run-{name}" hx-swap="beforeend"><i hidden' in text


def test_who_comes_back_late_receives_what_others_know_already():
    run = asking()
    read = reader(run)
    late, _ = read(0)
    Decision.objects.update(answer="approved")
    Run.objects.update(status="queued", seq=late + 1)
    seq, _ = read(late)
    run.refresh_from_db()
    make_call(run)
    read(seq)

    assert "run-banner" in read(late)[1]


def test_a_reply_keeps_the_attempts_that_failed_before_it():
    run = make_run(status="running", seq=1)
    ModelAttempt.objects.create(
        run=run,
        number=0,
        attempt=1,
        code="overloaded",
        message="503",
        started_at=timezone.now(),
        elapsed=0.1,
        created_seq=1,
    )
    read = reader(run)
    seq, _ = read(0)
    make_call(run)

    assert "1 failed attempt" in read(seq)[1]


def test_a_call_under_way_says_when_the_worker_is_lost_and_when_it_is_back():
    run = make_run(status="running")
    make_step(run, status="started", tool="look_up")
    make_step(run, tool="done_before")
    form, memories = PageRenderer(), {run.pk: RendererState()}
    form.read_batches({run.pk: 0}, memories)

    def rows(**lease):
        now = timezone.now()
        Run.objects.update(lease_until=now + timedelta(**lease))
        return form.render_heads([run.pk], memories)[run.pk].get("rows", b"").decode()

    assert rows(seconds=30) == ""
    lost = rows(seconds=-1)
    assert 'hx-target="#run-step-2:has(.w-live, .w-cut)"' in lost
    assert "no heartbeat" in lost
    assert "done_before" not in lost
    back = rows(seconds=30)
    assert ">running<" in back
    assert "no heartbeat" not in back


def test_a_waiting_run_says_when_its_provider_is_tested_and_responds():
    now, owner = timezone.now(), make_user()
    provider = make_provider(owner, name="Local")
    run = make_run(
        owner, status="waiting", waiting_provider=provider, waiting_since=now
    )
    outage = ProviderOutage.objects.create(
        provider=provider, started_at=now, probe_at=now, error_message="No server."
    )
    form, memories = PageRenderer(), {run.pk: RendererState()}
    form.read_batches({run.pk: 0}, memories)

    def read_news(**changes):
        ProviderOutage.objects.filter(pk=outage.pk).update(**changes)
        if not form.find_stale_runs([run.pk], memories):
            return ""
        head = form.render_heads([run.pk], memories)[run.pk]
        return b"".join(head.values()).decode()

    first = read_news()
    assert "Waiting for provider Local, next attempt at" in first
    assert "No server." in first
    assert read_news() == ""
    tester = make_run()
    assert f"which run {tester.pk} is testing" in read_news(probe_run=tester)
    assert "Local responds again" in read_news(probe_run=None, ended_at=now)


def test_a_failure_opens_the_failed_step_for_those_who_follow():
    run = make_run(status="running", seq=1)
    ModelAttempt.objects.create(
        run=run,
        number=0,
        attempt=1,
        code="refused",
        message="The key is wrong.",
        started_at=timezone.now(),
        elapsed=1.0,
        created_seq=2,
    )
    read = reader(run)
    seq, _ = read(0)
    Run.objects.update(
        status="failed", ended_at=timezone.now(), lease_until=None, seq=seq + 1
    )
    pane = read(seq)[1].split('id="run-detail"')[1]

    assert 'data-step="1"' in pane.partition(">")[0]
    assert 'id="run-attempts"' in pane
    assert "The key is wrong." in pane
