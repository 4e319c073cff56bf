"""A million runs in lists and on the home page: `python -m tests.bench.bench_lists`.

A private PostgreSQL is filled by SQL, which takes some minutes, and a web server is
asked for the pages over HTTP, as a member, who has a twentieth of the runs, and as an
administrator, who sees all. Exits 1 if the median of a page is over what it must reach.
"""

import argparse
import importlib
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import django
import psycopg

from tests.bench.bench_run_page import Site, read, server, wait_for
from tests.bench.servers.site import private_servers
from tests.support.servers import free_port

LIST_MS, HOME_MS, TOOLS_MS = (300, 150), (200, 100), (400, 200)
"""What must be reached, and the goal."""
ADMINISTRATOR_ONLY = ("user=4", "/edit/", "/library/?agent=1")
TIMES = 7
PEOPLE, AGENTS, USED_TOOLS = 20, 200, 500

RUNS = """
INSERT INTO runs_run (id, owner_id, agent_id, version_id, spec_id, source, is_test,
  title, inputs, turn_ids, status, stop_reason, error_code, error_message, output,
  output_log, seq, next_index, next_number, fence, recoveries, created_at, queued_at,
  started_at, ended_at, rounds, model_calls, input_tokens, output_tokens, cost, indexed,
  fork_edits, rating)
SELECT n, 1 + n %% {people}, 1 + dice %% {agents},
  CASE n %% 3 WHEN 0 THEN 1 + dice %% {agents} END, 1 + dice %% {agents},
  CASE n %% 50 WHEN 7 THEN 'schedule' ELSE 'page' END,
  n %% 11 = 0 OR n > {runs} - {tests}, words,
  jsonb_build_object('input', words), '[]', s.status,
  CASE s.status WHEN 'limit_reached' THEN 'iterations' ELSE '' END,
  CASE s.status WHEN 'failed' THEN 'overloaded' ELSE '' END,
  CASE s.status WHEN 'failed' THEN 'The server is overloaded.' ELSE '' END,
  to_jsonb('The answer is ' || md5((n * 7)::text)), '', 9, 3, 4, 1, 0, at, at, at,
  at + n %% 300 * interval '1 second', 4, 4, n %% 50000, n %% 900, n %% 1000 * 0.0001,
  true, '[]', CASE WHEN n %% 40 = 3 THEN 1 WHEN n %% 200 = 4 THEN -1 END
FROM (SELECT n, abs(hashint4(n)) AS dice,
             'Question ' || n || ' about ' || md5(n::text) AS words,
             now() - ({runs} - n) * interval '2.6 seconds' AS at
      FROM generate_series(1, {runs}) n) r,
LATERAL (SELECT CASE WHEN n %% 50 = 0 THEN 'failed' WHEN n %% 77 = 0
  THEN 'limit_reached'
         WHEN n %% 90 = 0 THEN 'canceled' ELSE 'succeeded' END AS status) s
"""
SEARCH_ROWS = """
INSERT INTO runs_runsearchrow (run_id, text, status, ended_at, seconds, rounds,
  tokens, cost)
SELECT id, lower(title || E'\\n' || (output #>> '{{}}')), status, ended_at, id %% 300,
  rounds, input_tokens + output_tokens, cost FROM runs_run
"""
DAILY_STATS = """
INSERT INTO runs_dailyrunstats (day, agent_id, owner_id, status, runs, tokens, cost)
SELECT ended_at::date, agent_id, owner_id, status, count(*),
  sum(input_tokens + output_tokens), sum(cost) FROM runs_run GROUP BY 1, 2, 3, 4
"""
TOOLS = """
INSERT INTO runs_runtool (run_id, tool, has_failed)
SELECT id, CASE WHEN id %% 5000 = 0 THEN 'refund' WHEN id %% 3 = 0 THEN 'weather'
  ELSE 'search' END, id %% 25 = 0 FROM runs_run
"""
TAGS = """
INSERT INTO runs_runtag (run_id, name)
SELECT id, CASE WHEN id %% 5000 = 0 THEN 'rare' ELSE 'usual' END
FROM runs_run WHERE id %% 20 = 0
"""
TOOL_USAGE = """
INSERT INTO tools_toolusage (tool_id, hour, calls, failures, ms)
SELECT id, date_trunc('hour', now()) - n * interval '1 hour', 10 + n %% 7,
  CASE WHEN id %% 9 = 0 THEN 3 ELSE 0 END, 1000
FROM tools_tool, generate_series(0, 719) n
"""


