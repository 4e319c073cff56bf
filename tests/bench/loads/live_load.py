"""The load of the live bench: runs, and commits as a worker makes them."""

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import django
from django.db import connection, transaction
from django.db.models import F, Model
from django.utils import timezone

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
    django.setup()

from runs import redis_streams as stream
from runs.models import AgentStep, ModelCall, Run
from runs.services.accounts.tokens import create_token
from tests.make import make_agent, make_run, make_user


def prepare(count: int) -> tuple[list[int], dict[str, str]]:
    """Make running runs of one person; return them and the headers that open them."""
    ann = make_user()
    agent = make_agent(ann)
    runs = [make_run(ann, agent=agent, status="running").pk for _ in range(count)]
    headers = {"Authorization": f"Bearer {create_token(ann)}"}
    connection.close()
    return runs, headers


WRITERS = 4
"""Threads that commit, because one that waits for the disk reaches no high rate."""

Commits = list[tuple[int, int, float]]
"""(run, index, when it was committed)."""


def commit(run_ids: list[int], *, rate: float, seconds: float) -> Commits:
    """Commit one step after another, `rate` a second, then end every run."""
    shares = [[Run(pk=pk) for pk in run_ids[n::WRITERS]] for n in range(WRITERS)]

    def write(runs: list[Run]) -> Commits:
        return commit_share(runs, rate=rate / WRITERS, seconds=seconds)

    with ThreadPoolExecutor(WRITERS) as pool:
        commits = [one for each in pool.map(write, shares) for one in each]
    time.sleep(0.5)  # the sending thread is a daemon
    return commits


def commit_share(runs: list[Run], *, rate: float, seconds: float) -> Commits:
    """Do one writer's part."""
    commits = []
    began, number = time.time(), 0
    while (passed := time.time() - began) < seconds:
        if number > passed * rate:
            time.sleep(0.001)
            continue
        run, index = runs[number % len(runs)], number // len(runs)
        commit_step(run, index)
        commits.append((run.pk, index, time.time()))
        number += 1
    for run in runs:
        end(run)
    connection.close()
    return commits


def commit_step(run: Run, index: int) -> None:
    """Commit a call with its answered step, in the order a worker writes."""
    now = timezone.now()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE runs_run SET seq = seq + 1, next_index = %s, next_number = %s, "
            "rounds = %s WHERE id = %s AND fence = 1 AND status = 'running' "
            "RETURNING seq",
            [index + 1, index + 1, index + 1, run.pk],
        )
        seq = cursor.fetchone()[0]
        call = ModelCall(
            run=run,
            number=index,
            at_index=index,
            round=index + 1,
            reply={
                "text": "I look it up.",
                "tool_calls": [{"id": "c1", "name": "look", "arguments": "{}"}],
            },
            digest="0" * 64,
            started_at=now,
            elapsed=0.01,
            created_seq=seq,
            changed_seq=seq,
        )
        call.pk = insert(cursor, call)
        step = AgentStep(
            run=run,
            index=index,
            model_call=call,
            round=index + 1,
            tool="look",
            tool_input={"number": index},
            status="succeeded",
            observation=f"result-of-{index}.",
            started_at=now,
            duration=0.01,
            created_seq=seq,
            changed_seq=seq,
        )
        insert(cursor, step)
    stream.publish_run_notice(run.pk, seq)


def insert(cursor: Any, row: Model) -> int:
    """Insert a row with little of Django's own work; return its id."""
    meta = row._meta
    fields = [field for field in meta.concrete_fields if not field.primary_key]
    names = ", ".join(f'"{field.column}"' for field in fields)
    holes = ", ".join(["%s"] * len(fields))
    values = [
        field.get_db_prep_save(getattr(row, field.attname), connection)
        for field in fields
    ]
    cursor.execute(
        f"INSERT INTO {meta.db_table} ({names}) VALUES ({holes}) RETURNING id", values
    )
    return int(cursor.fetchone()[0])


def end(run: Run) -> None:
    """Commit the end of a run."""
    Run.objects.filter(pk=run.pk).update(
        seq=F("seq") + 1,
        status="succeeded",
        lease_until=None,
        ended_at=timezone.now(),
        output="done",
    )
    stream.publish_run_notice(run.pk, 0)


if __name__ == "__main__":
    rate, seconds, *ids = sys.argv[1:]
    sys.stdin.readline()
    done = commit([int(pk) for pk in ids], rate=float(rate), seconds=float(seconds))
    sys.stdout.write(json.dumps(done))
