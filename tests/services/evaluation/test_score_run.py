"""Scoring stored runs: the record, the sandbox, the judge and secrets."""

import time
from decimal import Decimal

import pytest

from runs.evaluation.types import EvaluationExample
from runs.models import Provider, ProviderModel
from runs.services.errors import ScoringInterrupted, ScoringPostponed
from runs.services.evaluation import ask_judge
from runs.services.evaluation.score_run import (
    load_evaluation_record,
    load_evaluation_records,
    score_run,
)
from runs.services.providers import rate
from tests.fakes.model_server import model_server
from tests.make import make_call, make_provider, make_run, make_step, make_user
from tests.support.rates import use_fresh_rates

pytestmark = pytest.mark.django_db(transaction=True)

EXAMPLE = EvaluationExample(inputs={"input": "2 + 2?"}, expected_answer="4")


def make_scored_run(owner=None, **fields):
    return make_run(
        owner, **{"status": "succeeded", "output": "It is 4.", "rounds": 2, **fields}
    )


def score(run, kind, example=EXAMPLE, *, by=None, options=None, **config):
    return score_run(
        run,
        example,
        kind=kind,
        config=config,
        by=by or run.owner,
        **(options or {}),
    )


def test_the_records_of_a_conversation_have_what_the_model_saw(
    django_assert_num_queries,
):
    owner = make_user()
    first = make_scored_run(owner, inputs={"input": "Book A or B?"}, output="Which?")
    runs = [
        make_scored_run(owner, turn_ids=[first.pk]),
        make_scored_run(owner, turn_ids=[first.pk], given_turns=[["B.", None]]),
        make_scored_run(owner),
    ]

    with django_assert_num_queries(3):
        records = load_evaluation_records(runs)

    said = [
        [(one.role, one.text) for one in records[run.pk].earlier_messages]
        for run in runs
    ]
    earlier = [("user", "Book A or B?"), ("assistant", "Which?")]
    assert said == [earlier, [*earlier, ("user", "B.")], []]


def test_the_record_has_what_the_run_has_done(django_assert_num_queries):
    run = make_scored_run(input_tokens=90, output_tokens=10, cost="0.25")
    call = make_call(run, elapsed=1.5, first_token=0.5)
    make_step(run, call=call, elapsed=0.2)
    make_step(run, call=call, elapsed=0.7, status="failed", answered_by="held_back")
    run.refresh_from_db()

    with django_assert_num_queries(2):
        record = load_evaluation_record(run)

    assert (record.answer, record.cost) == ("It is 4.", 0.25)
    assert record.tokens == run.input_tokens + run.output_tokens > 0
    assert (record.seconds, record.first_token) == (pytest.approx(2.2), 0.5)
    first, second = record.steps
    assert (first.tool, first.observation, first.failed) == ("calculator", "4", False)
    assert (second.failed, second.answered_by) == (True, "held_back")


def test_records_of_many_runs_are_read_at_once(django_assert_num_queries):
    runs = [make_scored_run(), make_scored_run(), make_scored_run()]
    for run, elapsed in zip(runs[:2], (1.5, 4.0), strict=True):
        first = make_call(run, elapsed=elapsed, first_token=elapsed / 2)
        make_call(run, number=2, elapsed=1.0)
        make_step(run, call=first, elapsed=elapsed, observation=f"{elapsed}")

    with django_assert_num_queries(2):
        records = load_evaluation_records(runs)

    assert records == {run.pk: load_evaluation_record(run) for run in runs}
    found = [(records[run.pk].first_token, len(records[run.pk].steps)) for run in runs]
    assert found == [(0.75, 1), (2.0, 1), (None, 0)]


def test_a_run_is_scored_by_what_it_answered():
    run = make_scored_run()

    assert score(run, "contains").passed
    assert score(run, "number").passed
    assert score(run, "exact").passed is False
    failed = make_scored_run(status="failed", output=None, error_message="No model.")
    assert score(failed, "contains").problem == "The run failed: No model."


