"""Keeping runs forever."""

import pytest

from runs.models import Run
from runs.services.runs.keep import keep_runs
from tests.make import make_run, make_step
from tools.models import AuditEntry

pytestmark = pytest.mark.django_db


def kept() -> set[int]:
    return set(Run.objects.filter(keep_forever=True).values_list("pk", flat=True))


def test_a_run_is_kept_and_released_with_its_whole_tree():
    parent, other = make_run(status="succeeded"), make_run()
    child = make_run(parent_step=make_step(parent), source="parent")
    grandchild = make_run(parent_step=make_step(child), source="parent")

    assert keep_runs([child, grandchild], keep=True, by=parent.owner) == 1
    assert kept() == {parent.pk, child.pk, grandchild.pk}
    assert keep_runs([other, child], keep=True, by=parent.owner) == 1

    assert keep_runs([grandchild], keep=False, by=parent.owner) == 1
    assert kept() == {other.pk}


def test_the_audit_log_says_who_kept_a_run():
    run = make_run()
    for _ in range(2):
        keep_runs([run], keep=True, by=run.owner)

    entry = AuditEntry.objects.get(noun="run")
    assert (entry.by, entry.thing_number) == (run.owner.username, run.pk)
    assert entry.changes == {"keep_forever": [False, True]}
