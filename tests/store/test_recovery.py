"""Runs whose workers died in a row."""

from typing import Any

import pytest
from django.conf import settings
from django.db.models import ExpressionWrapper

from runs.services.health.queue import measure_queue_health
from runs.store.database_clock import db_time_from_now
from runs.store.recovery import BEFORE_LAST_TRY, MAX_RECOVERIES, PAUSE_LEASES
from runs.store.transitions import claim_run
from runs.worker.sweep import sweep
from tests.make import make_run

pytestmark = pytest.mark.django_db


def gone_since(leases: float) -> "ExpressionWrapper[Any]":
    """Return the end of a lease, so many leases ago."""
    return db_time_from_now(-leases * settings.LEASE_SECONDS)


@pytest.mark.parametrize(
    ("recoveries", "leases", "is_claimed"),
    [
        pytest.param(BEFORE_LAST_TRY - 1, 0.1, True, id="earlier-try"),
        pytest.param(BEFORE_LAST_TRY, PAUSE_LEASES - 0.5, False, id="pause"),
        pytest.param(BEFORE_LAST_TRY, PAUSE_LEASES + 0.5, True, id="after-the-pause"),
        pytest.param(MAX_RECOVERIES - 1, 0.1, True, id="to-be-ended"),
    ],
)
def test_a_run_pauses_before_its_last_try(recoveries, leases, is_claimed):
    run = make_run(
        status="running", recoveries=recoveries, lease_until=gone_since(leases)
    )

    was_enqueued = sweep(free=1)
    claimed = claim_run(run.pk, None, takes_suspects=True)

    assert was_enqueued == is_claimed
    assert (claimed is not None) is is_claimed


def test_a_run_that_pauses_is_not_stuck():
    for leases in (PAUSE_LEASES - 0.5, PAUSE_LEASES + 5):
        make_run(
            status="running",
            recoveries=BEFORE_LAST_TRY,
            lease_until=gone_since(leases),
        )

    assert measure_queue_health().stuck == 1
