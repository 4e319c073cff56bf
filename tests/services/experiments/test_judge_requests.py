"""What judges asked, and the replies, are stored beside the run and go with it."""

import time
from uuid import uuid4

import pytest

from runs.models import Experiment, JudgeRequest, Provider, Run, Score
from runs.services.errors import ScoringInterrupted, ScoringPostponed
from runs.services.evaluation import ask_judge
from runs.services.experiments import advance
from runs.services.experiments.advance import postponed_until
from runs.services.experiments.control import score_again
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    create_experiment,
)
from runs.services.providers import rate
from runs.services.runs.delete_rows import delete_run_rows
from tests.fakes.model_server import model_server
from tests.make import make_agent, make_provider, make_user
from tests.makers.experiments import (
    end_run,
    end_runs,
    make_examples,
    make_revision,
    turn,
)
from tests.support.rates import use_fresh_rates

pytestmark = pytest.mark.django_db(transaction=True)

GOOD = '{"explanation": "polite", "score": 1}'


def test_requests_and_replies_are_on_their_page_until_the_run_is_deleted(client):
    ann = make_user("ann")
    client.force_login(ann)
    with model_server(script=["Prose.", GOOD]) as server:
        provider = make_provider(ann, base_url=server.base_url)
        config = {"provider": provider.slug, "model": "m", "rubric": "Polite?"}
        judge = make_revision(ann, name="Tone", kind="judge", config=config)
        experiment = create_experiment(
            make_examples(ann, 1),
            [CandidateChoice(make_agent(ann))],
            [judge],
            by=ann,
            plan=ExperimentPlan(),
        )
        turn(experiment)
        end_runs(experiment, "How may I help?")
        turn(experiment)
        [kept] = JudgeRequest.objects.all()
        assert [one["text"] for one in kept.replies] == ["Prose."]
        assert Score.objects.get().problem

        assert score_again(experiment.cells.get())
        turn(experiment)

    cell = experiment.cells.get()
    page = client.get(f"/experiments/{experiment.pk}/?cell={cell.pk}").content.decode()
    address = f"/runs/{cell.run_id}/judge/{judge.pk}/"
    assert f'href="{address}"' in page
    shown = client.get(address).content.decode()
    assert "What Tone asked about run" in shown
    assert "How may I help?" in shown
    assert "polite" in shown
    assert "Prose." not in shown  # of the earlier scoring

    client.force_login(make_user("bob"))
    assert client.get(address).status_code == 404
    delete_run_rows([cell.run_id])
    assert not JudgeRequest.objects.exists()
    assert not Run.objects.exists()


def test_a_run_without_requests_of_a_judge_has_no_page(client):
    ann = make_user("ann")
    client.force_login(ann)
    experiment = create_experiment(
        make_examples(ann, 1),
        [CandidateChoice(make_agent(ann))],
        [contains := make_revision(ann)],
        by=ann,
        plan=ExperimentPlan(),
    )
    turn(experiment)
    end_runs(experiment)
    turn(experiment)
    cell = experiment.cells.get()

    assert client.get(f"/runs/{cell.run_id}/judge/{contains.pk}/").status_code == 404
    page = client.get(f"/experiments/{experiment.pk}/?cell={cell.pk}").content.decode()
    assert "Request and reply" not in page


def judge_experiment(ann, server, *, count=1, candidates=1, **config):
    provider = make_provider(ann, base_url=server.base_url)
    settings = {"provider": provider.slug, "model": "m", "rubric": "Polite?", **config}
    return create_experiment(
        make_examples(ann, count),
        [CandidateChoice(make_agent(ann)) for _ in range(candidates)],
        [make_revision(ann, name="Tone", kind="judge", config=settings)],
        by=ann,
        plan=ExperimentPlan(concurrency=20),
    )


def test_the_answer_of_the_baseline_goes_with_its_run():
    ann = make_user("ann")
    with model_server(script=['{"winner": "A"}', '{"winner": "B"}']) as server:
        experiment = judge_experiment(ann, server, candidates=2, form="pairwise")
        turn(experiment)
        first, second = experiment.cells.order_by("candidate__position")
        end_run(first, "The baseline.")
        end_run(second, "The other.")
        turn(experiment)

    [*requests] = JudgeRequest.objects.all()
    assert len(requests) == 2
    assert {(one.run_id, one.baseline_run_id) for one in requests} == {
        (second.run_id, first.run_id)
    }
    delete_run_rows([first.run_id])
    assert not JudgeRequest.objects.exists()
    assert Run.objects.filter(pk=second.run_id).exists()


@pytest.fixture
def slept(monkeypatch) -> list[float]:
    """Sleep in no time, with full buckets and no turns of earlier tests."""
    use_fresh_rates(monkeypatch)
    found: list[float] = []
    monkeypatch.setattr(time, "sleep", found.append)
    return found


