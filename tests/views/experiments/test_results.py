"""Results of an experiment: sorted, walked through, exported, beside examples."""

import csv
import io
import json
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.html import strip_tags

from runs.models import Agent, Dataset, Experiment, Run, Score
from runs.services.agents.publish import publish_agent
from runs.services.datasets.content import ExampleContent
from runs.services.datasets.edit import edit_example
from runs.services.experiments.control import score_again
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    create_experiment,
)
from runs.services.experiments.figures import compute_figures
from runs.services.experiments.report import build_experiment_report
from runs.views.experiments import results
from runs.views.experiments.progress import load_progress
from tests.make import (
    make_agent,
    make_call,
    make_run,
    make_step,
    make_user,
    make_version,
)
from tests.makers.experiments import (
    end_run,
    end_runs,
    make_examples,
    make_revision,
    turn,
)

pytestmark = pytest.mark.django_db

ANSWERS = [("yes", "no", "yes"), ("yes", "yes", "no")]
"""Of version 1 and of the draft, for examples 1 to 3."""
SECONDS = [1, 9, 4]


def make_compared(owner, agent=None, temperature=None, **plan) -> Experiment:
    """Compare version 1 with the draft, which may have another temperature."""
    agent = agent or make_agent(owner)
    version = agent.versions.first() or publish_agent(agent, by=owner)
    if temperature is not None:
        agent.parameters = {"temperature": temperature}
        agent.save()
    choices = [CandidateChoice(agent, version), CandidateChoice(agent)]
    return create_experiment(
        make_examples(owner, 3),
        choices,
        [make_revision(owner)],
        by=owner,
        plan=ExperimentPlan(concurrency=50, **plan),
    )


@pytest.fixture
def experiment(ann) -> Experiment:
    """Both fail one example; the draft is better on 2 and worse on 3."""
    found = make_compared(ann)
    turn(found)
    for cell in found.cells.select_related("example", "candidate"):
        answers = ANSWERS[cell.candidate.position]
        end_run(cell, answers[cell.example.number - 1])
        number = cell.example.number
        make_call(
            Run.objects.get(pk=cell.run_id),
            elapsed=SECONDS[number - 1],
            input_tokens=0,
            output_tokens=0,
        )
        Run.objects.filter(pk=cell.run_id).update(cost=number)
    return turn(found)


def page_of(client, experiment: Experiment, query: str = "") -> str:
    return client.get(f"/experiments/{experiment.pk}/{query}").content.decode()


def numbers(page: str) -> list[int]:
    return [int(n) for n in re.findall(r'class="num faint c-no">(\d+)<', page)]


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("number", [1, 2, 3]),
        ("worse", [3, 1, 2]),
        ("better", [2, 1, 3]),
        ("cost", [3, 2, 1]),
        ("time", [2, 3, 1]),
        ("score", [2, 3, 1]),
        ("other", [1, 2, 3]),
    ],
)
def test_examples_are_sorted(client, experiment, sort, expected):
    page = page_of(client, experiment, f"?sort={sort}")

    assert numbers(page) == expected
    known = sort if sort != "other" else "number"
    assert f'<option value="{known}" selected>' in page


def test_the_lowest_score_is_that_of_the_worst_candidate(client, experiment):
    experiment.cells.update(passed=None, score=0.5)
    second = experiment.cells.filter(example__number=2).order_by("place")
    experiment.cells.filter(pk=second.last().pk).update(score=0.1)

    assert numbers(page_of(client, experiment, "?sort=score")) == [2, 1, 3]


def test_examples_that_did_not_pass_are_shown_alone(client, experiment):
    page = page_of(client, experiment, "?show=below")

    assert numbers(page) == [2, 3]
    experiment.cells.exclude(example__number=2).update(passed=True)
    assert numbers(page_of(client, experiment, "?show=below")) == [2]


def test_links_keep_the_order_and_the_filter(client, experiment):
    page = page_of(client, experiment, "?show=worse&sort=cost")

    assert numbers(page) == [3]
    cells = re.findall(r'href="(\?[^"]*cell=\d+)"', page)
    assert cells
    assert all("show=worse&amp;sort=cost&amp;" in one for one in cells)
    assert 'href="?sort=cost&amp;show=better"' in page
    assert '<input type="hidden" name="show" value="worse">' in page


