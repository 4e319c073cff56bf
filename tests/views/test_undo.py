"""Messages with a button that undoes what was done."""

import re

import pytest
from django.urls import reverse

from runs.models import Agent, SavedFilter, Schedule
from runs.models.runs import Conversation
from tests.make import make_agent, make_prompt, make_schedule

pytestmark = pytest.mark.django_db


def undo(client, page):
    """Press the button of the only toast; return the page after it."""
    toast = page.split('class="toast"')[1].split("</form>")[0]
    url = re.search(r'action="([^"]*)"', toast)[1]
    fields = re.findall(r'name="([^"]*)" value="([^"]*)"', toast)
    values: dict[str, list[str]] = {}
    for name, value in fields:
        values.setdefault(name, []).append(value)
    return client.post(url, values, follow=True).text


def post(client, view, *args, **fields):
    return client.post(reverse(view, args=args), fields, follow=True).text


def test_an_archived_definition_is_restored(client, ann):
    prompt = make_prompt(ann, name="Greeting")
    page = post(client, "prompt-archive", prompt.pk)
    prompt.refresh_from_db()
    assert prompt.archived_at is not None

    page = undo(client, page)

    prompt.refresh_from_db()
    assert prompt.archived_at is None
    assert "Greeting restored." in page


def test_a_new_name_is_taken_back(client, ann):
    agent = make_agent(ann, name="planner")

    undo(client, post(client, "agent-rename", agent.pk, name="Ünïted & co"))

    agent.refresh_from_db()
    assert agent.name == "planner"


def test_agents_that_were_archived_before_stay_so(client, ann):
    one, two, old = (make_agent(ann) for _ in range(3))
    post(client, "agent-archive", old.pk)
    keys = [one.pk, two.pk, old.pk]
    page = post(client, "agent-choices", agent=keys, do="archive", here="/agents/")

    page = undo(client, page)

    assert "2 agents restored." in page
    archived = Agent.objects.filter(archived_at__isnull=False)
    assert [agent.pk for agent in archived] == [old.pk]


def test_a_paused_schedule_is_resumed(client, ann):
    schedule = make_schedule(ann)

    undo(client, post(client, "schedule-pause", schedule.pk))

    assert Schedule.objects.on().filter(pk=schedule.pk).exists()


def test_a_deleted_filter_is_saved_again(client, ann):
    kept = SavedFilter.objects.create(owner=ann, name="Mine", query="status=failed")

    undo(client, post(client, "saved-filter-delete", kept.pk))

    assert SavedFilter.objects.get().query == "status=failed"


def test_an_archived_conversation_is_back_in_the_list(client, ann):
    agent = make_agent(ann)
    talk = Conversation.objects.create(owner=ann, agent=agent, title="Trip")

    undo(client, post(client, "chat-archive", agent.slug, talk.pk))

    talk.refresh_from_db()
    assert talk.archived_at is None


def test_errors_stay_on_the_page_and_are_no_toast(client, ann):
    agent = make_agent(ann)

    page = post(client, "agent-rename", agent.pk, name="")

    toasts = page.split('id="part-toasts"')[1].split("<template")[0]
    assert 'class="toast"' not in toasts
    assert "Not renamed" in page.split('id="part-messages"')[1].split("</div>")[0]