def main() -> int:
    """Fill, ask, print; return 1 where a page is too slow."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument(
        "--tests", type=int, default=0, help="so many of the newest runs are tests"
    )
    parser.add_argument("--keep", action="store_true", help="wait for Enter at the end")
    request = parser.parse_args()
    with private_servers() as servers:
        os.environ.update(servers, AGENTSITE_LOG_LEVEL="WARNING")
        os.environ["DJANGO_SETTINGS_MODULE"] = "agentsite.settings"
        subprocess.run([sys.executable, "manage.py", "migrate", "-v", "0"], check=True)
        django.setup()
        cookies = importlib.import_module("tests.bench.loads.lists_site").prepare(
            people=PEOPLE, agents=AGENTS, tools=USED_TOOLS
        )
        fill(servers["DATABASE_URL"], request.runs, tests=request.tests)
        port = free_port()
        with server(port) as pid:
            sites = {who: Site(port, pid, cookie) for who, cookie in cookies.items()}
            wait_for(sites["member"])
            slow = measure(sites, request.runs)
            if request.keep:
                input(f"{servers['DATABASE_URL']} port {port} {cookies} ")
    return int(slow > 0)


def measure(sites: dict[str, Site], runs: int) -> int:
    """Print the median of each page as each person sees it; return how many miss."""
    head = "".join(f"{who:>15}" for who in sites)
    sys.stdout.write(f"{f'ms, {runs:,} runs':40}{'must':>6}{'goal':>6}{head}\n")
    slow = 0
    for title, path in pages(runs).items():
        targets = find_targets(title)
        took = [
            1000 * read(site, path, times=TIMES).median
            for who, site in sites.items()
            if who == "administrator" or not path.endswith(ADMINISTRATOR_ONLY)
        ]
        missed = targets is not None and max(took) > targets[0]
        slow += missed
        wanted = "".join(f"{one:6}" for one in targets or ("", ""))
        figures = "".join(f"{one:15.0f}" for one in took)
        note = "  MISSED" if missed else ""
        sys.stdout.write(f"{title:40}{wanted}{figures:>30}{note}\n")
        sys.stdout.flush()
    return slow


def find_targets(title: str) -> tuple[int, int] | None:
    """Return what the median must reach, and the goal.

    None for figures: the page requests them after it has shown the list.
    """
    if title.startswith("figures"):
        return None
    if title.startswith("home"):
        return HOME_MS
    return TOOLS_MS if title.startswith(("tools", "agents", "agent page")) else LIST_MS


def fill(url: str, runs: int, *, tests: int) -> None:
    """Write the rows of all tables, and let the planner look at them."""
    with psycopg.connect(url, autocommit=True) as database:
        database.execute("SET session_replication_role = replica")  # checks no keys
        for statement in (RUNS, SEARCH_ROWS, TOOLS, TAGS, DAILY_STATS, TOOL_USAGE):
            text = statement.format(
                people=PEOPLE, agents=AGENTS, runs=runs, tests=tests
            )
            database.execute(text.replace("%%", "%"))
        database.execute("SELECT setval('runs_run_id_seq', %s)", [runs])
        importlib.import_module("tests.bench.loads.lists_site").count_runs()
        database.execute("VACUUM ANALYZE")


def pages(runs: int) -> dict[str, str]:
    """Return what is asked for, by its title."""
    middle = runs // 2
    day = (datetime.now(UTC) - timedelta(days=28)).date()
    return {
        "all runs": "/runs/",
        "all runs, the middle": f"/runs/?before={middle}",
        "failed": "/runs/?status=failed",
        "needs me (none)": "/runs/?status=needs",
        "an agent": "/runs/?agent=3",
        "an agent, failed": "/runs/?agent=3&status=failed",
        "a person": "/runs/?user=4",
        "with test runs": "/runs/?tests=with",
        "a model": "/runs/?model=model-7",
        "a model no run had": "/runs/?model=none",
        "rated bad": "/runs/?rating=bad",
        "not rated": "/runs/?rating=none",
        "a rare tag": "/runs/?tag=rare",
        "two tags": "/runs/?tag=rare,usual",
        "an error": "/runs/?error=overloaded",
        "an error no run had": "/runs/?error=timeout",
        "a source": "/runs/?source=schedule",
        "a version of an agent": "/runs/?agent=3&version=1",
        "last 24 hours": "/runs/?since=1d",
        "a week two weeks ago": "/runs/?since=30d&end=2000-01-01",
        "a day four weeks ago": f"/runs/?begin={day}&end={day}",
        "a rare tool": "/runs/?tool=refund",
        "a usual tool": "/runs/?tool=search",
        "a failed tool": "/runs/?failed_tool=search",
        "cost at least $0.09": "/runs/?cost=0.09",
        "longer than 290 s": "/runs/?seconds=290",
        "longer than a day (none)": "/runs/?seconds=86400",
        "sorted by cost": "/runs/?sort=cost",
        "sorted by time, an agent": "/runs/?sort=seconds&agent=3",
        "sorted by tokens, failed": "/runs/?sort=tokens&status=failed",
        "sorted by time, canceled, a tool (none)": (
            "/runs/?sort=seconds&status=canceled&tool=search"
        ),
        "a rare word": f"/runs/?q=question+{middle}+about",
        "a usual word": "/runs/?q=answer",
        "a word nobody said": "/runs/?q=zebracrossing",
        "two letters": "/runs/?q=zz",
        "a word, failed, an agent": "/runs/?q=abc&status=failed&agent=3",
        "tests only": "/runs/?tests=only",
        "figures of all runs": "/runs/figures/",
        "figures of tests only": "/runs/figures/?tests=only",
        "figures of a usual word": "/runs/figures/?q=answer",
        "figures of a week": "/runs/figures/?since=7d",
        "search of everything": "/search/?q=about",
        "search of everything, a number": f"/search/?q={middle}",
        "figures of a day": f"/runs/figures/?begin={day}&end={day}",
        "home": "/",
        "home, 24 hours": "/?range=24h",
        "home, 30 days": "/?range=30d",
        "home, with test runs": "/?tests=1",
        "home, recent runs": "/home/runs/",
        f"tools, {USED_TOOLS}": "/tools/",
        f"tools, {USED_TOOLS}, by calls": "/tools/?sort=calls",
        f"tools, {USED_TOOLS}, by failures": "/tools/?sort=failed",
        f"tools, {USED_TOOLS}, failing": "/tools/?usage=failing",
        f"agents, {AGENTS}": "/agents/",
        f"agent page, {USED_TOOLS} tools": "/agents/1/",
        "agent page, edit": "/agents/1/edit/",
        "agent page, dialog of tools": "/agents/library/?agent=1",
    }


if __name__ == "__main__":
    sys.exit(main())
