"""Commits to a run as its worker would: `python -m tests.browser.driver.push`."""

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
django.setup()

from django.utils import timezone  # noqa: E402  # after the set-up

from runs.models import AgentStep, Run  # noqa: E402
from tests.bench.loads.run_page_load import commit_round  # noqa: E402


def main(run_id: int, what: str, count: int) -> None:
    """Commit `count` rounds, or the outcome of the step that runs."""
    if what == "rounds":
        for number in range(count):
            commit_round(run_id, number)
    else:
        commit_outcome(run_id)


def commit_outcome(run_id: int) -> None:
    """Store what the running step has found."""
    run = Run.objects.get(pk=run_id)
    run.seq += 1
    AgentStep.objects.filter(run=run, status="started").update(
        status="succeeded",
        observation="It was found at last.",
        ended_at=timezone.now(),
        duration=2.0,
        changed_seq=run.seq,
    )
    Run.objects.filter(pk=run_id).update(seq=run.seq)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int((sys.argv[3:] or ["1"])[0]))
