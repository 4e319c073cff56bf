"""What every page tells its person: questions that wait, and how the workers are."""

import asyncio

import pytest
from django.contrib.auth.models import Group

from runs.live import nav_updates as people_module
from runs.live.auth import Person
from runs.live.nav_updates import count_open_approvals
from runs.live.page_renderer import PageRenderer
from runs.services.approvals.answer import reject_step
from tests.live.hub_parts import running_hub
from tests.make import make_decision, make_run, make_step, make_user, make_worker
from tests.support.threads import in_thread

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("redis_url"),
]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(people_module, "POLL_SECONDS", 0.05)


def asking(owner, **fields):
    """Make an open question of a run of `owner`."""
    run = make_run(owner, status="awaiting_approval")
    return make_decision(make_step(run, status="awaiting_approval"), **fields)


async def sentence(viewer, text):
    """Return what a page is sent until `text` is in it."""
    sent = ""
    async with asyncio.timeout(60):
        async for message in viewer.messages():
            sent += message.decode()
            if text in sent:
                return sent


def test_counts_for_owners_groups_and_superusers():
    ann, bob = make_user("ann"), make_user("bob")
    billing = Group.objects.create(name="billing")
    asking(ann)
    asking(ann, approvers=billing)
    asking(bob)
    asking(ann, answer="approved", at="2026-01-01T00:00:00Z")
    needs = count_open_approvals()

    assert needs.count_for(Person(ann.pk)) == 1
    assert needs.count_for(Person(bob.pk, groups=frozenset({billing.pk}))) == 2
    assert needs.count_for(Person(99, is_superuser=True)) == 3
    assert needs.count_for(Person(99)) == 0


def test_a_decision_that_requires_a_second_person_does_not_count_for_the_owner():
    ann, billing = make_user("ann"), Group.objects.create(name="billing")
    members = frozenset({billing.pk})
    asking(ann, approvers=billing, second_person=True)
    asking(ann, second_person=True)
    needs = count_open_approvals()

    assert needs.count_for(Person(ann.pk, groups=members)) == 0
    assert needs.count_for(Person(ann.pk, is_superuser=True)) == 0
    assert needs.count_for(Person(99, groups=members)) == 1
    assert needs.count_for(Person(99, is_superuser=True)) == 2


def test_a_page_changes_when_a_question_comes_and_when_it_is_answered():
    ann = make_user("ann")

    async def scene():
        async with running_hub() as hub:
            viewer = hub.subscribe_person(Person(ann.pk), in_inbox=False)
            await sentence(viewer, 'id="part-needs"></span>')
            question = await in_thread(asking, ann)
            await sentence(viewer, "1 approval needs your attention")
            await in_thread(reject_step, question, by=ann)
            sent = await sentence(viewer, 'id="part-needs"></span>')
            hub.unsubscribe(viewer)
            return sent

    assert 'hx-target="#part-needs-tab"' in asyncio.run(scene())


def test_a_run_page_receives_changes_on_its_own_stream():
    ann = make_user("ann")
    run = make_run(ann, status="running")

    async def scene():
        async with running_hub() as hub:
            viewer = hub.subscribe(
                PageRenderer(), run.pk, after=0, person=Person(ann.pk)
            )
            watching = asyncio.create_task(
                sentence(viewer, "1 approval needs your attention")
            )
            await in_thread(asking, ann)
            await watching
            hub.unsubscribe(viewer)

    asyncio.run(scene())


def test_the_inbox_loads_its_list_and_numbers_anew_and_other_pages_do_not():
    ann = make_user("ann")

    async def scene():
        async with running_hub() as hub:
            inbox = hub.subscribe_person(Person(ann.pk), in_inbox=True)
            other = hub.subscribe_person(Person(ann.pk), in_inbox=False)
            first = await sentence(inbox, 'id="part-needs"></span>')
            await sentence(other, 'id="part-needs"></span>')
            await in_thread(asking, ann)
            sent = await sentence(inbox, "1 approval needs your attention")
            beside = await sentence(other, "1 approval needs your attention")
            return first, sent, beside

    first, sent, beside = asyncio.run(scene())
    for message in (first, sent):  # the page may be older than its connection
        assert 'hx-target="#approval-list-pulse"' in message
        assert 'hx-target="#approval-head-pulse"' in message
    assert "-pulse" not in beside


def test_a_page_shows_that_a_worker_came():
    async def scene():
        async with running_hub() as hub:
            viewer = hub.subscribe_person(Person(1), in_inbox=False)
            await sentence(viewer, "No worker is running")
            await in_thread(make_worker)
            await sentence(viewer, "1 worker, idle, queue empty")

    asyncio.run(scene())


def test_nobody_looks_while_no_page_is_open(monkeypatch):
    looks = []
    monkeypatch.setattr(people_module, "count_open_approvals", lambda: looks.append(1))

    async def scene():
        async with running_hub():
            await asyncio.sleep(0.3)

    asyncio.run(scene())
    assert looks == []
