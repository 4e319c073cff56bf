"""Invariants of the daily figures."""

from collections.abc import Iterator

from django.db import connection

UTC_DAY = {
    "postgresql": "(found.ended_at AT TIME ZONE 'UTC')::date",
    "sqlite": "date(found.ended_at)",
}


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
