"""The form that starts a bisection, and the page of one."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.models import Bisection, Experiment, ExperimentRun
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    create_experiment,
)
from tests.make import make_agent, make_user, make_version
from tests.makers.experiments import (
    end_runs,
    finish_bisection,
    make_examples,
    make_revision,
    turn,
)
from tests.support.html import text_of

pytestmark = pytest.mark.django_db

FORM = {"repetitions": 1, "budget": "", "tool_mode": "hold_back"}


def fail(owner, versions: int = 6) -> ExperimentRun:
    """Return a cell of the newest version that did not pass."""
    agent = make_agent(owner)
    made = [make_version(agent) for _ in range(versions)]
    experiment = create_experiment(
        make_examples(owner, 1),
        [CandidateChoice(agent, made[-1])],
        [make_revision(owner)],
        by=owner,
        plan=ExperimentPlan(),
    )
    turn(experiment)
    end_runs(experiment, output="no")
    turn(experiment)
    return experiment.cells.get()


def url_of(cell: ExperimentRun) -> str:
    return f"/experiments/{cell.experiment_id}/bisect/?cell={cell.pk}"


def start(client, cell: ExperimentRun) -> Experiment:
    client.post(url_of(cell), FORM)
    return Bisection.objects.get().experiment


def test_a_failed_cell_links_the_form_which_says_what_is_run(client, ann):
    cell = fail(ann, 9)

    page = client.get(f"/experiments/{cell.experiment_id}/?cell={cell.pk}")
    form = text_of(client.get(url_of(cell)))

    assert url_of(cell) in page.content.decode()
    assert "Example 1 fails with Version 9" in form
    assert "6 of 9 at most" in form
    assert "Contains" in form


def test_a_passed_cell_does_not(client, ann):
    cell = fail(ann)
    ExperimentRun.objects.update(passed=True)

    page = client.get(f"/experiments/{cell.experiment_id}/?cell={cell.pk}")
    refused = client.get(url_of(cell), follow=True)

    assert "bisect" not in page.content.decode()
    assert "this one has not failed" in text_of(refused)


@pytest.mark.parametrize("query", ["", "?cell=0", "?cell=x", "?cell=99999999999999"])
def test_without_a_run_it_says_so(client, ann, query):
    cell = fail(ann)

    page = client.get(f"/experiments/{cell.experiment_id}/bisect/{query}", follow=True)

    assert "Select a run that an evaluator did not pass." in text_of(page)


def test_a_wrong_number_of_repetitions_is_refused_in_place(client, ann):
    page = client.post(url_of(fail(ann)), {"repetitions": 21})

    assert "Enter 20 or less." in text_of(page)
    assert not Bisection.objects.exists()


def test_the_page_follows_the_search(client, ann):
    found = start(client, fail(ann, 9))
    turn(found)

    page = client.get(f"/experiments/{found.pk}/")

    assert 'hx-trigger="every 2s"' in page.content.decode()
    assert "Running version 9." in text_of(page)
    assert "Versions 1 to 8: not run" in text_of(page)


def test_the_page_names_the_first_failing_version_and_links_the_comparison(client, ann):
    found = finish_bisection(start(client, fail(ann, 9)), first_bad=7)

    page = client.get(f"/experiments/{found.pk}/")

    html = page.content.decode()
    agent = found.candidates.first().agent
    runs = {
        cell.candidate.version.number: cell.run_id
        for cell in found.cells.select_related("candidate__version")
    }
    assert "Fails since version 7; version 6 passes." in text_of(page)
    assert f"/agents/{agent.pk}/versions/?from=6&amp;to=7" in html
    assert f"?a={runs[6]}&amp;b={runs[7]}" in html
    assert 'hx-trigger="every 2s"' not in html
    assert "Fails since version 7" in text_of(client.get("/experiments/"))


@pytest.mark.parametrize(
    ("first_bad", "sentence"),
    [
        pytest.param(
            1, "Fails in version 1, the oldest one. No version passes.", id="always"
        ),
        pytest.param(99, "Version 6 passes now", id="not-reproduced"),
    ],
)
def test_the_page_says_how_else_it_ended(client, ann, first_bad, sentence):
    found = finish_bisection(start(client, fail(ann)), first_bad=first_bad)

    assert sentence in text_of(client.get(f"/experiments/{found.pk}/"))


def test_the_page_names_the_change_after_a_first_version_that_fails(client, ann):
    found = start(client, fail(ann))
    for _ in range(2):
        turn(found)
        end_runs(found, output="no")
    turn(found)
    running = text_of(client.get(f"/experiments/{found.pk}/"))

    found = finish_bisection(found, first_good=2, first_bad=6)

    assert "The oldest version fails, too." in running
    page = text_of(client.get(f"/experiments/{found.pk}/"))
    assert "Fails since version 6; version 5 passes." in page


def test_the_page_says_how_many_versions_were_not_run(client, ann):
    found = finish_bisection(start(client, fail(ann, 12)), first_bad=1)

    page = text_of(client.get(f"/experiments/{found.pk}/"))

    assert "No version that was run passes; 4 versions were not run." in page
    assert "No version passes" not in page


def test_the_list_reads_all_searches_at_once(client, ann):
    cell = fail(ann)
    start(client, cell)
    client.get("/experiments/")
    with CaptureQueriesContext(connection) as alone:
        client.get("/experiments/")
    for _ in range(2):
        client.post(url_of(cell), FORM)

    with CaptureQueriesContext(connection) as together:
        client.get("/experiments/")

    assert len(together) == len(alone)


def test_a_cell_of_the_search_is_shown_beside_it(client, ann):
    found = finish_bisection(start(client, fail(ann)), first_bad=4)
    cell = found.cells.filter(passed=False).last()

    page = client.get(f"/experiments/{found.pk}/?cell={cell.pk}")

    assert f"Open run {cell.run_id}" in text_of(page)
    assert "bisect/" not in page.content.decode()


def test_somebody_else_gets_neither_form_nor_page(client, ann):
    cell = fail(make_user())

    assert client.get(url_of(cell)).status_code == 404
    assert client.post(url_of(cell), FORM).status_code == 404
    assert not Bisection.objects.exists()
