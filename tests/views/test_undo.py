"""Messages with a button that undoes what was done."""

import re
from html import unescape

import pytest
from django.urls import reverse
from django.utils import timezone

from runs.models import Agent, RunTag, SavedFilter, Schedule
from runs.models.runs import Conversation
from runs.services.datasets.content import ExampleContent
from runs.services.datasets.edit import add_examples
from runs.services.datasets.working_copy import find_working_example
from tests.make import (
    make_agent,
    make_hook,
    make_prompt,
    make_run,
    make_schedule,
    make_webhook,
)
from tests.makers.experiments import make_examples
from tests.makers.scoring import make_rule
from tests.tools.rows import make_tool
from tests.views.tools.test_bulk_actions import manager
from tools.models import Tool

pytestmark = pytest.mark.django_db


def undo(client, page):
    """Press the button of the only toast; return the page after it."""
    toast = page.split('class="toast"')[1].split("</form>")[0]
    url = re.search(r'action="([^"]*)"', toast)[1]
    fields = re.findall(r'name="([^"]*)" value="([^"]*)"', toast)
    values: dict[str, list[str]] = {}
    for name, value in fields:
        values.setdefault(name, []).append(unescape(value))
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
    page = post(client, "agent-selection", agent=keys, do="archive", here="/agents/")
    assert "2 agents archived." in page
    assert f"{old} was already archived." in page

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


def test_a_renamed_conversation_gets_its_title_back(client, ann):
    agent = make_agent(ann)
    talk = Conversation.objects.create(owner=ann, agent=agent, title="Trip")

    undo(client, post(client, "chat-rename", agent.slug, talk.pk, title="Oslo"))

    talk.refresh_from_db()
    assert talk.title == "Trip"


@pytest.mark.parametrize(
    ("do", "field", "values"),
    [
        ("enable", "enabled", [False, True]),
        ("disable", "enabled", [True, False]),
        ("share", "visibility", ["private", "groups", "everyone"]),
        ("unshare", "visibility", ["everyone", "groups", "private"]),
        ("ask_always", "approval", ["never", "side_effects", "always"]),
        ("ask_never", "approval", ["always", "side_effects", "never"]),
        ("archive", "archived_at", [None, timezone.now()]),
        ("unarchive", "archived_at", [timezone.now(), None]),
    ],
)
def test_each_tool_gets_its_earlier_value_back(client, do, field, values):
    owner = manager()
    client.force_login(owner)
    for number, value in enumerate(values):
        make_tool(name=f"tool_{number}", owner=owner, **{field: value})
    tools = Tool.objects.order_by("name")

    page = post(client, "tool-selection", tool=[t.pk for t in tools], do=do)
    changed = len(set(tools.values_list(field, flat=True)))
    page = undo(client, page)

    assert changed == 1 or field == "archived_at"
    assert f"Undone for {len(values) - 1} tool" in page
    after = list(tools.values_list(field, flat=True))
    if field == "archived_at":
        after, values = [bool(one) for one in after], [bool(one) for one in values]
    assert after == values


def test_a_tool_that_changed_meanwhile_keeps_its_value(client):
    owner = manager()
    client.force_login(owner)
    tool = make_tool(owner=owner, approval="never")
    page = post(client, "tool-selection", tool=[tool.pk], do="ask_effects")
    Tool.objects.update(approval="always")

    page = undo(client, page)

    assert "Nothing was undone" in page
    assert Tool.objects.get().approval == "always"


def test_an_agent_that_changed_meanwhile_keeps_its_groups(client, ann):
    agents = [make_agent(ann, name=f"agent {n}") for n in range(2)]
    page = post(client, "agent-selection", agent=[a.pk for a in agents], do="share")
    Agent.objects.filter(pk=agents[0].pk).update(visibility="groups")

    undo(client, page)

    found = Agent.objects.order_by("name").values_list("visibility", flat=True)
    assert list(found) == ["groups", "private"]