@pytest.mark.usefixtures("slept")
def test_a_provider_that_allows_no_request_postpones_scores_instead_of_losing_them():
    ann = make_user("ann")
    with model_server(script=[GOOD] * 3) as server:
        experiment = judge_experiment(ann, server, count=3)
        Provider.objects.update(requests_per_minute=1)
        turn(experiment)
        end_runs(experiment, "How may I help?")

        experiment = turn(experiment)
        assert Score.objects.count() == 1
        assert experiment.cells.filter(state="started").count() == 2
        assert experiment.is_running
        experiment = turn(experiment)  # not before the pause is over
        assert len(server.requests) == 1

        Provider.objects.update(requests_per_minute=None)
        postponed_until.clear()
        experiment = turn(experiment)

    assert experiment.status == "done"
    assert [one.value for one in Score.objects.all()] == [1, 1, 1]


@pytest.mark.usefixtures("slept")
def test_postponed_runs_keep_their_place_in_line_with_runs():
    ann = make_user("ann")
    with model_server(script=[GOOD] * 2) as server:
        experiment = judge_experiment(ann, server, count=2)
        Provider.objects.update(requests_per_minute=1)
        turn(experiment)
        end_runs(experiment, "How may I help?")
        turn(experiment)
        assert Score.objects.count() == 1
        provider = Provider.objects.get(base_url=server.base_url)
        share = rate.ProviderShare(provider)
        waits = [share.reserve().seconds for _ in range(3)]  # of runs that come later
        assert min(waits) > 110

        [due] = ask_judge.reserved_turns.due.values()
        due[:] = [time.monotonic()]  # a minute later
        postponed_until.clear()
        experiment = turn(experiment)

    assert experiment.status == "done"
    assert ask_judge.reserved_turns.due == {provider.pk: []}


def test_a_process_holds_few_turns():
    turns = ask_judge.ReservedTurns()
    for _ in range(ask_judge.MAX_HELD_TURNS):
        assert turns.take(1) is None
        with pytest.raises(ScoringPostponed):
            turns.hold(1, 60)

    with pytest.raises(ScoringPostponed) as postponed:
        turns.take(1)

    assert 50 < postponed.value.seconds <= 60
    assert turns.take(2) is None


def test_a_run_that_one_judge_was_asked_about_is_not_postponed_by_another(slept):
    ann = make_user("ann")
    with model_server(script=[GOOD] * 2) as server:
        provider = make_provider(ann, base_url=server.base_url, requests_per_minute=1)
        config = {"provider": provider.slug, "model": "m", "rubric": "Polite?"}
        judges = [
            make_revision(ann, name=name, kind="judge", config=config)
            for name in ("Tone", "Facts")
        ]
        experiment = create_experiment(
            make_examples(ann, 1),
            [CandidateChoice(make_agent(ann))],
            judges,
            by=ann,
            plan=ExperimentPlan(),
        )
        turn(experiment)
        end_runs(experiment, "How may I help?")

        experiment = turn(experiment)

    assert experiment.status == "done"
    assert [one.value for one in Score.objects.all()] == [1, 1]
    assert sum(slept) == pytest.approx(60, abs=5)


def after_each_reply(monkeypatch, act):
    """Do something when the model has replied, before the vote counts."""
    complete = ask_judge._complete

    def complete_and_act(*given, **limits):
        reply = complete(*given, **limits)
        act()
        return reply

    monkeypatch.setattr(ask_judge, "_complete", complete_and_act)


def test_a_lost_lease_stops_the_judge_before_its_next_vote(monkeypatch):
    monkeypatch.setattr(advance, "RENEWAL_SECONDS", 0.0)
    ann = make_user("ann")
    with model_server(script=[GOOD] * 4) as server:
        experiment = judge_experiment(ann, server, count=2, votes=2)
        turn(experiment)
        end_runs(experiment, "How may I help?")
        after_each_reply(
            monkeypatch, lambda: Experiment.objects.update(lease_holder=uuid4())
        )
        with pytest.raises(ScoringInterrupted):
            turn(experiment)
        assert len(server.requests) == 1

    assert not Score.objects.exists()
    assert experiment.cells.filter(state="started").count() == 2


def test_a_run_that_is_deleted_while_it_is_judged_has_a_score_but_no_request(
    monkeypatch,
):
    ann = make_user("ann")
    with model_server(script=[GOOD]) as server:
        experiment = judge_experiment(ann, server)
        turn(experiment)
        end_runs(experiment, "How may I help?")
        run = experiment.cells.get().run_id
        after_each_reply(monkeypatch, lambda: delete_run_rows([run]))
        turn(experiment)

    assert Score.objects.get().value == 1
    assert not JudgeRequest.objects.exists()


def test_the_answer_of_a_baseline_that_is_deleted_meanwhile_is_not_stored(monkeypatch):
    ann = make_user("ann")
    with model_server(script=['{"winner": "A"}', '{"winner": "B"}']) as server:
        experiment = judge_experiment(ann, server, candidates=2, form="pairwise")
        turn(experiment)
        first, second = experiment.cells.order_by("candidate__position")
        end_run(first, "The secret answer.")
        end_run(second, "The other.")
        after_each_reply(monkeypatch, lambda: delete_run_rows([first.run_id]))
        turn(experiment)

    assert Score.objects.get(cell=second).value is not None
    assert not JudgeRequest.objects.exists()
