"""Actions on the selected rows of a list."""

import re

import pytest
from django.urls import reverse
from django.utils import timezone

from runs.models import (
    ApiToken,
    Conversation,
    Experiment,
    Hook,
    Schedule,
    ScoringRule,
    Webhook,
)
from runs.services.accounts.tokens import create_token
from runs.services.annotation.queued_runs import add_runs_to_queue
from tests.make import (
    make_agent,
    make_dataset,
    make_decision,
    make_hook,
    make_prompt,
    make_provider,
    make_run,
    make_schedule,
    make_step,
    make_user,
    make_webhook,
)
from tests.makers.annotation import make_queue
from tests.makers.experiments import make_experiment
from tests.makers.scoring import make_rule, make_yes_evaluator


def make_running_experiment(owner):
    experiment = make_experiment(count=1)
    Experiment.objects.filter(pk=experiment.pk).update(owner=owner)
    return experiment


pytestmark = pytest.mark.django_db

MAKERS = {
    "dataset": make_dataset,
    "evaluator": make_yes_evaluator,
    "experiment": make_running_experiment,
    "hook": make_hook,
    "queue": make_queue,
    "prompt": make_prompt,
    "provider": make_provider,
    "rule": lambda owner: make_rule(make_agent(owner)),
    "schedule": make_schedule,
    "webhook": make_webhook,
}


DEFINITIONS = ["dataset", "evaluator", "prompt", "provider", "queue"]


def choose(client, noun, rows, do):
    return client.post(
        reverse(f"{noun}-selection"),
        {"pick": [r.pk for r in rows], "do": do},
        follow=True,
    ).text


@pytest.mark.parametrize("noun", MAKERS)
def test_each_list_offers_its_rows_and_the_actions(client, ann, noun):
    row = MAKERS[noun](ann)

    page = client.get(reverse(f"{noun}-list")).text

    assert f'name="pick" value="{row.pk}"' in page
    assert 'id="part-bulk"' in page


@pytest.mark.parametrize("noun", DEFINITIONS)
def test_definitions_are_archived_and_restored(client, ann, noun):
    rows = [MAKERS[noun](ann), MAKERS[noun](ann)]

    assert "2 archived." in choose(client, noun, rows, "archive")
    assert "2 restored." in choose(client, noun, rows, "unarchive")


def test_only_what_changed_is_undone(client, ann):
    on, off = make_schedule(ann), make_schedule(ann, next_at=None)

    page = choose(client, "schedule", [on, off], "pause")

    assert "1 paused." in page
    assert f"{off} was already paused." in page
    toast = page.split('class="toast"')[1].split("</form>")[0]
    fields = re.findall(r'name="([^"]*)" value="([^"]*)"', toast)
    client.post(reverse("schedule-selection"), dict(fields))
    assert [one.pk for one in Schedule.objects.on()] == [on.pk]


@pytest.mark.parametrize(
    ("noun", "model"), [("hook", Hook), ("rule", ScoringRule), ("webhook", Webhook)]
)
def test_what_is_enabled_is_paused_and_resumed(client, ann, noun, model):
    rows = [MAKERS[noun](ann), MAKERS[noun](ann)]

    choose(client, noun, rows, "pause")
    assert not model.objects.filter(is_on=True).exists()

    choose(client, noun, rows, "resume")
    assert model.objects.filter(is_on=True).count() == 2


def test_running_experiments_are_stopped(client, ann):
    running, done = make_running_experiment(ann), make_running_experiment(ann)
    Experiment.objects.filter(pk=done.pk).update(status="done", name="Finished")

    page = choose(client, "experiment", [running, done], "stop")

    assert "1 experiment stopped." in page
    assert "Finished was not running." in page
    running.refresh_from_db()
    assert running.status == "stopped"
    assert f'name="pick" value="{running.pk}"' not in page


@pytest.mark.parametrize("noun", MAKERS)
def test_rows_of_others_stay_as_they_are(client, ann, noun):
    row = MAKERS[noun](make_user())

    for do in ("archive", "pause", "stop"):
        choose(client, noun, [row], do)

    now = type(row).objects.get(pk=row.pk)
    assert getattr(now, "archived_at", None) is None
    assert getattr(now, "next_at", "kept") == getattr(row, "next_at", "kept")
    assert getattr(now, "is_on", True)
    assert getattr(now, "status", "") == getattr(row, "status", "")


def test_rows_that_stay_as_they_are_are_named_with_the_reason(client, ann):
    archived = make_prompt(ann, name="Old <b>", archived_at=timezone.now())
    other = make_prompt(make_user(), name="Theirs", visibility="everyone")
    hidden = make_prompt(make_user(), name="Hidden")

    page = choose(client, "prompt", [archived, other, hidden], "archive")

    assert "Old &lt;b&gt; was already archived." in page
    assert "Theirs was not changed: only its owner can do this." in page
    assert "1 selected row was not found. It may have been deleted." in page
    assert "Hidden" not in page
    assert "0 archived" not in page


def test_a_refused_row_is_named_and_the_others_change(client, ann):
    good, bad = make_schedule(ann, next_at=None), make_schedule(ann, next_at=None)
    Schedule.objects.filter(pk=bad.pk).update(cron="0 0 30 2 *", name="Leap")

    page = choose(client, "schedule", [good, bad], "resume")

    assert "1 resumed." in page
    assert "Leap: " in page


def test_without_rows_nothing_is_said_to_be_done(client, ann):
    assert "Select rows in the list first." in choose(client, "prompt", [], "archive")


def test_an_unknown_action_changes_nothing(client, ann):
    page = choose(client, "prompt", [make_prompt(ann)], "explode")

    assert "Unknown action" in page