def test_one_candidate_has_no_differences_to_sort_by(client, ann):
    alone = create_experiment(
        make_examples(ann, 2),
        [CandidateChoice(make_agent(ann))],
        [make_revision(ann)],
        by=ann,
        plan=ExperimentPlan(),
    )
    turn(alone)

    page = page_of(client, alone, "?sort=worse")

    assert '<option value="worse"' not in page
    assert '<option value="number" selected>' in page


def test_the_selected_cell_leads_to_its_neighbors(client, experiment):
    draft = experiment.cells.filter(candidate__position=1).order_by("example__number")
    first, second, third = draft.values_list("pk", flat=True)

    page = page_of(client, experiment, f"?cell={second}")

    assert "better than A" in page
    assert f'cell={first}"\n    title="Previous example"' in page
    assert f'cell={third}"\n    title="Next example"' in page
    assert "1 of 1 passed" in " ".join(page.split())
    last = page_of(client, experiment, f"?cell={third}")
    assert "worse than A" in last
    assert "Next example" not in last


def test_an_example_shows_the_results_of_the_latest_candidates(client, ann, experiment):
    url = f"/datasets/{experiment.dataset_id}/"
    page = client.get(url).content.decode()

    marks = re.findall(r'data-mark="(.)" title="([^"]*)"', page)
    words = [f"{name}, experiment {experiment.pk}" for name in ("Version 1", "Draft")]
    assert marks == [
        ("p", f"{words[0]}: passed"),
        ("p", f"{words[1]}: passed"),
        ("f", f"{words[0]}: not passed"),
        ("p", f"{words[1]}: passed"),
        ("p", f"{words[0]}: passed"),
        ("f", f"{words[1]}: not passed"),
    ]
    cell = experiment.cells.get(candidate__position=1, example__number=2)
    assert f'href="/experiments/{experiment.pk}/?cell={cell.pk}"' in page

    dataset = Dataset.objects.get(pk=experiment.dataset_id)
    content = ExampleContent.of(dataset.examples.get(number=2))
    changed = content.model_copy(update={"expected_answer": "no"})
    edit_example(dataset, 2, changed, by=ann)
    assert len(re.findall(r'data-mark="."', client.get(url).content.decode())) == 4


def test_only_the_latest_candidates_stand_beside_an_example(client, ann, experiment):
    dataset = Dataset.objects.get(pk=experiment.dataset_id)
    revisions = list(experiment.evaluators.all())
    choices = [CandidateChoice(make_agent(ann)), CandidateChoice(make_agent(ann))]
    plan = ExperimentPlan(concurrency=50)
    later = create_experiment(dataset, choices, revisions, by=ann, plan=plan)
    turn(later)

    page = client.get(f"/datasets/{dataset.pk}/").content.decode()

    marks = re.findall(r'data-mark="(.)" title="[^"]*experiment (\d+): ([^"]*)"', page)
    assert marks[:3] == [
        ("p", str(experiment.pk), "passed"),
        ("n", str(later.pk), "not ended yet"),
        ("n", str(later.pk), "not ended yet"),
    ]


def test_results_of_someone_else_do_not_stand_beside_examples(client, experiment):
    client.force_login(make_user("rose", is_superuser=True))
    url = f"/datasets/{experiment.dataset_id}/"
    assert "data-mark" in client.get(url).content.decode()

    Experiment.objects.update(owner=make_user("other"))
    client.force_login(Dataset.objects.get().owner)

    assert "data-mark" not in client.get(url).content.decode()


def read_csv(response) -> list[dict[str, str]]:
    text = b"".join(response.streaming_content).decode().removeprefix("\ufeff")
    return list(csv.DictReader(io.StringIO(text)))


def test_results_are_exported_as_csv(client, experiment):
    rows = read_csv(client.get(f"/experiments/{experiment.pk}/export/"))

    assert len(rows) == 6
    assert rows[3] == {
        "example": "2",
        "input:input": "question 1",
        "expected_answer": "yes",
        "tags": "t",
        "candidate": "Draft",
        "repetition": "1",
        "status": "succeeded",
        "problem": "",
        "answer": "yes",
        "passed": "yes",
        "score": "1.0",
        "score:Contains": "1.0",
        "cost": "2.000000",
        "tokens": "0",
        "seconds": "9.0",
        "run": str(
            experiment.cells.get(candidate__position=1, example__number=2).run_id
        ),
    }
    assert rows[2]["passed"] == "no"


