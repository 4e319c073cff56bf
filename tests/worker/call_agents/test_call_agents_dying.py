"""A worker killed after any commit of a caller or its children: one child a call."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

from runs.models import Run
from runs.store.claims import worker_state
from runs.worker.execute_run import execute_run
from tests.fakes.model_server import model_server
from tests.worker.family import caller_of, children_of, sound
from tests.worker.run_parts import agent_on, call, calls, started

pytestmark = pytest.mark.django_db(transaction=True)

MOST_COMMITS = 100
WRITES = ("WITH", "UPDATE", "INSERT")


class KillNine(BaseException):
    """The process is gone: nothing after the commit happens."""


@contextmanager
def killed_after(commits: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """End what runs inside at once after its `commits`-th commit."""
    left, commit = [commits], BaseDatabaseWrapper._commit
    run_statement = psycopg.Cursor.execute

    def count() -> None:
        left[0] -= 1
        if left[0] == 0:
            raise KillNine

    def dying(self: BaseDatabaseWrapper) -> None:
        commit(self)
        if left[0] == 1:
            self.run_on_commit = []
        count()

    def dying_alone(self: Any, query: Any, *given: Any, **more: Any) -> Any:
        """A statement outside of a transaction is one by itself, on PostgreSQL."""
        done = run_statement(self, query, *given, **more)
        text = query if isinstance(query, str) else query.decode()
        if self.connection.autocommit and text.lstrip().startswith(WRITES):
            count()
        return done

    with monkeypatch.context() as patch:
        patch.setattr(BaseDatabaseWrapper, "_commit", dying)
        patch.setattr(psycopg.Cursor, "execute", dying_alone)
        yield


def work_off(root: Run) -> None:
    """Execute whatever can be claimed, as a worker does, until `root` is over."""
    for _ in range(60):
        root.refresh_from_db()
        if root.is_over:
            return
        for run in Run.objects.filter(status__in=["queued", "running"]).order_by("pk"):
            execute_run(run.pk)


def crash(root: Run, commits: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Work until the given commit; whether the worker got that far and died there."""
    try:
        with killed_after(commits, monkeypatch):
            work_off(root)
    except KillNine:
        worker_state.claims.clear()
        Run.objects.filter(status="running").update(lease_until="2020-01-01T00:00:00Z")
        return True
    return False


@pytest.mark.slow
def test_after_any_commit_the_next_worker_goes_on_with_the_same_child(monkeypatch):
    both = calls(call("scout", id="a", input="x"), call("scout", id="b", input="y"))
    with model_server() as below, model_server() as above:
        caller = caller_of(above, agent_on(below, slug="scout"), names=("add",))
        for commits in range(1, MOST_COMMITS):
            below.script, above.script = ["Seen."] * 4, [both, "Done."]
            run = started(caller)
            died = crash(run, commits, monkeypatch)
            sound()
            run.refresh_from_db()  # a reply that was not committed is asked for again
            above.script = [both, "Done."][run.next_number :]
            work_off(run)

            assert (run.status, run.output) == ("succeeded", "Done."), commits
            assert len(children_of(run)) == 2
            assert [s.attempts for s in run.steps.all()] == [1, 1]
            sound()
            if not died:
                break
    assert 10 < commits < MOST_COMMITS - 1
