"""From 20 rated runs to an experiment that shows what one broken word does.

All of it with the demo model and without a key: the runs are executed, none is made up.
"""

import re
from collections import Counter

import pytest
from django.utils import timezone

from runs.models import Dataset, Experiment, ExperimentRun, Run
from runs.services.agents.publish import publish_agent
from tests.make import make_agent, make_prompt, make_provider, make_tool
from tests.makers.experiments import make_revision, turn
from tests.support.html import strip_tags
from tests.worker.run_parts import executed, go_on
from tools.registry import get_registered_functions

pytestmark = pytest.mark.django_db(transaction=True)

CITIES = ("Oslo", "Paris", "Tokyo", "Berlin")
NAMED = [f"{n} nights in {CITIES[n % 4]}" for n in range(12)]
UNNAMED = [f"Idea {n} for Sunday" for n in range(8)]
"""Without a city only the word in the prompt tells the demo model what is wanted."""
REPETITIONS = 3


def write_prompt(word: str) -> list[dict[str, str]]:
    return [
        {"role": "system", "template": "Be brief."},
        {"role": "user", "template": f"{word}: {{input}}"},
    ]


def make_planner(ann):
    provider = make_provider(ann, kind="demo", base_url="")
    agent = make_agent(
        ann,
        provider=provider,
        model="demo-planner",
        parameters={"words_per_second": 100_000},
        prompt=make_prompt(ann, messages=write_prompt("Trip")),
        tools=(make_weather_tool(ann),),
    )
    publish_agent(agent, by=ann)
    return agent


def make_weather_tool(ann):
    path = "tools.builtin.weather_sample:weather_sample"
    function = get_registered_functions()[path]
    return make_tool(
        ann,
        name="weather_sample",
        config={"function": path},
        args_schema=function.args_schema,
        effect="read",
    )


def collect_examples(client, agent) -> Dataset:
    """Rate 20 runs, and make them a dataset through the list of runs."""
    runs = [executed(agent, text) for text in (*NAMED, *UNNAMED)]
    for run in runs:
        assert run.status == "succeeded"
        client.post(f"/runs/{run.pk}/rate/", {"rating": "good"})
    picked = [run.pk for run in Run.objects.filter(rating=1)]
    client.post("/datasets/add/", {"run": picked, "name": "Trips"})
    dataset = Dataset.objects.get(name="Trips")
    client.post(f"/datasets/{dataset.pk}/save/", {"seen": 0})
    return Dataset.objects.get(pk=dataset.pk)


def run_experiment(
    client, agent, dataset: Dataset, *, repetitions: int = REPETITIONS
) -> Experiment:
    """Start it by the form, and do what workers do."""
    exact = make_revision(agent.owner, name="Same answer", kind="exact")
    fields = {
        "candidates": ["1", "draft"],
        "evaluators": [exact.evaluator_id],
        "tool_mode": "hold_back",
        "repetitions": repetitions,
        "concurrency": 50,
    }
    client.post(f"/experiments/new/?dataset={dataset.pk}&agent={agent.pk}", fields)
    experiment = Experiment.objects.get()
    for _turn in range(10):
        experiment = turn(experiment)
        if not experiment.is_running:
            break
        for run in Run.objects.filter(source=Run.Source.EXPERIMENT, status="queued"):
            go_on(run)
    return experiment


def test_exactly_the_affected_examples_fail_and_the_page_says_how_sure_it_is(
    client, ann
):
    agent = make_planner(ann)
    dataset = collect_examples(client, agent)
    assert dataset.examples.in_version(1).count() == 20
    agent.prompt.messages = write_prompt("Trap")
    agent.prompt.save()

    experiment = run_experiment(client, agent, dataset)

    failed = ExperimentRun.objects.filter(passed=False)
    assert {cell.candidate.label for cell in failed} == {"Draft"}
    counts = Counter(cell.example.inputs["input"] for cell in failed)
    assert counts == dict.fromkeys(UNNAMED, REPETITIONS)
    assert experiment.cells.filter(passed=True).count() == 32 * REPETITIONS
    page = client.get(f"/experiments/{experiment.pk}/").content.decode()
    text = " ".join(strip_tags(page).split())
    assert "B is clearly worse than A: 0 improved, 8 regressed." in text
    assert "−40" in text  # percentage points
    assert re.search(r"60% \d+ to \d+", text)
    assert "A difference under" in text


@pytest.mark.slow
def test_the_unbroken_prompt_is_the_same(client, ann):
    agent = make_planner(ann)
    dataset = collect_examples(client, agent)
    agent.description = f"Edited {timezone.localdate()}"
    agent.save()

    experiment = run_experiment(client, agent, dataset, repetitions=1)

    page = client.get(f"/experiments/{experiment.pk}/").content.decode()
    assert "B does the same as A on all 20 examples." in page
