"""Runs while a million old ones are pruned: `python -m tests.bench.bench_retention`.

A private PostgreSQL is filled by SQL. Then runs start at a steady rate, in windows with
pruning and without in turns, as the machine may be busy otherwise. A worker carries out
the job as it does in production. Exits 1 if pruning raises the 95th percentile of the
time from the request to the end of a run by more than the limit.
"""

import argparse
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from tests.bench.servers.site import Site, private_servers, running_site

MAX_RATIO = 1.2
RATE = 20.0
AGENT = "mock-k5-l0"

RUNS = """
INSERT INTO runs_run (owner_id, agent_id, spec_id, source, is_test, title, inputs,
  turn_ids, status, stop_reason, error_code, error_message, output, output_log, seq,
  next_index, next_number, fence, recoveries, created_at, queued_at, started_at,
  ended_at, rounds, model_calls, input_tokens, output_tokens, cost, indexed, fork_edits)
SELECT r.owner_id, r.agent_id, r.spec_id, 'page', false, 'Question ' || n,
  jsonb_build_object('input', 'Question ' || n), '[]', 'succeeded', '', '', '',
  to_jsonb('The answer is ' || md5(n::text)), '', 9, 2, 3, 1, 0, at, at, at,
  at + interval '9 seconds', 3, 3, 900, 90, 0.01, true, '[]'
FROM generate_series(1, {runs}) n,
  (SELECT owner_id, agent_id, spec_id FROM runs_run ORDER BY id LIMIT 1) r,
  LATERAL (SELECT now() - interval '90 days' + n * interval '2 seconds' AS at) t
"""
CALLS = """
INSERT INTO runs_modelcall (run_id, number, purpose, at_index, round, reply, settings,
  model, digest, left_out, input_tokens, cached_tokens, output_tokens, reasoning_tokens,
  cost, started_at, elapsed, is_copied, is_edited, created_seq, changed_seq)
SELECT id, n, 'plan', n, n + 1, jsonb_build_object('text', repeat(md5(id::text), 10)),
  '{{}}', 'm', repeat('0', 64), '[]', 300, 0, 30, 0, 0.003, started_at, 1, false, false,
  n + 1, n + 1
FROM runs_run, generate_series(0, 2) n WHERE ended_at < now() - interval '1 day'
"""
STEPS = """
INSERT INTO runs_agentstep (run_id, index, model_call_id, round, tool, tool_input, log,
  call_id, effect, status, observation, attempts, is_copied, is_edited, created_seq,
  changed_seq)
SELECT run_id, number, id, round, 'add', '{{"a": 1}}', '', 'c', 'read', 'succeeded',
  repeat(digest, 5), 1, false, false, created_seq, changed_seq
FROM runs_modelcall WHERE number < 2 AND digest = repeat('0', 64)
"""
SEARCH_ROWS = """
INSERT INTO runs_runsearchrow (run_id, text, status, ended_at, seconds, rounds, tokens,
  cost)
SELECT id, lower(title), status, ended_at, 9, rounds, 990, cost FROM runs_run
WHERE ended_at < now() - interval '1 day'
"""
STATS = """
INSERT INTO runs_dailyrunstats (day, agent_id, owner_id, status, runs, tokens, cost)
SELECT (ended_at AT TIME ZONE 'UTC')::date, agent_id, owner_id, status, count(*),
  sum(990), sum(cost)
FROM runs_run WHERE ended_at < now() - interval '1 day' GROUP BY 1, 2, 3, 4
"""
START_JOB = """
INSERT INTO runs_deletionjob (purpose, status, is_daily, rules, created_at, fence,
  stage, position, counts, problem)
VALUES ('rules', 'open', false, '{"days": {"succeeded_runs": 30}, "agents": {}}', now(),
  0, 0, 0, '{}', '')
"""
STOP_JOBS = """
UPDATE runs_deletionjob SET status = 'stopped', ended_at = now(), lease_until = NULL
WHERE status = 'open'
"""


def main() -> int:
    """Fill, measure in turns, print; return 1 if the limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--windows", type=int, default=4, help="of each kind")
    parser.add_argument("--seconds", type=float, default=30, help="of a window")
    parser.add_argument("--rate", type=float, default=RATE, help="runs per second")
    asked = parser.parse_args()
    found: dict[bool, list[float]] = {False: [], True: []}
    with private_servers() as servers, running_site(servers) as site:
        fill(site, asked.runs)
        load(site, rate=asked.rate, seconds=10)
        for turn in range(2 * asked.windows):
            prunes = bool(turn % 2)
            before = start_pruning(site) if prunes else 0
            times = load(site, rate=asked.rate, seconds=asked.seconds)
            found[prunes].append(p95(times))
            pruned = count_runs_left(site, before) if prunes else 0
            site.database.execute(STOP_JOBS)
            sys.stdout.write(
                f"{'pruning' if prunes else 'quiet':8} p95 {p95(times):6.0f} ms, "
                f"median {statistics.median(times):6.0f} ms, {len(times)} runs"
                + (
                    f", {pruned / asked.seconds:.0f} pruned per second"
                    if pruned
                    else ""
                )
                + "\n"
            )
            sys.stdout.flush()
    ratios = [on / off for on, off in zip(found[True], found[False], strict=True)]
    ratio = statistics.median(ratios)
    sys.stdout.write(
        f"p95 while pruning / without, median of {len(ratios)} pairs: {ratio:.2f} "
        f"(must {MAX_RATIO})\n"
    )
    return int(ratio > MAX_RATIO)


def fill(site: Site, runs: int) -> None:
    """Write old runs with three calls and two steps each."""
    for statement in (RUNS, CALLS, STEPS, SEARCH_ROWS, STATS):
        site.database.execute(statement.format(runs=runs))
    site.database.execute("VACUUM ANALYZE")
    site.database.execute("CHECKPOINT")


def start_pruning(site: Site) -> int:
    """Wait until a worker has a new job; return how many old runs there are."""
    before = count_old_runs(site)
    site.database.execute(START_JOB)
    until = time.monotonic() + 60
    while count_old_runs(site) == before:
        assert time.monotonic() < until, "No worker began to prune."
        time.sleep(0.2)
    return count_old_runs(site)


def count_runs_left(site: Site, before: int) -> int:
    """Return how many old runs are gone since."""
    return before - count_old_runs(site)


def count_old_runs(site: Site) -> int:
    query = (
        "SELECT sum(runs - pruned) FROM runs_dailyrunstats "
        "WHERE day < now() - interval '2 days'"
    )
    row = site.database.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def load(site: Site, *, rate: float, seconds: float) -> list[float]:
    """Start runs at a steady rate; return the milliseconds that each took."""
    began, started = time.monotonic(), []
    with ThreadPoolExecutor(32) as pool:
        for number in range(int(rate * seconds)):
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
            started.append(pool.submit(site.start, AGENT))
        runs = [each.result() for each in started]
    site.wait(runs)
    query = (
        "SELECT extract(epoch FROM ended_at - created_at) * 1000 FROM runs_run "
        "WHERE id = ANY(%s)"
    )
    return [float(row[0]) for row in site.database.execute(query, [runs])]


def p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]


if __name__ == "__main__":
    sys.exit(main())
