"""What judges asked and were told is kept beside the run, and goes with it."""

import pytest

from runs.models import JudgeRequest, Run, Score
from runs.services.experiments.control import score_again
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    create_experiment,
)
from runs.services.runs.delete_rows import delete_run_rows
from tests.experiments import end_runs, make_examples, make_revision, turn
from tests.fakes.model_server import model_server
from tests.make import make_agent, make_provider, make_user

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
