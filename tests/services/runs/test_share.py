"""Links to one run."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import RunShare
from runs.services.errors import CannotShare
from runs.services.runs.share import (
    MAX_LINKS,
    get_active_shares,
    open_share,
    revoke_share,
    share_run,
)
from tests.make import make_run, make_user
from tools.models import AuditEntry

pytestmark = pytest.mark.django_db


def test_a_link_opens_its_run_and_is_counted():
    run = make_run()
    token = share_run(run, by=run.owner, hours=1)

    assert open_share(token) == run
    assert RunShare.objects.get().open_count == 1


def test_only_a_hash_of_the_link_is_stored():
    run = make_run()
    token = share_run(run, by=run.owner, hours=1)

    assert token not in str(RunShare.objects.values_list().get())


@pytest.mark.parametrize("token", ["", "x", "a" * 43, "0"])
def test_an_unknown_link_opens_nothing(token):
    share_run(run := make_run(), by=run.owner, hours=1)

    assert open_share(token) is None


def test_a_link_ends_with_its_time():
    run = make_run()
    token = share_run(run, by=run.owner, hours=1)
    RunShare.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    assert open_share(token) is None
    assert not get_active_shares(run)


def test_a_revoked_link_opens_nothing_and_is_revoked_once():
    run = make_run()
    token = share_run(run, by=run.owner, hours=1)
    share = RunShare.objects.get()

    assert revoke_share(share, by=run.owner)
    assert not revoke_share(share, by=run.owner)
    assert open_share(token) is None


def test_a_link_ends_with_the_rights_of_who_made_it():
    run, chief = make_run(), make_user(is_superuser=True)
    token = share_run(run, by=chief, hours=1)
    chief.is_superuser = False
    chief.save()
    assert open_share(token) is None

    token = share_run(run, by=run.owner, hours=1)
    run.owner.is_active = False
    run.owner.save()
    assert open_share(token) is None


@pytest.mark.parametrize("hours", [0, -1, 100_000])
def test_refuses_a_time_that_is_none(hours):
    with pytest.raises(CannotShare):
        share_run(run := make_run(), by=run.owner, hours=hours)


def test_refuses_more_links_than_anyone_needs():
    run = make_run()
    for _ in range(MAX_LINKS):
        share_run(run, by=run.owner, hours=1)

    with pytest.raises(CannotShare):
        share_run(run, by=run.owner, hours=1)


def test_the_audit_log_keeps_it():
    run = make_run()
    share_run(run, by=run.owner, hours=2)
    revoke_share(RunShare.objects.get(), by=run.owner)

    assert set(AuditEntry.objects.values_list("action", flat=True)) >= {
        "shared",
        "revoked",
    }