def test_a_formula_in_an_answer_is_not_executed_by_a_spreadsheet(client, experiment):
    Run.objects.update(output="=1+1")

    rows = read_csv(client.get(f"/experiments/{experiment.pk}/export/"))

    assert {one["answer"] for one in rows} == {"'=1+1"}


def test_results_are_exported_as_jsonl(client, experiment):
    url = f"/experiments/{experiment.pk}/export/"
    lines = b"".join(client.get(f"{url}?as=jsonl").streaming_content).splitlines()
    rows = [json.loads(line) for line in lines]
    assert [one["example"] for one in rows] == [1, 1, 2, 2, 3, 3]
    assert rows[2]["inputs"] == {"input": "question 1"}
    assert rows[2]["scores"][0]["evaluator"] == "contains"


def test_results_of_someone_else_are_not_exported(client, experiment):
    client.force_login(make_user("other"))

    assert client.get(f"/experiments/{experiment.pk}/export/").status_code == 404


def test_the_draft_is_offered_for_publishing_as_long_as_it_is_the_same(
    client, experiment
):
    agent = Agent.objects.get()
    link = f'href="/agents/{agent.pk}/publish/"'
    assert link not in page_of(client, experiment)  # the draft is version 1

    changed = make_compared(agent.owner, agent=agent, temperature=0.5)
    turn(changed)
    end_runs(changed)
    turn(changed)
    assert link in page_of(client, changed)

    Agent.objects.update(parameters={"temperature": 0.7})

    assert link not in page_of(client, changed)


def test_the_page_counts_the_calls_that_were_made(client, experiment):
    run, now = Run.objects.first(), timezone.now()
    make_step(run, started_at=now)
    make_step(run, started_at=now, answered_by="held_back")
    make_step(run, started_at=now, tool="_error")
    make_step(run, started_at=None, status="failed")
    make_step(make_run(run.owner), started_at=now)

    figures = compute_figures(experiment, at="")
    experiment.figures = figures.model_dump(mode="json")
    experiment.save()

    assert "1 tool call made" in " ".join(page_of(client, experiment).split())


def test_calls_of_called_agents_are_counted_and_listed(client, experiment):
    run, now = Run.objects.first(), timezone.now()
    experiment.candidates.update(called_specs={"7": "digest"})
    call = make_step(run, started_at=now, tool="helper")
    child = make_run(run.owner, parent_step=call)
    deeper = make_step(child, started_at=now, tool="other")
    grandchild = make_run(run.owner, parent_step=deeper)
    make_step(grandchild, started_at=now, tool="look")
    held = {"started_at": now, "answered_by": "held_back", "effect": "external"}
    make_step(child, tool="send_mail", tool_input={"to": "<b>ann</b>"}, **held)
    make_step(make_run(run.owner), tool="other_run", **held)

    figures = compute_figures(experiment, at="")
    experiment.figures = figures.model_dump(mode="json")
    experiment.save()
    page = " ".join(page_of(client, experiment).split())
    url = f"/experiments/{experiment.pk}/held-back/"
    listed = client.get(url).content.decode()

    assert "1 tool call made" in page
    assert f'<a href="{url}">1 call held back</a>' in page
    assert "&lt;b&gt;ann&lt;/b&gt;" in listed
    assert f'href="/runs/{child.pk}/?step=2"' in listed
    assert "other_run" not in listed
    assert "No matching calls" in client.get(f"{url}?q=look").content.decode()


def test_runs_that_are_left_out_of_the_rate_are_named_beside_it(client, experiment):
    draft = experiment.cells.filter(candidate__position=1, passed=True)
    draft.update(passed=None, score=None)

    experiment.figures = compute_figures(experiment, at="").model_dump(mode="json")
    experiment.save()
    page = " ".join(strip_tags(page_of(client, experiment)).split())

    left_out = "2 runs have no score and are left out, though they may have passed: B 2"
    assert left_out in page
    assert "0% 2 left out 0 to" in page


