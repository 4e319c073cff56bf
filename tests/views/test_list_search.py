"""Each list can be searched."""

import pytest

from runs.models import Experiment
from tests.annotation import make_queue
from tests.experiments import make_experiment, make_revision
from tests.make import (
    make_agent,
    make_dataset,
    make_hook,
    make_prompt,
    make_provider,
    make_schedule,
    make_user,
    make_webhook,
)
from tests.scoring import make_rule

pytestmark = pytest.mark.django_db


def make_two_of_each(owner):
    for name in ("Blue moon", "Green sun"):
        provider = make_provider(owner, name=f"{name} provider")
        make_prompt(owner, name=f"{name} prompt")
        agent = make_agent(owner, name=f"{name} agent", provider=provider)
        make_schedule(owner, agent=agent, name=f"{name} schedule")
        make_webhook(owner, name=f"{name} webhook")
        make_dataset(owner, name=f"{name} dataset")
        make_revision(owner, name=f"{name} evaluator")
        make_hook(owner, name=f"{name} hook")
        make_queue(owner, name=f"{name} queue")
        make_rule(agent, name=f"{name} rule")
        experiment = make_experiment(count=1)
        Experiment.objects.filter(pk=experiment.pk).update(
            owner=owner, name=f"{name} experiment"
        )


NOUNS = [
    *("agent", "dataset", "evaluator", "experiment", "hook", "prompt", "provider"),
    *("queue", "rule", "schedule", "webhook"),
]


@pytest.mark.parametrize("noun", NOUNS)
def test_words_in_any_order_find_a_row(client, noun):
    ann = make_user("ann")
    make_two_of_each(ann)
    client.force_login(ann)

    page = client.get(f"/{noun}s/", {"q": "MOON blue"}).content.decode()
    assert f"Blue moon {noun}" in page
    assert f"Green sun {noun}" not in page
    assert 'value="MOON blue"' in page

    nothing = client.get(f"/{noun}s/", {"q": "<none>"}).content.decode()
    empty = "No matching agents" if noun == "agent" else "“&lt;none&gt;”"
    assert empty in nothing
    assert 'name="q" value="&lt;none&gt;"' in nothing