@pytest.mark.parametrize(
    ("code", "value", "problem"),
    [
        ("return 'It is ' + example['expected_answer'] + '.' == run['answer']", 1, ""),
        ("return {'value': len(run['steps']) / 4, 'explanation': 'x'}", 0.25, ""),
        ("return 1 / 0", None, "The code failed: Line 2: ZeroDivisionError"),
        ("return 'x' * 10**9", None, "The code failed"),
        ("while True: pass", None, "The code did not end in 0.3 s."),
        ("return open('/etc/passwd').read()", None, "The code failed"),
    ],
)
def test_code_scores_in_the_sandbox(code, value, problem):
    run = make_scored_run()
    make_step(run)
    function = f"def score(example, run):\n    {code}"

    seconds = 0.3 if "while True" in code else 10

    result = score(run, "code", code=function, timeout=seconds)

    assert result.value == value
    assert problem in result.problem
    assert bool(result.problem) is bool(problem)


def judged(owner, server, **more):
    provider = make_provider(owner, base_url=server.base_url, slug="judge")
    ProviderModel.objects.create(
        provider=provider, name="strict", input_price=1000, output_price=1000
    )
    return {"provider": "judge", "model": "strict", "rubric": "Right?", **more}


def test_the_judge_is_asked_with_the_rights_of_the_evaluators_owner():
    ann, bob = make_user(), make_user()
    run = make_scored_run(ann)
    with model_server(script=['{"explanation": "ok", "score": 1}']) as server:
        config = judged(bob, server)

        assert "'judge' was not found" in score(run, "judge", by=ann, **config).problem
        result = score(run, "judge", by=bob, **config)

    assert (result.value, result.explanation) == (1, "ok")
    assert result.cost > Decimal(0)
    (asked,) = server.requests
    assert '"It is 4."' in asked.body["messages"][1]["content"]


def test_a_judge_that_writes_prose_or_fails_gives_no_score():
    run = make_scored_run()
    with model_server(script=["Well done!", {"fault": "401"}]) as server:
        config = judged(run.owner, server)
        prose = score(run, "judge", **config)
        refused = score(run, "judge", **config)

    assert "did not reply with JSON, but: Well done!" in prose.problem
    assert prose.cost > Decimal(0)
    assert refused.problem.startswith("The judge failed")


@pytest.mark.slow
def test_a_failure_of_the_judge_speaks_of_no_run():
    run = make_scored_run()
    with model_server(script=[{"fault": "503"}] * 9) as server:
        problem = score(run, "judge", **judged(run.owner, server)).problem

    assert "failed with status 503." in problem
    assert "Resume the run" not in problem
    assert "  " not in problem
    assert problem == problem.strip()


def test_what_the_judge_was_asked_is_kept_with_each_reply():
    script = ['{"explanation": "ok", "score": 1}', "Prose.", {"fault": "401"}]
    with model_server(script=script) as server:
        run = make_scored_run()
        result = score(run, "judge", **judged(run.owner, server, votes=3))
        (asked, *_) = [one.body["messages"] for one in server.requests]

    [exchange] = result.exchanges
    assert (exchange.provider, exchange.model) == ("judge", "strict")
    assert [one.model_dump() for one in exchange.messages] == [
        {"role": one["role"], "text": one["content"]} for one in asked
    ]
    first, second, third = exchange.replies
    assert (first.text, second.text) == (script[0], "Prose.")
    assert first.cost > 0
    assert first.seconds > 0
    assert third.text == ""
    assert third.problem.startswith("The judge failed")


def test_a_comparison_keeps_both_orders():
    ann = make_user()
    script = ['{"winner": "A"}', '{"winner": "B"}'] * 2
    with model_server(script=script) as server:
        config = judged(ann, server, form="pairwise", votes=2)
        runs = make_scored_run(ann), make_scored_run(ann, output="Four.")
        result = score(runs[0], "judge", options={"baseline": runs[1]}, **config)

    replies = [[one.text for one in each.replies] for each in result.exchanges]
    assert replies == [[script[0]] * 2, [script[1]] * 2]


@pytest.fixture
def _fresh_rates(monkeypatch):
    """Buckets of this process, full."""
    use_fresh_rates(monkeypatch)