def test_few_examples_have_no_interval_of_the_difference(client, experiment):
    experiment.cells.filter(candidate__position=0).update(passed=True)
    experiment.cells.filter(candidate__position=1).update(passed=False)

    experiment.figures = compute_figures(experiment, at="").model_dump(mode="json")
    experiment.save()
    page = " ".join(strip_tags(page_of(client, experiment)).split())

    assert "could be chance: 0 of 3 examples improved, 3 regressed" in page
    assert "A clear difference needs at least 7 examples." in page
    assert "-100 to" not in page.replace("−", "-")
    assert "are tagged" not in page


def test_calls_without_a_recording_are_counted_and_listed(client, experiment):
    run, now = Run.objects.first(), timezone.now()
    missing = {"answered_by": "no_recording", "status": "failed"}
    make_step(run, started_at=now, tool="refund", **missing)
    make_step(run, started_at=now, tool="look", answered_by="recording")

    experiment.figures = compute_figures(experiment, at="").model_dump(mode="json")
    experiment.save()
    page = " ".join(page_of(client, experiment).split())
    url = f"/experiments/{experiment.pk}/not-recorded/"
    listed = client.get(url).content.decode()

    assert f'<a href="{url}">1 call had no recording</a>' in page
    assert "refund" in listed
    assert "look" not in listed
    assert build_experiment_report(experiment).calls_not_recorded == 1


def test_the_largest_rise_counts_although_another_candidate_fell(client, ann):
    agent = make_agent(ann)
    choices = [CandidateChoice(agent, make_version(agent))]
    choices += [CandidateChoice(make_agent(ann)) for _ in range(2)]
    experiment = create_experiment(
        make_examples(ann, 2),
        choices,
        [make_revision(ann)],
        by=ann,
        plan=ExperimentPlan(concurrency=50),
    )
    values = {1: (0.5, 0.5, 0.6), 2: (0.5, 0.0, 1.0)}
    turn(experiment)
    for cell in experiment.cells.select_related("example", "candidate"):
        value = values[cell.example.number][cell.candidate.position]
        experiment.cells.filter(pk=cell.pk).update(state="done", score=value)

    assert numbers(page_of(client, experiment, "?sort=better")) == [2, 1]
    assert numbers(page_of(client, experiment, "?sort=worse")) == [2, 1]
    assert numbers(page_of(client, experiment, "?show=better")) == [2, 1]


def test_an_open_experiment_says_how_much_is_left(client, ann):
    experiment = make_compared(ann, budget="2.00")
    turn(experiment)
    for cell in experiment.cells.order_by("place")[:3]:
        end_run(cell, "yes")
    waiting = experiment.cells.order_by("place")[3]
    Run.objects.filter(pk=waiting.run_id).update(status="waiting", waiting_for="agent")
    turn(experiment)

    text = " ".join(page_of(client, experiment).split())

    assert re.search(r"3 of 6 runs, about [\d.]+ (m?s|min) left", text)
    assert "1 run waits for a limit of its agent or provider." in text
    assert "0 of at most 50 runs at once" in text
    assert "?show=running" in text


def test_evaluators_of_one_name_have_columns_of_their_own(client, ann, experiment):
    other = make_revision(ann, kind="exact")
    experiment.evaluators.add(other)
    cell = experiment.cells.get(candidate__position=0, example__number=1)
    Score.objects.create(cell=cell, revision=other, problem="No price.")

    rows = read_csv(client.get(f"/experiments/{experiment.pk}/export/"))

    first, second = (f"score:Contains ({slug})" for slug in ("contains", "contains-2"))
    assert (rows[0][first], rows[0][second]) == ("1.0", "No price.")
    assert rows[1][second] == ""


def test_an_export_reads_batches(client, experiment, monkeypatch):
    monkeypatch.setattr(results, "BATCH", 2)
    url = f"/experiments/{experiment.pk}/export/"

    with CaptureQueriesContext(connection) as queries:
        rows = read_csv(client.get(url))

    assert [one["example"] for one in rows] == ["1", "1", "2", "2", "3", "3"]
    reads = [one for one in queries if '"runs_experimentrun"."id" IN' in one["sql"]]
    assert len(reads) == 3


def test_an_experiment_that_only_computes_its_figures_has_no_time_left(client, ann):
    experiment = make_compared(ann)
    turn(experiment)
    experiment.cells.update(state="done")

    assert load_progress(experiment).seconds_left is None
    assert load_progress(experiment).over == 6


