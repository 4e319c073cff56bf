"""Deletion jobs: created once, carried out by one process at a time, resumable."""

import logging
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import F, Max, Q
from django.db.models.functions import Now
from django.utils import timezone

from runs.models import AgentRetention, DeletionJob, RetentionRule, SiteRestore
from runs.services.retention.batches import OpenStage, RetentionBatch, list_rule_stages
from runs.services.retention.rules import RetentionRules, load_rules
from runs.store.database_clock import db_time_from_now
from tools.audit.write import write_entry

logger = logging.getLogger(__name__)

Status, Purpose = DeletionJob.Status, DeletionJob.Purpose

LEASE_SECONDS = 60.0
"""A batch takes far less; each renews the lease."""
PAUSES_PER_BATCH = 9.0
"""A batch of 30 ms is followed by a pause of 270 ms."""
MAX_PAUSE_SECONDS = 5.0
RETRY_SECONDS = 30.0
"""Pause after a batch failed."""
INTERVAL = timedelta(days=1)
"""Between two daily jobs."""
GRACE_PERIOD = timedelta(hours=1)
"""After the last change of a rule or a restore, in which rules can be corrected."""
KEPT_JOBS = 100


class JobLost(Exception):
    """Another process has the job, or it was stopped."""


def create_prune_job(*, by: User | None = None, is_daily: bool = False) -> DeletionJob:
    """Return the open job that applies the rules; a new one if there is none."""
    fields = {"by": by, "is_daily": is_daily}
    return create_job(
        Purpose.RULES, rules=load_rules().model_dump(mode="json"), **fields
    )


def create_job(purpose: str, **fields: Any) -> DeletionJob:
    """Return a new open job; the one that is open if there is one."""
    try:
        with transaction.atomic():
            old = DeletionJob.objects.exclude(status=Status.OPEN)[KEPT_JOBS:]
            DeletionJob.objects.filter(pk__in=[job.pk for job in old]).delete()
            return DeletionJob.objects.create(
                purpose=purpose, created_at=timezone.now(), **fields
            )
    except IntegrityError:
        return DeletionJob.objects.get(purpose=purpose, status=Status.OPEN)


def create_daily_job() -> DeletionJob | None:
    """Create the job of the day if there are rules and it is time."""
    if (due := find_next_daily_time()) is None or due > timezone.now():
        return None
    return create_prune_job(is_daily=True)


def find_next_daily_time() -> Any:
    """Return when the rules are applied next; None without rules.

    A day after the last time, and an hour after the last change of a rule and after a
    restore was confirmed.
    """
    if load_rules().is_empty:
        return None
    changed = [
        model._default_manager.aggregate(last=Max(column))["last"]
        for model, column in (
            (RetentionRule, "updated_at"),
            (AgentRetention, "updated_at"),
            (SiteRestore, "confirmed_at"),
        )
    ]
    times = [at + GRACE_PERIOD for at in changed if at]
    jobs = DeletionJob.objects.filter(purpose=Purpose.RULES)
    if last := jobs.first():
        times.append(last.created_at + INTERVAL)
    return max(times)


def claim_job(pk: int | None = None) -> DeletionJob | None:
    """Claim an open job that no live process has; any, or the one with the key."""
    free = Q(lease_until=None) | Q(lease_until__lt=Now())
    jobs = DeletionJob.objects.filter(free, status=Status.OPEN)
    if pk is not None:
        jobs = jobs.filter(pk=pk)
    for job in jobs.order_by("purpose", "pk"):
        claimed = jobs.filter(pk=job.pk, fence=job.fence).update(
            fence=F("fence") + 1, lease_until=db_time_from_now(LEASE_SECONDS)
        )
        if claimed:
            job.refresh_from_db()
            return job
    return None


def stop_job(job: DeletionJob, *, by: User | None) -> bool:
    """End an open job after its current batch; False if it has ended."""
    with transaction.atomic():
        rows = DeletionJob.objects.select_for_update().filter(
            pk=job.pk, status=Status.OPEN
        )
        if (found := rows.first()) is None:
            return False
        end_job(found, Status.STOPPED, by=by)
    return True