def test_decisions_are_found_by_tool_and_note(client, ann):
    for tool, reason in (("refund", "too much"), ("send_email", "fine")):
        step = make_step(make_run(ann), tool=tool)
        make_decision(step, answer="approved", reason=reason, by=ann)

    assert "send_email" not in client.get("/approvals/answered/?q=refund").text
    assert "send_email" in client.get("/approvals/answered/?q=fine").text
    assert "Nothing found" in client.get("/approvals/answered/?q=zebra").text


@pytest.mark.parametrize("noun", ["hook", "rule", "schedule", "webhook"])
def test_rows_are_deleted_after_a_confirmation(client, ann, noun):
    rows = [MAKERS[noun](ann), MAKERS[noun](ann)]
    picked = {"pick": [row.pk for row in rows], "do": "delete"}

    asked = choose(client, noun, rows, "delete")
    assert "Delete 2 selected rows?" in asked
    assert f"{rows[0]}" in asked
    assert type(rows[0]).objects.count() == 2
    url = reverse(f"{noun}-selection")
    done = client.post(url, {**picked, "sure": "1"}, follow=True).text

    assert "2 deleted." in done
    assert not type(rows[0]).objects.exists()


def test_rows_of_others_are_not_deleted(client, ann):
    webhook = make_webhook(make_user())

    client.post(
        reverse("webhook-selection"),
        {"pick": [webhook.pk], "do": "delete", "sure": "1"},
    )

    assert Webhook.objects.exists()


def test_a_confirmation_names_rows_that_are_left_out(client, ann):
    webhook = make_webhook(ann, name="Pager")
    picked = {"pick": [webhook.pk, webhook.pk + 1], "do": "delete"}

    page = client.post(reverse("webhook-selection"), picked).text

    assert "Delete 1 selected row?" in page
    assert "1 selected row was not found." in page


def test_own_tokens_are_revoked_after_a_confirmation(client, ann):
    for name in ("Phone", "Laptop"):
        create_token(ann, name)
    create_token(make_user(), "Theirs")
    tokens = list(ApiToken.objects.all())
    page = client.get(reverse("token-list")).text
    assert page.count('name="pick"') == 2

    asked = choose(client, "token", tokens, "revoke")
    assert "Revoke 2 tokens?" in asked
    assert "Theirs" not in asked
    picked = {"pick": [token.pk for token in tokens], "do": "revoke", "sure": "1"}
    done = client.post(reverse("token-selection"), picked, follow=True).text

    assert "2 tokens revoked." in done
    assert ApiToken.objects.filter(revoked_at=None).count() == 1


def test_runs_of_a_queue_are_removed_after_a_confirmation(client, ann):
    queue = make_queue(ann)
    runs = [make_run(ann, status="succeeded", title=f"Run {n}") for n in range(3)]
    add_runs_to_queue(queue, runs, by=ann)
    items = list(queue.items.order_by("pk")[:2])
    page = client.get(reverse("queue-detail", args=[queue.pk])).text
    assert page.count('name="pick"') == 3

    asked = choose(client, "queued-run", items, "remove")
    assert "Remove 2 runs from the queue?" in asked
    assert "Run 0" in asked
    picked = {"pick": [item.pk for item in items], "do": "remove", "sure": "1"}
    client.post(reverse("queued-run-selection"), picked)

    assert [item.run for item in queue.items.all()] == [runs[2]]


def test_runs_of_a_queue_of_others_stay(client, ann):
    queue = make_queue(make_user(), visibility="everyone")
    run = make_run(ann, status="succeeded")
    add_runs_to_queue(queue, [run], by=ann)
    picked = {"pick": [queue.items.get().pk], "do": "remove", "sure": "1"}

    client.post(reverse("queued-run-selection"), picked)

    assert queue.items.exists()
    page = client.get(reverse("queue-detail", args=[queue.pk])).text
    assert 'name="pick"' not in page


def test_runs_of_a_queue_are_searched(client, ann):
    queue = make_queue(ann)
    runs = [make_run(ann, status="succeeded", title=t) for t in ("Rain", "Snow")]
    add_runs_to_queue(queue, runs, by=ann)

    page = client.get(reverse("queue-detail", args=[queue.pk]), {"q": "rain"}).text

    assert "Rain" in page
    assert "Snow" not in page
    assert 'href="?q=rain&amp;show=open"' in page
    empty = client.get(reverse("queue-detail", args=[queue.pk]), {"q": "zebra"}).text
    assert "No matching runs" in empty


def test_conversations_are_archived_with_their_branches_and_restored(client, ann):
    agent = make_agent(ann)
    trip, paper = (
        Conversation.objects.create(owner=ann, agent=agent, title=title)
        for title in ("Trip", "Paper")
    )
    branch = Conversation.objects.create(
        owner=ann, agent=agent, title="Trip", root=trip, branch_of=trip
    )
    other = Conversation.objects.create(owner=make_user(), agent=agent)
    for one in (trip, paper, branch):
        make_run(ann, agent=agent, conversation=one)
    page = client.get(reverse("chat")).text
    assert f'name="pick" value="{branch.pk}"' in page

    page = choose(client, "conversation", [branch, paper, other], "archive")

    assert "2 archived." in page
    kept = Conversation.objects.filter(archived_at=None)
    assert list(kept) == [other]
    toast = page.split('class="toast"')[1].split("</form>")[0]
    fields = re.findall(r'name="([^"]*)" value="([^"]*)"', toast)
    picked = [value for name, value in fields if name == "pick"]
    client.post(reverse("conversation-selection"), {"pick": picked, "do": "unarchive"})
    assert kept.all().count() == 4
