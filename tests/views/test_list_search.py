"""Each list can be searched."""

import pytest
from django.utils import timezone

from runs.models import Experiment, ScoredRun
from runs.services.accounts.tokens import create_token
from tests.make import (
    make_agent,
    make_dataset,
    make_delivery,
    make_hook,
    make_prompt,
    make_provider,
    make_run,
    make_schedule,
    make_user,
    make_webhook,
)
from tests.makers.annotation import make_queue
from tests.makers.experiments import make_experiment, make_revision
from tests.makers.scoring import make_rule

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


def test_tokens_are_found_by_their_names(client):
    ann = make_user("ann")
    for name in ("Blue moon", "Green sun"):
        create_token(ann, name)
    client.force_login(ann)

    found = client.get("/account/tokens/", {"q": "MOON blue"}).text

    assert "Blue moon" in found
    assert "Green sun" not in found
    client.force_login(make_user("boss", is_superuser=True))
    others = client.get(f"/users/{ann.pk}/tokens/", {"q": "MOON blue"}).text
    assert "Blue moon" in others
    assert "Green sun" not in others
    client.force_login(ann)
    nothing = client.get("/account/tokens/", {"q": "<none>"}).text
    assert "“&lt;none&gt;”" in nothing
    assert "No tokens yet" not in nothing


def test_deliveries_are_found_by_event_run_and_error(client):
    ann = make_user("ann")
    webhook = make_webhook(ann)
    for title, error in (("Blue moon", "no route"), ("Green sun", "refused")):
        make_delivery(webhook, make_run(ann, title=title), status="failed", error=error)
    client.force_login(ann)
    url = f"/webhooks/{webhook.pk}/"

    for text in ("moon", "route", "moon failed"):
        found = client.get(url, {"q": text}).text
        assert "no route" in found
        assert "refused" not in found
    assert "“&lt;none&gt;”" in client.get(url, {"q": "<none>"}).text
    part = client.get(url, {"q": "moon"}, headers={"HX-Request": "true"}).text
    assert 'type="search"' not in part  # it would replace what is typed
    assert "no route" in part
    assert "refused" not in part


def test_scored_runs_are_found_by_their_input_and_keep_the_filter(client):
    ann = make_user("ann")
    agent = make_agent(ann)
    rule = make_rule(agent, name="Polite")
    for title in ("Blue moon", "Green sun"):
        ScoredRun.objects.create(
            rule=rule,
            run=make_run(ann, agent=agent, title=title),
            state=ScoredRun.State.DONE,
            passed=False,
            scored_at=timezone.now(),
        )
    client.force_login(ann)

    found = client.get("/rules/runs/", {"q": "moon", "show": "failed"}).text

    assert "Blue moon" in found
    assert "Green sun" not in found
    assert '<input type="hidden" name="show" value="failed">' in found
    assert 'href="?q=moon&amp;show=failed"' in found