def stop_prune_jobs(*, before: datetime, by: User | None) -> None:
    """End open jobs that apply the rules and were created before a time."""
    jobs = DeletionJob.objects.filter(purpose=Purpose.RULES, status=Status.OPEN)
    for job in jobs.filter(created_at__lt=before):
        stop_job(job, by=by)


def sleep_and_continue(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def run_job(
    job: DeletionJob,
    *,
    pause: Callable[[float], bool] = sleep_and_continue,
    report: Callable[[DeletionJob], None] = lambda job: None,
    stages: list[OpenStage] | None = None,
) -> bool:
    """Carry out a claimed job; return whether it is done.

    `pause` waits so many seconds and returns whether to stop; the job then stays open
    for another process. A batch that fails is tried again later. The `stages` are by
    default those of the retention rules.
    """
    if stages is None:
        rules = RetentionRules.model_validate(job.rules)
        stages = list_rule_stages(rules, job.created_at)
    try:
        while job.stage < len(stages):
            run_batch = stages[job.stage]()
            is_last = False
            while not is_last:
                began = time.monotonic()
                batch = commit_batch(job, run_batch)
                is_last = batch.is_last
                report(job)
                took = time.monotonic() - began
                rest = min(took * PAUSES_PER_BATCH, MAX_PAUSE_SECONDS)
                if pause(max(rest, batch.wait)):
                    release_job(job)
                    return False
        with transaction.atomic():
            end_job(lock_claimed_job(job), Status.DONE, by=job.by)
    except JobLost:
        return False
    except Exception as error:
        note_problem(job, error)
        raise
    job.refresh_from_db()
    return True


def commit_batch(
    job: DeletionJob, run_batch: Callable[[int], RetentionBatch]
) -> RetentionBatch:
    """Run a batch and note in the same transaction what it did; update `job`."""
    with transaction.atomic():
        row = lock_claimed_job(job)
        batch = run_batch(row.position)
        row.counts = dict(Counter(row.counts) + Counter(batch.counts))
        row.position = 0 if batch.is_last else batch.position
        row.stage += batch.is_last
        row.problem = ""
        columns = ["counts", "position", "stage", "problem"]
        row.save(update_fields=columns)
        DeletionJob.objects.filter(pk=row.pk).update(
            lease_until=db_time_from_now(LEASE_SECONDS)
        )
    for column in columns:
        setattr(job, column, getattr(row, column))
    return batch


def lock_claimed_job(job: DeletionJob) -> DeletionJob:
    """Return the locked row of a job that this process still has; raise `JobLost`."""
    rows = DeletionJob.objects.select_for_update(of=("self",))
    row = rows.filter(pk=job.pk, fence=job.fence, status=Status.OPEN).first()
    if row is None:
        raise JobLost
    return row


def release_job(job: DeletionJob) -> None:
    """Let another process continue the job at once."""
    mine = DeletionJob.objects.filter(pk=job.pk, fence=job.fence, status=Status.OPEN)
    mine.update(lease_until=None)


def note_problem(job: DeletionJob, error: Exception) -> None:
    """Show on the page why the job does not continue, and try again later."""
    mine = DeletionJob.objects.filter(pk=job.pk, fence=job.fence, status=Status.OPEN)
    mine.update(
        problem=f"{type(error).__name__}: {error}"[:500],
        lease_until=db_time_from_now(RETRY_SECONDS),
    )


def end_job(job: DeletionJob, status: str, *, by: User | None) -> None:
    """End a locked job and write what it deleted to the audit log."""
    job.status, job.ended_at, job.lease_until = status, timezone.now(), None
    job.save(update_fields=["status", "ended_at", "lease_until"])
    if job.total or not job.is_daily:
        write_entry(
            "pruned" if job.purpose == Purpose.RULES else "erased",
            "deletion job",
            job,
            by=by,
            changes={
                noun: [count, 0] for noun, count in sorted(job.counts.items()) if count
            },
            note=describe_job(job),
        )


def describe_job(job: DeletionJob) -> str:
    """Return the rules that a job applied, or whom it erased."""
    if job.purpose == Purpose.PERSON:
        return f"user #{job.person_number}"
    rules = RetentionRules.model_validate(job.rules)
    agents = {f"agent #{pk}": days for pk, days in rules.agents.items() if days}
    parts = {**rules.days, **agents}.items()
    return "; ".join(f"{name}: {days} days" for name, days in parts)
