"""Rules: which runs are scored, once each, within the budget, and where they go."""

import json
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from runs.evaluation.errors import NotScored
from runs.evaluation.types import ScoreResult
from runs.models import (
    Delivery,
    Example,
    ProviderModel,
    Run,
    RunScore,
    ScoredRun,
    ScoringRule,
)
from runs.services.annotation.agreement import load_queue_agreement
from runs.services.errors import ScoringPostponed
from runs.services.evaluation import score_run
from runs.services.evaluation.score_run import load_evaluation_record
from runs.services.rules import score_runs
from runs.services.rules.score_runs import (
    advance_scoring_rule,
    claim_scoring_rule,
    list_rule_revisions,
    score_selected_run,
    store_run_scores,
)
from runs.services.runs.delete import delete_runs
from runs.services.search.index_runs import index_runs
from runs.services.search.scoring_sample import compute_lot
from runs.services.webhooks.payload import build_delivery_body
from tests.fakes.model_server import FakeServer, model_server
from tests.make import (
    make_agent,
    make_dataset,
    make_provider,
    make_user,
    make_webhook,
)
from tests.makers.annotation import make_queue, score_next
from tests.makers.experiments import make_revision
from tests.makers.scoring import end_run, make_rule, make_yes_evaluator, score_all

pytestmark = pytest.mark.django_db


def test_a_run_is_scored_once_however_often_it_is_indexed():
    agent = make_agent()
    rule = make_rule(agent)
    run = end_run(agent)
    assert score_all() == 1

    Run.objects.update(indexed=False)  # as after a resume
    index_runs()

    assert score_all() == 0
    scored = ScoredRun.objects.get()
    assert (scored.rule, scored.run, scored.passed, scored.value) == (
        rule,
        run,
        True,
        1,
    )
    assert RunScore.objects.get().passed


def test_two_workers_score_each_run_once():
    agent = make_agent()
    rule = make_rule(agent)
    end_run(agent, "no")
    claimed = claim_scoring_rule()
    assert claim_scoring_rule() is None  # the other worker waits for the lease
    scored = ScoredRun.objects.select_related("run").get()
    revisions = list_rule_revisions(rule)

    assert score_selected_run(claimed, scored, revisions)
    assert not score_selected_run(claimed, scored, revisions)

    assert RunScore.objects.count() == 1
    assert advance_scoring_rule(claimed) == 0


def test_a_lost_worker_leaves_its_rule_to_another_one():
    agent = make_agent()
    make_rule(agent)
    end_run(agent)
    assert claim_scoring_rule() is not None  # and dies
    past = timezone.now() - timedelta(seconds=1)
    ScoringRule.objects.update(lease_until=past)

    assert score_all() == 1


def test_a_worker_that_lost_its_lease_stops_and_leaves_it_to_the_other_one():
    agent = make_agent()
    make_rule(agent)
    end_run(agent)
    claimed = claim_scoring_rule()
    theirs = timezone.now() + timedelta(seconds=200)
    ScoringRule.objects.update(lease_until=theirs)

    assert advance_scoring_rule(claimed) == 0

    assert ScoredRun.objects.get().state == "waiting"
    assert ScoringRule.objects.get().lease_until == theirs


def test_a_judge_stops_at_the_vote_before_which_the_lease_was_lost(monkeypatch):
    asked = []

    def lose_lease(effect, **_):
        asked.append(effect)
        ScoringRule.objects.update(lease_until=timezone.now() + timedelta(seconds=200))
        raise NotScored("no reply")

    monkeypatch.setattr(score_run, "perform_effect", lose_lease)
    agent = make_agent()
    config = {"provider": "p", "model": "m", "rubric": "r", "votes": 5}
    judge = make_revision(agent.owner, kind="judge", config=config).evaluator
    make_rule(agent, evaluators=[judge])
    end_run(agent)

    assert advance_scoring_rule(claim_scoring_rule()) == 0

    assert len(asked) == 1
    assert ScoredRun.objects.get().state == "waiting"


def test_what_a_judge_asked_is_linked_from_the_page_of_the_run(client):
    agent = make_agent()
    config = {"provider": "away", "model": "m", "rubric": "Polite?"}
    judge = make_revision(agent.owner, kind="judge", config=config)
    make_rule(agent, evaluators=[judge.evaluator])
    run = end_run(agent)
    score_all()
    client.force_login(agent.owner)

    address = f"/runs/{run.pk}/judge/{judge.pk}/"
    assert f'href="{address}"' in client.get(f"/runs/{run.pk}/?step=0").text
    assert "provider &#x27;away&#x27; was not found" in client.get(address).text
    client.post("/preferences/language/", {"language": "zh-hans"})
    assert "was not found" not in client.get(address).text


