"""Deletion jobs: one at a time, resumable, stoppable, audited."""

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from runs.models import DeletionJob, RetentionRule, Run, SiteRestore
from runs.services.retention import jobs
from runs.services.retention.batches import RetentionBatch
from runs.services.retention.jobs import (
    JobLost,
    claim_job,
    commit_batch,
    create_daily_job,
    create_prune_job,
    find_next_daily_time,
    run_job,
    stop_job,
)
from runs.services.search.index_runs import index_runs
from tests.make import make_agent, make_run, make_user
from tests.services.retention.rows import age, make_old_run, set_rules
from tools.models import AuditEntry

pytestmark = pytest.mark.django_db


def make_many(count: int) -> None:
    agent = make_agent()
    for _ in range(count):
        age(make_run(agent=agent, status="succeeded"), 40)
    index_runs()


def go_on(seconds: float) -> bool:
    return False


def test_a_job_is_created_once():
    set_rules(succeeded_runs=30)

    assert create_prune_job() == create_prune_job()


def test_a_claimed_job_is_claimed_by_nobody_else():
    job = create_prune_job()
    assert claim_job() == job
    assert claim_job() is None

    DeletionJob.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert claim_job() == job


def test_who_lost_the_job_deletes_nothing_more():
    make_old_run()
    set_rules(succeeded_runs=30)
    create_prune_job()
    lost = claim_job()
    DeletionJob.objects.update(lease_until=None)
    assert claim_job() is not None

    with pytest.raises(JobLost):
        commit_batch(lost, lambda after: pytest.fail("it went on"))
    assert run_job(lost, pause=go_on) is False
    assert Run.objects.exists()


def test_a_job_stops_after_a_batch_and_another_process_continues():
    make_many(120)
    set_rules(succeeded_runs=30)
    create_prune_job()
    waits = []

    def shut_down(seconds):
        waits.append(seconds)
        return True

    assert run_job(claim_job(), pause=shut_down) is False
    assert Run.objects.count() == 100
    assert len(waits) == 1

    assert run_job(claim_job(), pause=go_on) is True
    job = DeletionJob.objects.get()
    assert (job.status, job.counts) == ("done", {"runs": 120})
    assert not Run.objects.exists()


def test_a_batch_that_crashes_is_not_counted(monkeypatch):
    make_many(60)
    set_rules(succeeded_runs=30)
    create_prune_job()
    real, calls = jobs.Counter, []

    def crash(counts):
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("out of memory")
        return real(counts)

    monkeypatch.setattr(jobs, "Counter", crash)
    with pytest.raises(RuntimeError):
        run_job(claim_job(), pause=go_on)
    job = DeletionJob.objects.get()
    assert (job.counts, job.status) == ({}, "open")
    assert job.problem == "RuntimeError: out of memory"
    assert Run.objects.count() == 60
    assert claim_job() is None  # tried again later

    DeletionJob.objects.update(lease_until=None)
    assert run_job(claim_job(), pause=go_on) is True
    job.refresh_from_db()
    assert (job.counts, job.problem) == ({"runs": 60}, "")


def test_a_stopped_job_ends_after_its_batch_and_says_who_stopped_it():
    make_many(120)
    set_rules(succeeded_runs=30)
    ann = make_user("ann", is_superuser=True)
    create_prune_job(by=ann)

    def stop(seconds):
        assert stop_job(DeletionJob.objects.get(), by=ann)
        return False

    assert run_job(claim_job(), pause=stop) is False
    job = DeletionJob.objects.get()
    assert (job.status, job.counts) == ("stopped", {"runs": 20})
    assert not stop_job(job, by=ann)
    assert claim_job() is None
    entry = AuditEntry.objects.get(noun="deletion job")
    assert (entry.by, entry.changes) == ("ann", {"runs": [20, 0]})


def test_the_audit_log_has_the_counts_and_the_rules():
    make_old_run()
    set_rules(succeeded_runs=30, sessions=2)
    create_prune_job(by=make_user("ann"))
    run_job(claim_job(), pause=go_on)

    entry = AuditEntry.objects.get(noun="deletion job")
    assert (entry.by, entry.action, entry.changes) == (
        "ann",
        "pruned",
        {"runs": [1, 0]},
    )
    assert entry.note == "sessions: 2 days; succeeded_runs: 30 days"


def test_a_daily_job_without_anything_to_delete_is_not_audited():
    set_rules(succeeded_runs=30)
    create_prune_job(is_daily=True)
    run_job(claim_job(), pause=go_on)

    assert not AuditEntry.objects.filter(noun="deletion job").exists()


def test_pauses_are_several_times_as_long_as_batches():
    waits = []
    create_prune_job()
    claimed = claim_job()
    jobs_stage = RetentionBatch({}, is_last=True, wait=3)

    assert commit_batch(claimed, lambda after: jobs_stage).wait == 3
    run_job(claimed, pause=lambda seconds: bool(waits.append(seconds)))
    assert all(0 < wait <= jobs.MAX_PAUSE_SECONDS for wait in waits)


def test_the_daily_job_waits_for_an_hour_after_a_change_and_for_the_next_day():
    assert (find_next_daily_time(), create_daily_job()) == (None, None)
    set_rules(succeeded_runs=30)
    assert create_daily_job() is None

    hour_ago = timezone.now() - timedelta(hours=1, seconds=1)
    RetentionRule.objects.update(updated_at=hour_ago)
    job = create_daily_job()
    assert job is not None
    assert job.is_daily
    run_job(claim_job(), pause=go_on)
    assert create_daily_job() is None

    DeletionJob.objects.update(created_at=timezone.now() - timedelta(hours=24))
    assert create_daily_job() is not None


def test_the_daily_job_waits_for_an_hour_after_the_confirmation_of_a_restore():
    set_rules(succeeded_runs=30)
    now = timezone.now()
    RetentionRule.objects.update(updated_at=now - timedelta(days=90))
    SiteRestore.objects.create(backup_at=now - timedelta(days=60), confirmed_at=now)

    assert create_daily_job() is None
    assert find_next_daily_time() == now + timedelta(hours=1)

    SiteRestore.objects.update(confirmed_at=now - timedelta(hours=1))
    assert create_daily_job() is not None


def test_old_jobs_are_forgotten(monkeypatch):
    monkeypatch.setattr(jobs, "KEPT_JOBS", 2)
    for _ in range(5):
        job = create_prune_job()
        stop_job(job, by=None)

    assert DeletionJob.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_of_many_workers_one_gets_the_job():
    create_prune_job()
    found, barrier = list[object](), threading.Barrier(6)

    def claim():
        barrier.wait()
        found.append(claim_job())
        connection.close()

    threads = [threading.Thread(target=claim) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(job is not None for job in found) == 1
