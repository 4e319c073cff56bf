"""Erasing a person: nothing of them is left in the database or in Redis."""

import os
import subprocess
from io import StringIO

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from runs.models import (
    Agent,
    DailyRunStats,
    DeletionJob,
    Run,
    Schedule,
    Worker,
)
from runs.redis_streams import TEXT_DELTAS, connect_redis
from runs.services.accounts.tokens import create_token
from runs.services.agents.edit_sessions import edit_session
from runs.services.health.related_rows import daily_stats_match_the_runs
from runs.services.retention.erase_person import (
    CannotErase,
    erase_person,
    list_person_stages,
    plan_erasure,
)
from runs.services.retention.jobs import claim_job, run_job
from tests.make import make_agent, make_run, make_tool, make_user, make_version
from tests.makers.experiments import make_revision
from tests.makers.gates import make_gate
from tests.makers.scoring import make_rule
from tests.makers.world import Texts, make_world
from tests.support.postgres import find_initdb
from tools.accounts.save import create_service_account
from tools.audit.actor import act_as
from tools.audit.write import write_entry
from tools.models import AuditEntry, ServiceAccount, Tool

pytestmark = pytest.mark.django_db(transaction=True)

CANARY = "canarybird"


def dump() -> str:
    """Return all rows as text, as a dump of the database has them."""
    if connection.vendor == "sqlite":
        return "\n".join(connection.connection.iterdump())
    initdb = find_initdb()
    assert initdb is not None
    settings = connection.settings_dict
    found = subprocess.run(
        [initdb.parent / "pg_dump", "--inserts", "-h", settings["HOST"] or "127.0.0.1"]
        + ["-p", str(settings["PORT"] or 5432), "-U", settings["USER"] or "postgres"]
        + [str(settings["NAME"])],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PGPASSWORD": settings["PASSWORD"] or ""},
    )
    return found.stdout


def lines_with(word: str) -> list[str]:
    return [line[:300] for line in dump().splitlines() if word in line.lower()]


def erase(user: User, *, to: User | None = None, by: User | None = None) -> DeletionJob:
    job = claim_job(erase_person(user, to=to, by=by).pk)
    assert job is not None
    stages = list_person_stages(job)
    assert run_job(job, pause=lambda seconds: False, stages=stages)
    return job


@pytest.fixture
def person(redis_url) -> User:
    """Somebody who has rows in every table, and a name that is found again."""
    user = make_user(
        CANARY, email=f"{CANARY}@example.org", first_name="Canarybird", last_name="Ann"
    )
    client = Client()
    client.post("/sign-in/", {"username": CANARY, "password": "secret"})
    client.post("/sign-in/", {"username": CANARY, "password": "wrong"})
    texts = Texts(f"{CANARY} rows", f"{CANARY} wrote this.", f"{CANARY}-rows")
    with act_as(user):
        make_world(user, Group.objects.create(name="crew"), texts)
        agent = Agent.objects.filter(owner=user).first()
        with edit_session(agent):
            agent.description = f"{CANARY} edits"
            agent.save()
    Worker.objects.all().delete()
    return user


def test_nothing_is_left_of_an_erased_person(person):
    root = make_user("root", is_superuser=True)
    others = make_run()
    with act_as(root):
        write_entry("changed", "group", "crew", changes={"members": [[], [CANARY]]})
        write_entry("changed", "tool", "x", changes={"by": [None, f"{CANARY} (#9)"]})
        person.groups.add(Group.objects.create(name="other"))
    redis = connect_redis()
    for run in (Run.objects.filter(owner=person).first(), others):
        redis.xadd(TEXT_DELTAS, {"run": run.pk, "text": f"{CANARY} {run.pk}"})
    rows = [line for line in lines_with(CANARY) if line.startswith("INSERT INTO")]
    assert len({row.split()[2] for row in rows}) > 15  # tables
    runs = Run.objects.filter(owner=person).count()

    job = erase(person, by=root)

    assert lines_with(CANARY) == []
    kept = [fields[b"text"] for _, fields in redis.xrange(TEXT_DELTAS)]
    assert f"{CANARY} {others.pk}".encode() in kept
    assert len([text for text in kept if CANARY.encode() in text]) == 1
    redis.delete(TEXT_DELTAS)
    assert (job.counts["runs"], job.counts["users"]) == (runs, 1)
    assert list(Run.objects.all()) == [others]
    assert AuditEntry.objects.filter(by=f"erased-{person.pk}").exists()
    entry = AuditEntry.objects.get(noun="deletion job")
    assert (entry.by, entry.action, entry.note) == (
        *("root", "erased"),
        f"user #{person.pk}",
    )