def test_a_rule_whose_judge_has_to_wait_is_tried_again_later(monkeypatch):
    def wait(effect, **_):
        raise ScoringPostponed(20)

    monkeypatch.setattr(score_run, "perform_effect", wait)
    agent = make_agent()
    config = {"provider": "p", "model": "m", "rubric": "r"}
    judge = make_revision(agent.owner, kind="judge", config=config).evaluator
    make_rule(agent, evaluators=[judge])
    end_run(agent)

    assert advance_scoring_rule(claim_scoring_rule()) == 0

    assert ScoredRun.objects.get().state == "waiting"
    assert claim_scoring_rule() is None  # not before the pause is over
    left = ScoringRule.objects.get().lease_until - timezone.now()
    assert timedelta(seconds=15) < left <= timedelta(seconds=20)


def test_rules_with_a_backlog_take_turns(monkeypatch):
    monkeypatch.setattr(score_runs, "SCORED_PER_TURN", 1)
    agent = make_agent()
    rules = [make_rule(agent), make_rule(agent)]
    end_run(agent)
    end_run(agent)

    turns = []
    while (rule := claim_scoring_rule()) is not None:
        turns.append(rule)
        advance_scoring_rule(rule)

    assert turns == rules * 2


def test_a_run_whose_scoring_raises_holds_up_no_other_one(monkeypatch, caplog):
    def cancel_statement(run):
        if run.output == "bad":
            raise OperationalError("canceling statement due to statement timeout")
        return load_evaluation_record(run)

    monkeypatch.setattr(score_run, "load_evaluation_record", cancel_statement)
    agent = make_agent()
    make_rule(agent)
    bad, good = end_run(agent, "bad"), end_run(agent, "yes")

    assert score_all() == 2

    assert ScoredRun.objects.get(run=good).passed
    assert ScoredRun.objects.get(run=bad).passed is None
    assert RunScore.objects.get(scored__run=bad).problem == score_runs.SCORING_FAILED
    assert "statement timeout" in caplog.text


def test_a_run_that_cannot_be_sent_on_is_tried_once(monkeypatch):
    def fail(*_):
        raise ValueError("no such row")

    monkeypatch.setattr(score_runs, "send_failing_run", fail)
    agent = make_agent()
    make_rule(agent)
    end_run(agent, "no")

    assert score_all() == 1
    assert ScoredRun.objects.get().state == "done"


def test_the_use_of_the_day_is_read_once_a_turn():
    agent = make_agent()
    make_rule(agent, daily_runs=3)
    for _ in range(5):
        end_run(agent)

    with CaptureQueriesContext(connection) as queries:
        assert score_all() == 3

    sums = [one for one in queries if 'SUM("runs_scoredrun"' in one["sql"]]
    assert len(sums) == 1
    assert ScoredRun.objects.filter(state="skipped").count() == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"is_test": True},
        {"source": "eval"},
        {"tool_mode": "hold_back"},
        {"status": "failed", "error_message": "No."},
        {"status": "canceled"},
        {"ended_at": timezone.now() - timedelta(days=1)},  # before the rule
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_only_real_runs_with_an_answer_that_end_from_now_on_are_scored(fields):
    agent = make_agent()
    make_rule(agent)
    end_run(agent, **fields)

    assert not ScoredRun.objects.exists()


def test_a_paused_rule_and_other_agents_score_nothing():
    agent = make_agent()
    make_rule(agent, is_on=False)
    make_rule(make_agent(agent.owner))
    end_run(agent)

    assert not ScoredRun.objects.exists()


def test_runs_of_others_are_scored_by_rules_of_administrators_only():
    agent = make_agent(visibility="everyone")
    mine = make_rule(agent)
    all_runs = make_rule(agent, owner=make_user("root", is_superuser=True))
    end_run(agent, owner=make_user("ben"))

    assert ScoredRun.objects.get().rule == all_runs != mine


def test_a_sample_is_about_as_large_as_wanted_and_always_the_same():
    lots = [compute_lot(3, run) for run in range(10_000)]

    assert sum(lot < 0.1 for lot in lots) == pytest.approx(1_000, abs=90)
    assert lots == [compute_lot(3, run) for run in range(10_000)]
    assert lots != [compute_lot(4, run) for run in range(10_000)]


def test_a_run_outside_of_the_sample_is_not_scored():
    agent = make_agent()
    rule = make_rule(agent, percent=Decimal("50"))
    runs = [end_run(agent) for _ in range(12)]

    chosen = {run.pk for run in runs if compute_lot(rule.pk, run.pk) < 0.5}
    assert set(rule.scored.values_list("run", flat=True)) == chosen


