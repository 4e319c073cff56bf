"""Ended runs and conversations of some age, with a row in every table of theirs."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from runs.models import (
    Allowance,
    Conversation,
    IdempotencyKey,
    Resume,
    RetentionRule,
    Run,
    RunShare,
    RunTag,
    StepMedia,
)
from runs.services.retention.jobs import claim_job, create_prune_job, run_job
from runs.services.search.index_runs import index_runs
from tests.make import (
    make_attempt,
    make_call,
    make_decision,
    make_delivery,
    make_run,
    make_step,
    make_webhook,
)


def set_rules(**days: int) -> None:
    RetentionRule.objects.all().delete()
    for kind, count in days.items():
        RetentionRule.objects.create(kind=kind, days=count)


def prune() -> dict[str, int]:
    """Apply the rules now, without pauses; return what was deleted."""
    job = create_prune_job()
    claimed = claim_job(job.pk)
    assert claimed is not None
    assert run_job(claimed, pause=lambda seconds: False)
    counts: dict[str, int] = claimed.counts
    return counts


def make_old_run(
    *args: Any, days: float = 40, indexed: bool = True, **fields: Any
) -> Run:
    """Make a run that ended `days` ago, indexed as a worker does."""
    fields = {"status": "succeeded", **fields}
    run = age(make_run(*args, **fields), days)
    if indexed:
        index_runs()
        run.refresh_from_db()
    return run


def age(row: Any, days: float) -> Any:
    """Let a run or conversation be `days` old."""
    at = timezone.now() - timedelta(days=days)
    times = {"created_at": at}
    if isinstance(row, Run) and row.ended_at:
        times |= {"queued_at": at, "started_at": at, "ended_at": at}
    type(row).objects.filter(pk=row.pk).update(**times)
    row.refresh_from_db()
    return row


def make_conversation(days: float = 40, **fields: Any) -> Conversation:
    """Make a conversation without runs."""
    if root := fields.get("root"):
        fields |= {"owner": root.owner, "agent": root.agent, "branch_of": root}
    return age(Conversation.objects.create(**fields), days)


def fill(run: Run) -> Run:
    """Give a run a row in every table that belongs to runs."""
    make_attempt(run)
    step = make_step(run, call=make_call(run))
    make_decision(step)
    StepMedia.objects.create(step=step, position=1, media_type="image/png", content=b"")
    Allowance.objects.create(run=run, tool="calculator", by=run.owner)
    Resume.objects.create(run=run, at_index=0, at_number=0)
    IdempotencyKey.objects.create(user=run.owner, key=f"k{run.pk}", run=run)
    RunShare.objects.create(
        run=run, digest=f"{run.pk}", by=run.owner, expires_at=timezone.now()
    )
    RunTag.objects.create(run=run, name="old")
    make_delivery(make_webhook(run.owner), run, status="delivered")
    return run
