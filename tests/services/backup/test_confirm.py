"""Confirming a restore, and the pause until then."""

from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.utils import timezone

from runs.models import (
    AgentStep,
    DeletionJob,
    Delivery,
    RetentionRule,
    Run,
    Schedule,
    SiteRestore,
    Webhook,
)
from runs.services.backup.confirm import (
    NoPausedRestore,
    RestoreChoices,
    confirm_restore,
    count_restored_work,
)
from runs.services.health.invariants import check_invariants
from runs.services.health.status import check_health
from runs.services.retention.jobs import create_daily_job, create_prune_job
from runs.services.runs.resume import resume_run
from runs.services.webhooks.deliver import claim_delivery
from runs.store.transitions import claim_run
from tests.make import (
    make_call,
    make_delivery,
    make_run,
    make_schedule,
    make_step,
    make_user,
    make_webhook,
)
from tests.services.retention.rows import set_rules
from tools.audit.entry import AuditEntry

pytestmark = pytest.mark.django_db

CONTINUE = RestoreChoices("continue", "continue", "send")


def restored(*, minutes: float = 5) -> SiteRestore:
    """Pause the site by a restore that happened after everything made so far."""
    at = timezone.now() + timedelta(minutes=minutes)
    return SiteRestore.objects.create(backup_at=at, restored_at=at)


def violations() -> list[str]:
    return [str(each) for each in check_invariants()]


def test_nothing_is_claimed_while_paused():
    run, delivery = make_run(), make_delivery()
    restored()

    assert claim_run(run.pk, None) is None
    assert claim_delivery(delivery.pk) is None


def test_everything_is_claimed_again_after_the_confirmation():
    run, delivery = make_run(), make_delivery()
    restored()

    confirm_restore(CONTINUE, by=None)

    assert claim_run(run.pk, None) is not None
    assert claim_delivery(delivery.pk) is not None


@pytest.mark.parametrize("status", ["queued", "running", "waiting"])
def test_stopped_runs_can_be_resumed(status):
    run = make_run(status=status)
    restored()

    confirm_restore(RestoreChoices(), by=None)

    run.refresh_from_db()
    assert (run.status, run.error_code) == ("failed", "restored")
    assert violations() == []
    resume_run(run, by=None)
    assert claim_run(run.pk, None) is not None


def test_a_side_effect_in_progress_has_an_unknown_outcome():
    run = make_run(status="running", next_index=1, next_number=1, seq=1)
    call = make_call(run)
    step = make_step(run, call=call, status="started", effect="side_effect")
    restored()

    confirm_restore(RestoreChoices(), by=None)

    step.refresh_from_db()
    assert step.status == AgentStep.Status.UNKNOWN


def test_the_children_of_a_stopped_run_end_with_it():
    parent = make_run(status="waiting")
    step = make_step(parent, status="started")
    child = make_run(status="awaiting_approval", parent_step=step)
    restored()

    confirm_restore(RestoreChoices(), by=None)

    child.refresh_from_db()
    assert child.status == Run.Status.CANCELED


@pytest.mark.parametrize("status", ["awaiting_approval", "awaiting_decision"])
def test_runs_that_need_a_person_stay(status):
    run = make_run(status=status)
    restored()

    assert count_restored_work().awaiting_runs == 1
    confirm_restore(RestoreChoices(), by=None)

    run.refresh_from_db()
    assert run.status == status


def test_a_run_created_after_the_restore_is_not_stopped():
    restored(minutes=-5)
    run = make_run()

    confirm_restore(RestoreChoices(), by=None)

    assert claim_run(run.pk, None) is not None


def test_stopping_runs_notifies_nobody():
    webhook = make_webhook(make_user("ann"))
    make_run(webhook.owner)
    restored()

    confirm_restore(RestoreChoices(), by=None)

    assert not Delivery.objects.filter(status="waiting").exists()
    assert not Webhook.objects.get().is_on
    assert violations() == []


def test_discarding_leaves_webhooks_enabled():
    delivery = make_delivery()
    restored()

    confirm_restore(RestoreChoices(webhooks="discard"), by=None)

    delivery.refresh_from_db()
    assert delivery.status == Delivery.Status.FAILED
    assert Webhook.objects.get().is_on