def test_nothing_more_is_scored_when_the_runs_of_the_day_are_used_up():
    agent = make_agent()
    make_rule(agent, daily_runs=2)
    for _ in range(3):
        end_run(agent)
    assert score_all() == 2

    end_run(agent)
    assert score_all() == 0
    assert ScoredRun.objects.filter(state="skipped").count() == 2
    yesterday = timezone.now() - timedelta(days=1)
    ScoredRun.objects.update(scored_at=yesterday)
    ScoringRule.objects.update(used_day=yesterday.date())
    end_run(agent)
    assert score_all() == 1


def test_nothing_more_is_scored_when_the_money_of_the_day_is_used_up():
    agent = make_agent()
    make_rule(agent, daily_budget=Decimal("0.01"))
    end_run(agent)
    assert score_all() == 1
    ScoringRule.objects.update(used_cost=Decimal("0.01"))

    end_run(agent)

    assert score_all() == 0
    assert ScoredRun.objects.filter(state="skipped").count() == 1


def make_paid_judge(owner, server: FakeServer):
    provider = make_provider(owner, base_url=server.base_url)
    ProviderModel.objects.create(
        provider=provider, name="paid", input_price=1000, output_price=1000
    )
    config = {"provider": provider.slug, "model": "paid", "rubric": "Polite?"}
    return make_revision(owner, name="Judge", kind="judge", config=config).evaluator


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "limit",
    [
        pytest.param({"daily_runs": 1}, id="runs"),
        pytest.param({"daily_budget": Decimal("0.000001")}, id="budget"),
    ],
)
def test_a_deleted_run_frees_nothing_of_the_day(limit):
    agent = make_agent()
    with model_server(script=['{"explanation": "ok", "score": 1}'] * 2) as server:
        rule = make_rule(
            agent, evaluators=[make_paid_judge(agent.owner, server)], **limit
        )
        run = end_run(agent)
        assert score_all() == 1
        assert delete_runs([run], by=agent.owner) == 1
        assert not ScoredRun.objects.exists()

        end_run(agent)

        assert score_all() == 0
        assert len(server.requests) == 1
    assert rule.scored.get().state == "skipped"


def test_what_a_judge_cost_for_a_run_deleted_meanwhile_is_counted():
    agent = make_agent()
    rule = make_rule(agent, daily_budget=Decimal("1"))
    end_run(agent)
    scored = ScoredRun.objects.select_related("run").get()
    revisions = list_rule_revisions(rule)
    ScoredRun.objects.all().delete()
    paid = ScoreResult(value=1, passed=True, cost=Decimal("0.2"))

    assert not store_run_scores(rule, scored, revisions, [paid])

    rule.refresh_from_db()
    assert (rule.used_runs, rule.used_cost) == (0, Decimal("0.2"))


def test_a_rule_counts_what_an_earlier_release_has_used_of_the_day():
    agent = make_agent()
    rule = make_rule(agent, daily_runs=2)
    end_run(agent)
    score_all()
    ScoringRule.objects.update(used_day=None, used_runs=0)
    end_run(agent)
    end_run(agent)

    assert score_all() == 1

    rule.refresh_from_db()
    assert rule.used_runs == 2


def test_a_failing_run_goes_to_the_queue_the_dataset_and_the_webhook(settings):
    settings.PUBLIC_URL = "https://a.example"
    agent = make_agent()
    owner = agent.owner
    queue, dataset = make_queue(owner), make_dataset(owner)
    webhook = make_webhook(owner)
    make_rule(agent, queue=queue, dataset=dataset, webhook=webhook)
    end_run(agent, "yes")
    failing = end_run(agent, "no", title="Why?")
    assert score_all() == 2

    assert [(one.run, one.reason) for one in queue.items.all()] == [
        (failing, "Says yes")
    ]
    example = Example.objects.get()
    assert (example.source_run, example.expected_answer) == (failing, "")
    delivery = Delivery.objects.get()
    body = json.loads(build_delivery_body(delivery))
    assert (body["type"], body["data"]["id"]) == ("run.score_failed", failing.pk)
    assert body["data"]["status"] == "succeeded"
    assert body["data"]["scores"] == {"rule": "Says yes", "failed": ["Contains"]}


def test_a_chat_gets_a_line_about_a_failing_score(settings):
    settings.PUBLIC_URL = "https://a.example"
    agent = make_agent(name="Helpdesk")
    make_rule(agent, webhook=make_webhook(agent.owner, shape="text"))
    run = end_run(agent, "no")
    score_all()

    body = json.loads(build_delivery_body(Delivery.objects.get()))

    assert body["text"] == (
        f"Helpdesk: run {run.pk} failed Contains (rule Says yes). "
        f"https://a.example/runs/{run.pk}/"
    )