@pytest.mark.usefixtures("_fresh_rates")
def test_further_votes_wait_for_their_turn_at_the_provider(monkeypatch):
    slept, renewed = [], []
    monkeypatch.setattr(time, "sleep", slept.append)
    with model_server(script=['{"explanation": "ok", "score": 1}'] * 3) as server:
        run = make_scored_run()
        config = judged(run.owner, server, votes=3)
        Provider.objects.update(requests_per_minute=1)
        options = {"before_effect": lambda: renewed.append(1)}
        result = score(run, "judge", options=options, **config)

    assert result.value == 1
    assert sum(slept) == pytest.approx(60 + 120, abs=5)
    assert max(slept) <= 5  # the lease is renewed meanwhile
    assert len(renewed) >= 3 + 36


@pytest.mark.usefixtures("_fresh_rates")
def test_a_run_whose_first_vote_would_wait_long_is_postponed(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    with model_server(script=['{"explanation": "ok", "score": 1}'] * 2) as server:
        run = make_scored_run()
        config = judged(run.owner, server)
        Provider.objects.update(requests_per_minute=1)
        assert score(run, "judge", **config).value == 1
        waits = []
        for _ in range(3):
            with pytest.raises(ScoringPostponed) as postponed:
                score(run, "judge", **config)
            waits.append(postponed.value.seconds)
        assert len(server.requests) == 1

    # Each has reserved a turn, and waits for the first of them.
    assert waits == pytest.approx([60, 60, 60], abs=3)
    share = rate.ProviderShare(Provider.objects.get(slug="judge"))
    assert share.reserve().seconds > 200


@pytest.mark.usefixtures("_fresh_rates")
def test_a_trial_says_that_the_limit_is_used_up(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    with model_server(script=['{"explanation": "ok", "score": 1}'] * 2) as server:
        run = make_scored_run()
        config = judged(run.owner, server)
        Provider.objects.update(requests_per_minute=1)
        assert score(run, "judge", **config).value == 1
        result = score(run, "judge", options={"trial_seconds": 5}, **config)

    assert "limit per minute is used up" in result.problem
    assert len(result.exchanges[0].replies) == 1


def test_the_votes_of_a_trial_take_a_limited_time_together(monkeypatch):
    monkeypatch.setattr(ask_judge, "TRIAL_SECONDS", 1.0)
    good = '{"explanation": "ok", "score": 1}'
    with model_server(script=[good, {"content": good, "seconds": 30.0}]) as server:
        run = make_scored_run()
        config = judged(run.owner, server) | {"votes": 3}
        result = score(run, "judge", options={"trial_seconds": 5}, **config)

    assert result.problem.startswith("The judge did not reply in")
    assert len(server.requests) == 2


@pytest.mark.usefixtures("_fresh_rates")
def test_a_turn_is_given_back_if_scoring_is_interrupted(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    calls = []

    def lose_the_lease():
        calls.append(1)
        if len(calls) > 2:
            raise ScoringInterrupted

    with model_server(script=['{"explanation": "ok", "score": 1}'] * 2) as server:
        run = make_scored_run()
        config = judged(run.owner, server, votes=2)
        provider = Provider.objects.get(slug="judge")
        Provider.objects.update(requests_per_minute=1)
        provider.refresh_from_db()
        with pytest.raises(ScoringInterrupted):
            score(run, "judge", options={"before_effect": lose_the_lease}, **config)

    # Of two turns that were taken, one was used: the next one is a minute away.
    assert rate.ProviderShare(provider).reserve().seconds <= 60


def test_two_runs_are_compared_in_both_orders():
    ann = make_user()
    script = ['{"winner": "A", "explanation": "x"}', '{"winner": "B"}']
    with model_server(script=script) as server:
        config = judged(ann, server, form="pairwise")
        result = score(
            make_scored_run(ann),
            "judge",
            options={"baseline": make_scored_run(ann)},
            **config,
        )

    assert (result.value, result.label) == (1, "better")


@pytest.mark.parametrize(
    ("output", "passes"),
    [
        ("The key is provider-key-1234567.", False),
        ("The key is [secret removed].", False),
        ("Use sk-abcdefghijklmnopqrstuvwx.", False),
        ("Your password: choose a long one.", True),
    ],
)
def test_secrets_of_the_site_are_found(output, passes):
    ann = make_user()
    provider = make_provider(ann)
    provider.set_key("provider-key-1234567")
    provider.save()

    result = score(make_scored_run(ann, output=output), "safety")

    assert (result.problem, result.passed) == ("", passes)