@pytest.mark.parametrize(
    ("do", "before"),
    [("share", ["private", "everyone"]), ("unshare", ["everyone", "private"])],
)
def test_sharing_of_agents_is_undone(client, ann, do, before):
    for number, visibility in enumerate(before):
        make_agent(ann, name=f"agent {number}", visibility=visibility)
    agents = Agent.objects.order_by("name")

    page = post(client, "agent-selection", agent=[a.pk for a in agents], do=do)
    assert len(set(agents.values_list("visibility", flat=True))) == 1
    assert {"share": "1 agent shared", "unshare": "1 agent is now"}[do] in page
    assert "agent 1 was already" in page
    undo(client, page)

    assert list(agents.values_list("visibility", flat=True)) == before


def test_lost_groups_of_an_agent_offer_no_undo(client, ann):
    agent = make_agent(ann, visibility="groups")

    page = post(client, "agent-selection", agent=[agent.pk], do="share")

    assert "1 agent shared with everyone." in page
    assert ">Undo<" not in page


@pytest.mark.parametrize(
    ("noun", "make"),
    [
        ("hook", make_hook),
        ("rule", lambda owner: make_rule(make_agent(owner))),
        ("webhook", make_webhook),
    ],
)
@pytest.mark.parametrize("is_on", [True, False])
def test_a_switch_is_undone(client, ann, noun, make, is_on):
    row = make(ann)
    type(row).objects.update(is_on=is_on)

    page = post(client, f"{noun}-switch", row.pk, on="0" if is_on else "1")
    row.refresh_from_db()
    assert row.is_on is not is_on
    undo(client, page)

    row.refresh_from_db()
    assert row.is_on is is_on


def test_a_tag_is_removed_only_from_runs_that_got_it(client, ann):
    had, new = make_run(ann), make_run(ann)
    RunTag.objects.create(run=had, name="Ünïted & co")
    picked = {"run": [had.pk, new.pk], "do": "tag", "tag": "Ünïted & co"}

    page = post(client, "run-selection", **picked)
    assert RunTag.objects.count() == 2
    undo(client, page)

    assert [tag.run_id for tag in RunTag.objects.all()] == [had.pk]


def test_a_removed_tag_is_added_again(client, ann):
    run = make_run(ann)
    RunTag.objects.create(run=run, name="good")
    page = post(client, "run-selection", run=[run.pk], do="tag", tag="good")
    assert not RunTag.objects.exists()

    undo(client, page)

    assert RunTag.objects.get().name == "good"


@pytest.mark.parametrize("before", [[True, False], [True, True]])
def test_runs_are_kept_as_they_were(client, ann, before):
    runs = [make_run(ann, keep_forever=keep) for keep in before]

    page = post(client, "run-selection", run=[run.pk for run in runs], do="keep")
    undo(client, page)

    for run in runs:
        run.refresh_from_db()
    assert [run.keep_forever for run in runs] == before


def test_a_removed_example_is_restored(client, ann):
    dataset = make_examples(ann, 1)

    page = post(client, "dataset-example-remove", dataset.pk, 1)
    assert find_working_example(dataset, 1).change == "removed"
    undo(client, page)

    assert find_working_example(dataset, 1).change == ""


def test_removed_examples_are_restored(client, ann):
    dataset = make_examples(ann, 3)

    page = post(client, "dataset-examples-remove", dataset.pk, pick=[1, 3])
    assert "2 examples removed." in page
    changes = [find_working_example(dataset, n).change for n in (1, 2, 3)]
    assert changes == ["removed", "", "removed"]
    page = undo(client, page)

    assert "2 examples restored." in page
    assert not dataset.examples.unsaved().exists()


def test_a_lost_unsaved_change_of_an_example_offers_no_undo(client, ann):
    dataset = make_examples(ann, 1)
    add_examples(dataset, [ExampleContent(inputs={"input": "new"})], by=ann)
    assert 'name="pick" value="2"' in client.get(f"/datasets/{dataset.pk}/").text

    page = post(client, "dataset-examples-remove", dataset.pk, pick=[1, 2])

    assert "2 examples removed." in page
    assert ">Undo<" not in page
    assert find_working_example(dataset, 2) is None


def test_errors_stay_on_the_page_and_are_no_toast(client, ann):
    agent = make_agent(ann)

    page = post(client, "agent-rename", agent.pk, name="")

    toasts = page.split('id="part-toasts"')[1].split('id="part-lost"')[0]
    assert 'class="toast"' not in toasts
    assert "Not renamed" in page.split('id="part-messages"')[1].split("</div>")[0]