def test_a_run_that_was_not_scored_is_scored_again(client, ann, experiment):
    cell = experiment.cells.get(candidate__position=1, example__number=1)
    url = f"/experiments/{experiment.pk}/cells/{cell.pk}/score/"
    assert f'action="{url}"' not in page_of(client, experiment, f"?cell={cell.pk}")
    experiment.cells.filter(pk=cell.pk).update(passed=None, score=None)
    cell.scores.update(value=None, passed=None, problem="The judge replied with text.")
    assert f'action="{url}"' in page_of(client, experiment, f"?cell={cell.pk}")

    response = client.post(url)

    assert response["Location"] == f"/experiments/{experiment.pk}/?cell={cell.pk}"
    assert "Scores appear when the run has ended." in page_of(
        client, experiment, f"?cell={cell.pk}"
    )
    turn(experiment)
    cell.refresh_from_db()
    assert (cell.state, cell.passed, cell.scores.get().value) == ("done", True, 1.0)
    assert not score_again(experiment.cells.create(**unstarted(cell)))


def unstarted(cell) -> dict[str, object]:
    """Return the fields of a run that has not been started."""
    return {
        "example": cell.example,
        "candidate": cell.candidate,
        "repetition": 1,
        "place": 99,
    }


def test_only_the_owner_scores_again(client, experiment):
    cell = experiment.cells.first()
    client.force_login(make_user("other"))

    url = f"/experiments/{experiment.pk}/cells/{cell.pk}/score/"
    assert client.post(url).status_code == 404
    assert experiment.cells.get(pk=cell.pk).state == "done"


def test_the_conclusion_names_the_runs_that_are_left_out(client, ann):
    experiment = make_compared(ann)
    turn(experiment)
    for cell in experiment.cells.select_related("example", "candidate"):
        if cell.candidate.position == 1 and cell.example.number > 1:
            end_run(cell, "")
            Run.objects.filter(pk=cell.run_id).update(status="failed", output=None)
    end_runs(experiment)
    turn(experiment)

    page = " ".join(page_of(client, experiment).split())

    assert "<h2>B does the same as A on 1 example.</h2>" in page
    assert '<p class="small">2 of 3 runs of B failed and are left out.</p>' in page


def test_repetitions_do_not_narrow_the_interval(ann):
    """Three equal repetitions of four examples say no more than one of each."""
    intervals = []
    for repetitions in (1, 3):
        experiment = create_experiment(
            make_examples(ann, 4),
            [CandidateChoice(make_agent(ann))],
            [make_revision(ann)],
            by=ann,
            plan=ExperimentPlan(concurrency=50, repetitions=repetitions),
        )
        turn(experiment)
        for cell in experiment.cells.select_related("example"):
            end_run(cell, "yes" if cell.example.number > 1 else "no")
        turn(experiment)
        [figures] = compute_figures(experiment, at="").candidates
        assert figures.decided == 4 * repetitions
        intervals.append((figures.low, figures.high))

    assert intervals[0] == pytest.approx(intervals[1])
    assert intervals[0] == pytest.approx((0.3006, 0.9544), abs=1e-4)


def test_the_conversation_before_a_run_is_above_its_input(client, experiment):
    cell = experiment.cells.order_by("place").first()
    said = [["Delete <it>?", "**Sure?**"]]
    Run.objects.filter(pk=cell.run_id).update(given_turns=said)

    page = page_of(client, experiment, f"?cell={cell.pk}")

    assert "2 earlier messages" in page
    assert "Delete &lt;it&gt;?" in page
    assert "<strong>Sure?</strong>" in page


def test_the_page_says_which_runs_wait_for_people_or_a_provider(client, ann):
    experiment = make_compared(ann)
    turn(experiment)
    first, second, third = Run.objects.order_by("pk")[:3]
    now = timezone.now()
    times = {"started_at": now, "fence": 1}
    approval, decision = "awaiting_approval", "awaiting_decision"
    Run.objects.filter(pk=first.pk).update(status=approval, **times)
    Run.objects.filter(pk=second.pk).update(status=decision, **times)
    Run.objects.filter(pk=third.pk).update(status="waiting", waiting_since=now, **times)

    page = " ".join(strip_tags(page_of(client, experiment)).split())

    assert "2 runs wait for an approval or a decision." in page
    assert (
        "1 run waits for a provider that is unavailable or limits its requests." in page
    )
    assert load_progress(experiment).seconds_left is None
