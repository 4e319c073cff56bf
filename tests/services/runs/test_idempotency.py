"""Starting a run once under a client's key."""

import threading

import pytest
from django.db import connection

from runs.models import IdempotencyKey, Run
from runs.services.runs.idempotency import IdempotencyKeyReused, start_run_once
from tests.make import make_run, make_user
from tests.support.threads import at_once


@pytest.mark.django_db
def test_starts_each_time_without_a_key():
    ann = make_user()

    first = start_run_once(lambda: make_run(ann), user=ann, key=None, body_digest="a")
    second = start_run_once(lambda: make_run(ann), user=ann, key=None, body_digest="a")

    assert first.is_new
    assert second.is_new
    assert first.run != second.run


@pytest.mark.django_db
def test_gives_the_same_run_for_the_same_key():
    ann = make_user()

    first = start_run_once(lambda: make_run(ann), user=ann, key="k", body_digest="a")
    second = start_run_once(lambda: make_run(ann), user=ann, key="k", body_digest="a")

    assert (second.run, second.is_new) == (first.run, False)
    assert Run.objects.count() == 1


@pytest.mark.django_db
def test_refuses_another_body_under_the_key():
    ann = make_user()
    start_run_once(lambda: make_run(ann), user=ann, key="k", body_digest="a")

    with pytest.raises(IdempotencyKeyReused):
        start_run_once(lambda: make_run(ann), user=ann, key="k", body_digest="b")

    assert Run.objects.count() == 1


@pytest.mark.django_db
def test_a_key_is_each_users_own():
    ann, bob = make_user(), make_user()

    for user in (ann, bob):
        start_run_once(
            lambda user=user: make_run(user), user=user, key="k", body_digest="a"
        )

    assert Run.objects.count() == 2


@pytest.mark.django_db
def test_a_refused_start_leaves_the_key_free():
    ann = make_user()

    def refuse():
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        start_run_once(refuse, user=ann, key="k", body_digest="a")

    assert start_run_once(
        lambda: make_run(ann), user=ann, key="k", body_digest="b"
    ).is_new


@pytest.mark.django_db(transaction=True)
def test_two_at_the_same_time_make_one_run():
    ann = make_user()
    agent_of = make_run(ann).agent
    both_looked = threading.Barrier(2, timeout=30)
    started = []

    def start():
        # Each has seen no key by now; SQLite lets only one in at a time.
        if connection.vendor == "postgresql":
            both_looked.wait()
        return make_run(ann, agent=agent_of)

    def ask():
        started.append(start_run_once(start, user=ann, key="k", body_digest="a"))

    at_once(ask, ask)

    assert len({found.run.pk for found in started}) == 1
    assert sorted(found.is_new for found in started) == [False, True]
    assert Run.objects.count() == 2
    assert IdempotencyKey.objects.count() == 1