def test_a_service_account_is_erased_like_a_person(redis_url):
    bot, root = User(username=CANARY), make_user("root", is_superuser=True)
    create_service_account(bot, description=f"{CANARY} reports")
    create_token(bot, f"{CANARY} token")
    agent = make_agent(bot, name="Desk")
    make_run(agent=agent, owner=bot, status="succeeded")

    erase(bot, to=root, by=root)

    assert lines_with(CANARY) == []
    assert not ServiceAccount.objects.exists()
    assert Agent.objects.get().owner == root


def test_figures_of_an_erased_person_stay_without_the_name(person):
    before = sum(DailyRunStats.objects.values_list("runs", flat=True))
    erase(person)

    rows = DailyRunStats.objects.all()
    assert sum(rows.values_list("runs", flat=True)) == before > 0
    assert set(rows.values_list("owner", "agent")) == {(None, None)}
    assert list(daily_stats_match_the_runs()) == []


def test_definitions_go_to_the_new_owner(redis_url):
    user, root = make_user(CANARY), make_user("root", is_superuser=True)
    agent = make_agent(user, tools=(make_tool(user),), name="Desk")
    make_version(agent, by=user)
    run = make_run(agent=agent, owner=make_user())
    make_run(agent=agent, owner=user, status="succeeded", keep_forever=True)

    erase(user, to=root)

    agent.refresh_from_db()
    assert (agent.owner, Tool.objects.get().owner) == (root, root)
    assert list(Run.objects.all()) == [run]
    assert lines_with(CANARY) == []


def test_active_runs_are_canceled_first(redis_url):
    user = make_user()
    make_run(user)
    running = make_run(user, status="running")
    job = claim_job(erase_person(user, to=None, by=None).pk)
    waits = []

    def end_run(seconds: float) -> bool:
        waits.append(seconds)
        assert Run.objects.get(pk=running.pk).cancel_requested_at is not None
        return len(waits) > 2

    stages = list_person_stages(job)
    assert run_job(job, pause=end_run, stages=stages) is False
    assert set(Run.objects.values_list("status", flat=True)) == {"canceled", "running"}
    assert min(waits) >= 2

    Run.objects.filter(pk=running.pk).delete()
    job = claim_job(job.pk)
    assert run_job(job, pause=lambda s: False, stages=list_person_stages(job))
    assert not User.objects.filter(pk=user.pk).exists()


def test_the_account_is_closed_at_once(person):
    erase_person(person, to=None, by=None)

    person.refresh_from_db()
    assert not person.is_active
    assert not person.has_usable_password()
    assert not person.api_tokens.filter(revoked_at=None).exists()
    assert not Schedule.objects.on().exists()


@pytest.mark.parametrize("use", ["gate", "rule"])
def test_an_evaluator_that_others_use_needs_a_new_owner(use):
    user, agent = make_user(), make_agent(make_user())
    evaluator = make_revision(user, name="Polite").evaluator
    if use == "gate":
        make_gate(agent).evaluators.add(evaluator)
    else:
        make_rule(agent).evaluators.add(evaluator)

    assert plan_erasure(user).used_by_others == ["Polite"]
    assert plan_erasure(agent.owner).used_by_others == []


def test_what_others_use_needs_a_new_owner():
    user = make_user()
    agent = make_agent(user, name="Desk")
    make_run(make_user(), agent=agent)
    make_agent(make_user(), provider=agent.provider)

    assert plan_erasure(user).used_by_others == ["Desk", agent.provider.name]
    with pytest.raises(CannotErase, match=r"Others use Desk, .* Select a new owner."):
        erase_person(user, to=None, by=None)
    assert User.objects.get(pk=user.pk).is_active
    assert not DeletionJob.objects.exists()


def test_refuses_the_wrong_people():
    root, user = make_user("root", is_superuser=True), make_user("eve")
    gone = make_user("gone", is_active=False)
    for one, to, by, why in (
        (root, user, root, "You cannot erase yourself"),
        (root, user, None, "The last administrator"),
        (user, user, root, "Select another user"),
        (user, gone, root, "gone cannot sign in"),
    ):
        with pytest.raises(CannotErase, match=why):
            erase_person(one, to=to, by=by)
    erase_person(user, to=root, by=root)
    with pytest.raises(CannotErase, match="Another person is being erased"):
        erase_person(make_user(), to=root, by=root)


def command(*words: str) -> str:
    out = StringIO()
    call_command("erase_person", *words, stdout=out)
    return out.getvalue()


@pytest.mark.slow
def test_the_command_prints_the_plan_and_erases_only_with_yes(redis_url):
    user = make_user("eve")
    make_run(user, status="succeeded")

    plan = command("eve")
    assert "Runs: 1 deleted" in plan
    assert "Agents: 1 deleted" in plan
    assert "Nothing was changed. Add --yes to erase." in plan

    assert command("eve", "--yes").startswith("Erased: 1 runs")
    assert not User.objects.filter(username="eve").exists()
    with pytest.raises(CommandError, match="User 'eve' not found."):
        command("eve")