def test_schedules_are_disabled():
    make_schedule()
    restored()

    confirm_restore(RestoreChoices(), by=None)

    assert Schedule.objects.get().next_at is None


def test_schedules_that_continue_skip_the_times_since_the_backup():
    make_schedule(next_at=timezone.now() - timedelta(days=3))
    restored()

    confirm_restore(RestoreChoices(schedules="continue"), by=None)

    next_at = Schedule.objects.get().next_at
    assert next_at is not None
    assert next_at > timezone.now()


def test_a_site_is_confirmed_once_and_that_is_audited():
    ann = make_user("ann", is_superuser=True)
    restored()

    confirm_restore(RestoreChoices(), by=ann)

    assert SiteRestore.objects.get().confirmed_by == "ann"
    assert AuditEntry.objects.filter(action="confirmed", noun="restore").count() == 1
    with pytest.raises(NoPausedRestore):
        confirm_restore(RestoreChoices(), by=ann)


def test_rules_delete_nothing_for_an_hour_after_the_confirmation():
    set_rules(succeeded_runs=30)
    RetentionRule.objects.update(updated_at=timezone.now() - timedelta(days=90))
    job = create_prune_job(is_daily=True)  # the backup was created while it ran
    DeletionJob.objects.update(created_at=timezone.now() - timedelta(days=60))
    restored()

    confirm_restore(RestoreChoices(), by=None)

    job.refresh_from_db()
    assert job.status == DeletionJob.Status.STOPPED
    assert create_daily_job() is None


def test_a_prune_requested_after_the_restore_continues():
    restored(minutes=-5)
    job = create_prune_job()

    confirm_restore(RestoreChoices(), by=None)

    job.refresh_from_db()
    assert job.status == DeletionJob.Status.OPEN


@pytest.mark.parametrize("has_rules", [True, False])
def test_the_command_says_when_rules_apply_again(has_rules):
    set_rules(**({"succeeded_runs": 30} if has_rules else {}))
    restored()
    output = StringIO()

    call_command("confirm_restore", stdout=output)

    assert ("Retention rules apply again from" in output.getvalue()) is has_rules


def test_health_reports_the_pause():
    restored()

    assert "paused" in check_health().degraded


@pytest.fixture
def admin() -> User:
    return make_user("admin", is_superuser=True)


def test_every_page_links_to_the_confirmation(client, admin):
    restored()
    client.force_login(admin)

    assert 'href="/restore/"' in client.get("/runs/").content.decode()


def test_members_see_the_pause_and_cannot_confirm(client):
    restored()
    client.force_login(make_user())

    assert "An administrator must confirm." in client.get("/runs/").content.decode()
    assert client.get("/restore/").status_code == 403
    assert client.post("/restore/").status_code == 403


def test_the_page_applies_the_choices(client, admin):
    run = make_run()
    restored()
    client.force_login(admin)
    shown = client.get("/restore/").content.decode()

    choices = {"runs": "continue", "schedules": "disable", "webhooks": "disable"}
    client.post("/restore/", choices)

    assert "Runs in progress" in shown
    assert not SiteRestore.objects.unconfirmed().exists()
    assert Run.objects.get(pk=run.pk).status == "queued"


@pytest.mark.parametrize("has_rules", [True, False])
def test_the_page_says_when_rules_apply_again(client, admin, has_rules):
    set_rules(**({"succeeded_runs": 30} if has_rules else {}))
    restored()
    client.force_login(admin)

    shown = client.get("/restore/").content.decode()

    assert ("One hour after you confirm" in shown) is has_rules


def test_a_missing_choice_is_refused(client, admin):
    restored()
    client.force_login(admin)

    page = client.post("/restore/", {"runs": "continue"}).content.decode()

    assert "error" in page
    assert SiteRestore.objects.unconfirmed().exists()


def test_without_a_restore_the_page_leads_home(client, admin):
    client.force_login(admin)

    assert client.get("/restore/").headers["Location"] == "/"