def test_what_the_owner_may_no_longer_use_gets_nothing():
    agent = make_agent()
    queue, dataset = make_queue(agent.owner), make_dataset(agent.owner)
    webhook = make_webhook(agent.owner)
    make_rule(agent, queue=queue, dataset=dataset, webhook=webhook)
    other = make_user("ben")
    for row in (queue, dataset, webhook):
        type(row).objects.filter(pk=row.pk).update(owner=other)
    type(queue).objects.update(visibility="private")
    end_run(agent, "no")

    assert score_all() == 1
    assert not queue.items.exists()
    assert not Example.objects.exists()
    assert not Delivery.objects.exists()


def test_a_full_dataset_is_reported_and_the_score_is_stored(monkeypatch):
    monkeypatch.setattr("runs.services.datasets.edit.MAX_EXAMPLES", 0)
    agent = make_agent()
    rule = make_rule(agent, dataset=make_dataset(agent.owner))
    end_run(agent, "no")

    assert score_all() == 1
    rule.refresh_from_db()
    assert "at most" in rule.problem


def test_an_evaluator_that_breaks_is_no_failure():
    agent = make_agent()
    rule = make_rule(agent, queue=make_queue(agent.owner))
    evaluator = rule.evaluators.get()
    evaluator.revisions.update(config={"texts": 5})
    end_run(agent, "no")

    assert score_all() == 1
    assert ScoredRun.objects.get().passed is None
    assert RunScore.objects.get().problem
    assert not rule.queue.items.exists()


def test_people_and_the_evaluator_of_a_rule_are_compared():
    agent = make_agent()
    queue = make_queue(agent.owner)
    make_rule(agent, queue=queue)
    end_run(agent, "no")
    score_all()
    score_next(queue, agent.owner, 1)

    [found] = load_queue_agreement(queue).evaluators

    assert (found.evaluator.name, found.percent) == ("Contains", 100)


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ({"is_on": False}, ["done", "waiting", "waiting"]),
        ({"daily_runs": 1}, ["done", "skipped", "skipped"]),
    ],
)
def test_a_change_counts_from_the_next_run_of_a_turn(monkeypatch, change, left):
    agent = make_agent()
    rule = make_rule(agent)
    for _ in range(3):
        end_run(agent)
    scored = score_runs.score_by_revision

    def score_and_change(*args, **kwargs):
        result = scored(*args, **kwargs)
        ScoringRule.objects.update(**change)
        return result

    monkeypatch.setattr(score_runs, "score_by_revision", score_and_change)

    advance_scoring_rule(claim_scoring_rule())

    states = rule.scored.order_by("pk").values_list("state", flat=True)
    assert list(states) == left


def test_a_rule_without_evaluators_says_so_and_scores_nothing():
    agent = make_agent()
    rule = make_rule(agent)
    evaluator = rule.evaluators.get()
    evaluator.archived_at = timezone.now()
    evaluator.save()
    end_run(agent)

    assert score_all() == 0

    rule.refresh_from_db()
    assert "the evaluators of this rule are archived" in str(rule.problem)
    assert rule.scored.get().state == "unscored"
    evaluator.archived_at = None
    evaluator.save()
    end_run(agent)
    assert score_all() == 1
    rule.refresh_from_db()
    assert rule.problem == ""


def test_a_run_says_which_evaluator_was_unavailable():
    agent = make_agent()
    owner = agent.owner
    left = make_yes_evaluator(owner)
    archived = make_revision(owner, name="Old", config={"texts": ["never"]}).evaluator
    theirs = make_revision(
        make_user("ben"), name="Theirs", config={"texts": ["never"]}
    ).evaluator
    rule = make_rule(agent, evaluators=[left, archived, theirs])
    archived.archived_at = timezone.now()
    archived.save()
    end_run(agent)

    assert score_all() == 1

    assert rule.scored.get().passed is True
    scores = RunScore.objects.order_by("revision__evaluator__name")
    names = scores.values_list("revision__evaluator__name", "passed")
    assert list(names) == [("Contains", True), ("Old", None), ("Theirs", None)]
    assert all("archived, or no longer shared" in one.problem for one in scores[1:])


def test_a_pause_loses_no_vote_that_was_paid(monkeypatch):
    def pause(effect, **_):
        asked.append(effect)
        ScoringRule.objects.update(is_on=False)
        raise NotScored("no reply")

    asked = []
    monkeypatch.setattr(score_run, "perform_effect", pause)
    agent = make_agent()
    config = {"provider": "p", "model": "m", "rubric": "r", "votes": 3}
    judge = make_revision(agent.owner, kind="judge", config=config).evaluator
    rule = make_rule(agent, evaluators=[judge])
    end_run(agent)
    end_run(agent)

    assert advance_scoring_rule(claim_scoring_rule()) == 1

    states = rule.scored.order_by("pk").values_list("state", flat=True)
    assert (len(asked), list(states)) == (3, ["done", "waiting"])
