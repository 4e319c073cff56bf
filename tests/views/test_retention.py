"""The retention page."""

import pytest

from runs.models import AgentRetention, DeletionJob, RetentionRule
from runs.services.retention.jobs import claim_job, create_prune_job, run_job
from tests.make import make_agent, make_user
from tests.services.retention.rows import make_old_run, set_rules
from tools.models import AuditEntry

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


@pytest.fixture
def root(client):
    user = make_user("root", is_superuser=True)
    client.force_login(user)
    return user


def text(answer) -> str:
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


@pytest.mark.parametrize(
    "path",
    ["", "preview/", "prune/", "agents/add/", "agents/1/delete/", "jobs/1/stop/"],
)
def test_only_administrators_have_it(client, path):
    user = make_user("eve", is_staff=True)
    client.force_login(user)
    url = f"/retention/{path}"

    assert client.get(url).status_code in (403, 405)
    assert client.post(url).status_code in (403, 405)
    assert 'href="/retention/"' not in client.get("/").content.decode()


def test_says_that_nothing_is_deleted_without_rules(client, root):
    page = text(client.get("/retention/"))

    assert "No rule is set: everything is kept forever." in page
    assert "Prune now" not in page
    assert 'href="/retention/"' in page  # in the account menu


def test_saves_changes_and_removes_rules(client, root):
    set_rules(sessions=5, workers=7)
    form = {"succeeded_runs": "30", "sessions": "", "workers": "7"}
    page = text(client.post("/retention/", form, follow=True))

    assert "Retention rules saved." in page
    assert "Prune now" in page
    assert dict(RetentionRule.objects.values_list("kind", "days")) == {
        "succeeded_runs": 30,
        "workers": 7,
    }
    entries = AuditEntry.objects.filter(noun="retention rule", by="root")
    assert set(entries.values_list("thing", "action")) == {
        ("succeeded_runs", "made"),
        ("sessions", "deleted"),
    }


@pytest.mark.parametrize("days", ["0", "-1", "1.5", "x", "99999"])
def test_refuses_what_is_no_number_of_days(client, root, days):
    page = text(client.post("/retention/", {"sessions": days, "workers": "3"}))

    assert "Not saved" in page or "error" in page
    assert not RetentionRule.objects.exists()


def test_previews_rules_before_they_are_saved(client, root):
    make_old_run()
    part = text(client.get("/retention/preview/?succeeded_runs=30", headers=HTMX))

    assert "<dt>Succeeded runs</dt><dd>1</dd>" in part
    assert not RetentionRule.objects.exists()
    assert "Nothing would be deleted now." in text(
        client.get("/retention/preview/?succeeded_runs=300")
    )
    assert "Correct the fields" in text(client.get("/retention/preview/?sessions=x"))


def test_prunes_on_demand_after_a_look_at_the_counts(client, root):
    run = make_old_run()
    set_rules(succeeded_runs=30)
    page = text(client.get("/retention/prune/"))
    assert "<dt>Succeeded runs</dt><dd>1</dd>" in page

    page = text(client.post("/retention/prune/", follow=True))
    assert "Pruning starts within 10 seconds." in page
    assert "Waiting for a worker" in page
    run_job(claim_job(), pause=lambda seconds: False)
    part = text(client.get("/retention/", headers=HTMX))

    assert part.startswith('<section class="card" id="retention-jobs"')
    assert "Runs: 1" in part
    assert "hx-trigger" not in part
    assert not type(run).objects.exists()
    assert DeletionJob.objects.get().by == root


def test_stops_a_job(client, root):
    set_rules(succeeded_runs=30)
    job = create_prune_job()
    for said in ("Stopped", "The job has already ended."):
        url = f"/retention/jobs/{job.pk}/stop/"
        assert said in text(client.post(url, follow=True))


def test_gives_an_agent_a_rule_of_its_own_and_removes_it(client, root):
    agent = make_agent(name="Desk")
    form = {"agent": agent.pk, "days": ""}
    page = text(client.post("/retention/agents/add/", form, follow=True))
    assert "Desk</a>" in page
    assert "forever" in page

    rule = AgentRetention.objects.get()
    assert (rule.agent, rule.days) == (agent, None)
    asked = text(client.post(f"/retention/agents/{rule.pk}/delete/"))
    assert "may delete them sooner" in asked
    assert AgentRetention.objects.exists()
    client.post(f"/retention/agents/{rule.pk}/delete/", {"sure": "1"})
    assert not AgentRetention.objects.exists()


def test_says_which_field_of_an_agents_rule_is_wrong(client, root):
    agent = make_agent()
    form = {"agent": agent.pk, "days": "-4"}

    page = text(client.post("/retention/agents/add/", form, follow=True))

    assert "Days: " in page
    assert not AgentRetention.objects.exists()
