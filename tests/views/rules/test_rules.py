"""Scoring rules: the form, the page, pausing and deleting."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from runs.forms.rules.rule import ScoringRuleForm
from runs.models import Run, RunScore, ScoredRun, ScoringRule
from runs.services.rules import manage_rule
from runs.time_zone import ZONE_COOKIE
from tests.make import make_agent, make_dataset, make_user, make_webhook
from tests.makers.annotation import make_queue
from tests.makers.experiments import make_revision
from tests.makers.scoring import end_run, make_rule, make_yes_evaluator, score_all
from tests.support.html import text_of

pytestmark = pytest.mark.django_db


def fill(ann, **more):
    evaluator = make_yes_evaluator(ann)
    fields = {
        "name": "Says yes",
        "agent": make_agent(ann).pk,
        "evaluators": [evaluator.pk],
        "percent": "10",
    }
    return {**fields, **more}


def test_a_rule_is_created(client, ann):
    response = client.post("/rules/new/", fill(ann, daily_budget="2.5"))

    rule = ScoringRule.objects.get()
    assert response["Location"] == f"/rules/{rule.pk}/"
    assert (rule.owner, rule.is_on, float(rule.daily_budget)) == (ann, True, 2.5)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("percent", "0", "above 0, up to 100"),
        ("percent", "100.5", "above 0, up to 100"),
        ("daily_budget", "0", "above 0, or leave it empty"),
        ("daily_runs", "0", "above 0, or leave it empty"),
        ("evaluators", [], "Select at least one evaluator"),
    ],
)
def test_wrong_settings_are_named(client, ann, field, value, said):
    page = client.post("/rules/new/", fill(ann, **{field: value})).content.decode()

    assert said in page
    assert not ScoringRule.objects.exists()


def test_a_judge_that_compares_answers_cannot_score_real_runs(client, ann):
    config = {"provider": "p", "model": "m", "rubric": "r", "form": "pairwise"}
    judge = make_revision(ann, kind="judge", config=config).evaluator

    page = client.post("/rules/new/", fill(ann, evaluators=[judge.pk]))

    assert "compares two answers" in page.content.decode()


def test_webhooks_of_others_are_not_offered(client, ann):
    other = make_webhook(make_user("ben"))

    client.post("/rules/new/", fill(ann, webhook=other.pk))

    assert not ScoringRule.objects.exists()


def test_the_page_shows_scores_by_day_and_version_and_what_failed(client, ann):
    agent = make_agent(ann)
    rule = make_rule(agent)
    passing, failing = end_run(agent, "yes"), end_run(agent, "no")
    score_all()

    page = client.get(f"/rules/{rule.pk}/").content.decode()
    failed = client.get(f"/rules/{rule.pk}/?show=failed").content.decode()

    assert "1 passed, 1 failing" in " ".join(page.split())
    assert "50.0%" in page
    assert f'href="/runs/{passing.pk}/"' in page
    assert f'href="/runs/{passing.pk}/"' not in failed
    assert f'href="/runs/{failing.pk}/"' in failed


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Auckland", "America/Los_Angeles"])
def test_each_bar_links_to_the_runs_of_its_day(client, ann, zone):
    client.cookies[ZONE_COOKIE] = zone
    rule = make_rule(make_agent(ann))
    other = make_rule(make_agent(ann))
    early, late = end_run(rule.agent, "no"), end_run(rule.agent, "yes")
    elsewhere = end_run(other.agent, "no")
    score_all()
    moved = timezone.now() - timedelta(days=2)
    ScoredRun.objects.filter(run=early).update(scored_at=moved)

    page = unescape(client.get(f"/rules/{rule.pk}/").content.decode())
    [first, second] = re.findall(r'href="([^"]*day=[^"]*)#rule-runs"', page)

    assert get_listed_runs(client, first) == {early.pk}
    assert get_listed_runs(client, second) == {late.pk}
    day = second.split("?")[1]
    assert get_listed_runs(client, f"/rules/runs/?{day}") == {late.pk, elsewhere.pk}


def get_listed_runs(client, url):
    page = client.get(url).content.decode().split('id="rule-runs"')[1]
    return {int(pk) for pk in re.findall(r'href="/runs/(\d+)/"', page)}


def test_runs_of_a_day_can_be_narrowed_to_failing_ones(client, ann):
    rule = make_rule(make_agent(ann))
    passing, failing = end_run(rule.agent, "yes"), end_run(rule.agent, "no")
    score_all()
    day = timezone.localdate()

    assert get_listed_runs(client, f"/rules/runs/?day={day}") == {
        passing.pk,
        failing.pk,
    }
    narrowed = f"/rules/runs/?day={day}&show=failed"
    assert get_listed_runs(client, narrowed) == {failing.pk}
    assert get_listed_runs(client, "/rules/runs/?day=2001-01-01") == set()


@pytest.mark.parametrize("day", ["soon", "2026-13-45"])
def test_a_day_that_is_no_date_is_named(client, ann, day):
    rule = make_rule(make_agent(ann))
    run = end_run(rule.agent, "yes")
    score_all()

    page = client.get(f"/rules/{rule.pk}/?day={day}").content.decode()

    assert f"{day} is not a date. Enter a date like 2026-11-21." in page
    assert get_listed_runs(client, f"/rules/{rule.pk}/?day={day}") == {run.pk}


def test_the_scored_runs_of_others_stay_theirs(client, ann):
    rule = make_rule(make_agent(make_user("ben"), visibility="everyone"))
    end_run(rule.agent, "no")
    score_all()

    assert get_listed_runs(client, "/rules/runs/") == set()


def test_a_chinese_viewer_reads_why_a_run_failed_in_chinese(client, ann):
    agent = make_agent(ann)
    rule = make_rule(agent)
    end_run(agent, "no")
    score_all()
    client.post("/preferences/language/", {"language": "zh-hans"})

    page = client.get(f"/rules/{rule.pk}/").content.decode()

    assert "未找到：'yes'。" in unescape(page)
    assert RunScore.objects.get().explanation == "Not found: 'yes'."


def test_pausing_and_deleting_keep_the_runs(client, ann):
    agent = make_agent(ann)
    rule = make_rule(agent)
    end_run(agent)
    client.post(f"/rules/{rule.pk}/switch/")
    rule.refresh_from_db()
    assert not rule.is_on

    given = {"pick": rule.pk, "do": "delete"}
    page = client.post("/rules/selected/", given).content.decode()
    assert "Their scores are deleted. The runs stay." in page
    assert ScoringRule.objects.exists()
    client.post("/rules/selected/", {**given, "sure": "1"})

    assert not ScoringRule.objects.exists()
    assert Run.objects.count() == 1


def test_a_rule_is_deleted_in_batches_without_loading_its_rows(ann, monkeypatch):
    monkeypatch.setattr(manage_rule, "DELETED_AT_ONCE", 2)
    rule, kept = make_rule(make_agent(ann)), make_rule(make_agent(ann))
    for one in (rule, rule, rule, kept):
        end_run(one.agent)
    score_all()

    with CaptureQueriesContext(connection) as queries:
        manage_rule.delete_scoring_rule(rule)

    batches = [one for one in queries if 'DELETE FROM "runs_scoredrun"' in one["sql"]]
    assert len(batches) >= 2
    assert [one.scored.rule for one in RunScore.objects.all()] == [kept]
    assert list(ScoringRule.objects.all()) == [kept]


def test_older_scores_are_shown_nowhere(client, ann):
    rule = make_rule(make_agent(ann))
    old, new = end_run(rule.agent, "no"), end_run(rule.agent, "yes")
    score_all()
    long_ago = timezone.now() - timedelta(days=31)
    ScoredRun.objects.filter(run=old).update(scored_at=long_ago)

    [listed] = client.get("/rules/").context["rows"]
    page = client.get(f"/rules/{rule.pk}/")

    assert (listed.runs, listed.failed) == (1, 0)
    assert page.context["totals"].runs == 1
    assert [one.runs for one in page.context["versions"]] == [1]
    assert [row.run for row in page.context["page"]] == [new]


@pytest.mark.parametrize("address", ["/rules/", "/rules/{pk}/"])
def test_pages_find_scored_runs_by_a_moment_that_the_index_has(client, ann, address):
    rule = make_rule(make_agent(ann))

    with CaptureQueriesContext(connection) as queries:
        client.get(address.format(pk=rule.pk))

    found = [one["sql"] for one in queries if 'FROM "runs_scoredrun"' in one["sql"]]
    assert found
    for sql in found:
        where = sql.split("WHERE", 1)[1]
        assert '"scored_at" >= ' in where or "'waiting'" in where


def test_editing_a_rule_leaves_what_others_have_changed_meanwhile(ann):
    rule = make_rule(make_agent(ann))
    form = ScoringRuleForm(
        fill(ann, agent=rule.agent_id, name="Renamed"),
        instance=ScoringRule.objects.get(),
    )
    later = timezone.now() + timedelta(seconds=300)
    ScoringRule.objects.update(is_on=False, lease_until=later)

    assert form.is_valid()
    form.save()

    rule.refresh_from_db()
    assert (rule.name, rule.is_on, rule.lease_until) == ("Renamed", False, later)
    assert rule.evaluators.get().pk == form.cleaned_data["evaluators"][0].pk


@pytest.mark.parametrize("agent", ["9" * 5000, "x", "", "-1", str(2**63)])
def test_an_agent_that_cannot_be_is_not_chosen(client, ann, agent):
    page = client.get("/rules/new/", {"agent": agent})

    assert page.status_code == 200


def test_a_chinese_viewer_reads_why_a_run_was_not_sent_on_in_chinese(
    client, ann, monkeypatch
):
    monkeypatch.setattr("runs.services.datasets.edit.MAX_EXAMPLES", 0)
    agent = make_agent(ann)
    rule = make_rule(agent, dataset=make_dataset(ann))
    end_run(agent, "no")
    score_all()
    client.post("/preferences/language/", {"language": "zh-hans"})

    page = client.get(f"/rules/{rule.pk}/").content.decode()

    assert "数据集将有 1 个示例" in page
    rule.refresh_from_db()
    assert rule.problem.startswith("The dataset would have 1 examples")


@pytest.mark.django_db(transaction=True)
def test_a_rule_is_created_with_its_evaluators_or_not_at_all(client, ann, monkeypatch):
    def fail(form):
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(ScoringRuleForm, "_save_m2m", fail)
    client.raise_request_exception = False

    client.post("/rules/new/", fill(ann))

    assert not ScoringRule.objects.exists()


def test_the_form_names_what_was_archived_since(client, ann):
    queue = make_queue(ann, name="Complaints", archived_at=timezone.now())
    rule = make_rule(make_agent(ann), queue=queue)

    page = client.get(f"/rules/{rule.pk}/edit/").content.decode()

    assert f'<option value="{queue.pk}" selected>Complaints (archived)' in page


def test_an_archived_evaluator_is_named_on_the_page_and_in_the_list(client, ann):
    archived = make_revision(ann, name="Old", config={"texts": ["no"]}).evaluator
    rule = make_rule(make_agent(ann), evaluators=[make_yes_evaluator(ann), archived])
    assert "navailable" not in text_of(client.get(f"/rules/{rule.pk}/"))
    assert "navailable" not in text_of(client.get("/rules/"))
    archived.archived_at = timezone.now()
    archived.save()
    end_run(rule.agent)
    score_all()

    page = text_of(client.get(f"/rules/{rule.pk}/"))

    assert "Old Unavailable" in page
    assert page.count("Unavailable") == 1
    assert "and therefore not used: Old." in page
    assert "Old not scored" in page
    assert "Evaluator unavailable" in text_of(client.get("/rules/"))


def test_an_evaluator_that_is_no_longer_shared_is_named(client, ann):
    theirs = make_revision(make_user("ben"), name="Theirs").evaluator
    rule = make_rule(make_agent(ann), evaluators=[theirs])
    end_run(rule.agent)
    score_all()

    page = text_of(client.get(f"/rules/{rule.pk}/"))

    assert "and therefore not used: Theirs." in page
    assert "Not scored: no evaluator available 1" in page
    assert "No evaluator available" in page
    assert "over a limit" not in page


def test_runs_over_a_limit_are_counted_as_such(client, ann):
    rule = make_rule(make_agent(ann), daily_runs=1)
    for _ in range(2):
        end_run(rule.agent)
    score_all()

    page = text_of(client.get(f"/rules/{rule.pk}/"))

    assert "Not scored: over a limit of the day 1" in page
    assert "no evaluator" not in page
