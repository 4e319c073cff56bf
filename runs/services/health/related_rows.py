"""Invariants of schedules, deliveries and the daily figures."""

from collections.abc import Iterator

from django.db import connection
from django.db.models import F, Q

from runs.models import Delivery, Run, Schedule, WebhookEvent

UTC_DAY = {
    "postgresql": "(found.ended_at AT TIME ZONE 'UTC')::date",
    "sqlite": "date(found.ended_at)",
}


def runs_fit_their_schedules() -> Iterator[str]:
    """A run of a schedule has its owner and its agent, and was started by it."""
    runs = Run.objects.filter(schedule__isnull=False).exclude(
        owner=F("schedule__owner"), agent=F("schedule__agent"), source="schedule"
    )
    found = runs.values_list("pk", "schedule", "source")
    for pk, schedule, source in found.iterator():
        yield (
            f"run {pk} of schedule {schedule} was started {source}, or for another "
            "owner or agent"
        )
    schedules = Schedule.objects.filter(last_run__isnull=False).exclude(
        last_run__schedule=F("pk")
    )
    for pk, run in schedules.values_list("pk", "last_run"):
        yield f"schedule {pk} has the last run {run}, which is none of its own"


def deliveries_match_their_runs() -> Iterator[str]:
    """Test runs have no deliveries; child runs only those that need a person.

    A delivered delivery had a successful response.
    """
    needs = [WebhookEvent.NEEDS_APPROVAL, WebhookEvent.NEEDS_DECISION]
    silent = Q(run__is_test=True) | Q(run__parent_step__isnull=False) & ~Q(
        event__in=needs
    )
    message = Delivery.objects.filter(silent).values_list("pk", "run_id", "event")
    for pk, run_id, event in message.iterator():
        yield f"delivery {pk} tells {event} of run {run_id}, a test or part of another"
    early = Delivery.objects.filter(seq__gt=F("run__seq"))
    for pk, seq, run_id in early.values_list("pk", "seq", "run_id").iterator():
        yield f"delivery {pk} tells of the seq {seq}, which run {run_id} has not yet"
    taken = Q(
        response_status__gte=200, response_status__lt=300, attempts__gt=0, error=""
    )
    odd = Delivery.objects.filter(~taken, status=Delivery.Status.DELIVERED)
    for pk, answered in odd.values_list("pk", "response_status").iterator():
        yield f"delivery {pk} is delivered, but was answered {answered}"


def daily_stats_match_the_runs() -> Iterator[str]:
    """The daily figures count each indexed run once, and those pruned since.

    Tokens are compared where nothing was pruned.
    """
    sql = f"""
        SELECT day, agent_id, owner_id, status, SUM(runs), SUM(pruned), SUM(tokens)
        FROM (
            SELECT day, agent_id, owner_id, status, runs - pruned AS runs, pruned,
                tokens
            FROM runs_dailyrunstats
            UNION ALL
            SELECT {UTC_DAY[connection.vendor]}, run.agent_id, run.owner_id,
                found.status, -1, 0, -found.tokens
            FROM runs_runsearchrow found JOIN runs_run run ON run.id = found.run_id
        ) counted
        GROUP BY day, agent_id, owner_id, status
        HAVING SUM(runs) <> 0 OR SUM(pruned) = 0 AND SUM(tokens) <> 0
        """  # noqa: S608  (our own words)
    with connection.cursor() as cursor:
        cursor.execute(sql)
        for day, agent, owner, status, runs, _pruned, tokens in cursor.fetchall():
            yield (
                f"the figures of {day}, agent {agent}, user {owner}, {status} "
                f"have {runs} runs and {tokens} tokens too many"
            )
