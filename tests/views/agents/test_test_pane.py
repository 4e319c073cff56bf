"""The right pane of an agent's page: test chat, exact prompt, side by side."""

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from runs.models import Conversation, Run
from runs.services.agents.publish import publish_agent
from runs.services.agents.save import get_draft_token, save_agent
from tests.make import fit, make_agent, make_provider, make_run, make_step, make_user
from tests.support.html import strip_tags

pytestmark = pytest.mark.django_db
HX = {"HX-Request": "true"}


def end_runs() -> None:
    Run.objects.update(status="succeeded", **fit("succeeded", timezone.now()))


def test_a_message_starts_a_test_of_the_draft_and_shows_it(client, ann):
    agent = make_agent(ann)
    publish_agent(agent, by=ann)

    answer = client.post(
        f"/agents/{agent.pk}/test/",
        {"input": "你好", "conversation_id": "new"},
        headers=HX,
    )

    run = Run.objects.get()
    part = answer.content.decode()
    assert part.strip().startswith('<section class="pane" id="agent-try"')
    assert "你好" in part
    assert f'hx-sse:connect="/live/turns/{run.pk}/"' in part
    assert (run.is_test, run.version) == (True, None)
    assert answer.headers["HX-Push-Url"].endswith(f"conversation={run.conversation_id}")


def test_without_a_script_it_leads_back_to_the_page(client, ann):
    agent = make_agent(ann)

    answer = client.post(f"/agents/{agent.pk}/test/", {"input": "Hello"})

    page = client.get(answer.headers["Location"]).content.decode()
    assert "Hello" in page
    assert "Open test run" in page


def test_the_next_message_belongs_to_the_same_chat(client, ann):
    agent = make_agent(ann, memory=True)
    client.post(f"/agents/{agent.pk}/test/", {"input": "a", "conversation_id": "new"})
    conversation = Conversation.objects.get()
    end_runs()

    client.post(
        f"/agents/{agent.pk}/test/",
        {"input": "b", "conversation_id": str(conversation.pk)},
    )
    client.post(f"/agents/{agent.pk}/test/", {"input": "c", "conversation_id": "new"})

    assert conversation.runs.count() == 2
    assert Conversation.objects.count() == 2


@pytest.mark.parametrize("headers", [HX, {}], ids=["htmx", "plain"])
def test_a_message_during_an_answer_is_refused_and_kept(client, ann, headers):
    agent = make_agent(ann, memory=True)
    address = f"/agents/{agent.pk}/test/"
    client.post(address, {"input": "a", "conversation_id": "new"})
    sent = {"input": "Keep me", "conversation_id": str(Conversation.objects.get().pk)}

    answer = client.post(address, sent, headers=headers)

    assert "The previous answer is still being written." in answer.text
    assert "Keep me" in answer.text
    assert Run.objects.count() == 1


@pytest.mark.parametrize("headers", [HX, {}], ids=["htmx", "plain"])
def test_a_later_draft_than_the_page_shows_is_not_tested(client, ann, headers):
    agent, version = make_agent(ann), {"version-1": "1"}
    publish_agent(agent, by=ann)
    seen = get_draft_token(agent)
    save_agent(agent, uses=[], instructions="In another tab.")
    sent = {"input": "Hello", "seen": seen}

    chat = client.post(f"/agents/{agent.pk}/test/", sent, headers=headers)
    sides = f"/agents/{agent.pk}/side-by-side/"
    both = client.post(sides, sent | version | {"version-2": "draft"}, headers=headers)
    runs_before = Run.objects.count()
    client.post(sides, sent | version, headers=headers)

    for answer in (chat, both):
        assert "Not started: this draft was saved in another tab" in answer.text
        assert "Hello" in answer.text
    assert runs_before == 0
    assert Run.objects.get().version.number == 1


@pytest.mark.parametrize("headers", [HX, {}], ids=["htmx", "plain"])
def test_what_is_missing_is_said_at_its_field_and_nothing_is_lost(client, ann, headers):
    agent = make_agent(ann)
    save_agent(agent, uses=[], instructions="In {city}.")

    answer = client.post(
        f"/agents/{agent.pk}/test/", {"input": "Keep me"}, headers=headers
    )

    shown = answer.content.decode()
    assert "id_in-city-error" in shown
    assert "Keep me" in shown
    assert not Run.objects.exists()


def test_a_draft_that_cannot_run_says_why(client, ann):
    agent = make_agent(ann)
    save_agent(agent, uses=[], instructions="In {city")

    shown = client.post(f"/agents/{agent.pk}/test/", {"input": "x"}, headers=HX)

    assert "is not a variable" in shown.content.decode()
    assert not Run.objects.exists()


def test_the_answer_stands_below_its_folded_steps(client, ann):
    agent = make_agent(ann)
    chat = Conversation.objects.create(owner=ann, agent=agent, is_test=True)
    run = make_run(
        ann,
        agent=agent,
        conversation=chat,
        status="succeeded",
        output="**Four**",
        is_test=True,
    )
    make_step(run, tool="calculator", observation="4 apples")

    page = client.get(f"/agents/{agent.pk}/edit/").content.decode()

    assert "<strong>Four</strong>" in page
    assert "4 apples" in page
    assert f'href="/runs/{run.pk}/"' in page
    assert "/live/turns/" not in page


def test_a_test_shows_its_duration_and_cost(client, ann):
    agent = make_agent(ann)
    now = timezone.now()
    make_run(
        ann,
        agent=agent,
        conversation=Conversation.objects.create(owner=ann, agent=agent, is_test=True),
        is_test=True,
        status="succeeded",
        input_tokens=1_200,
        cost=Decimal("0.0149"),
        started_at=now - timedelta(seconds=31),
        ended_at=now,
    )

    page = client.get(f"/agents/{agent.pk}/edit/").content.decode()

    summary = strip_tags(
        page.partition('<details class="did"')[2].split("</summary>")[0]
    )
    assert "in 31 s" in summary
    assert "1,200 tokens · $0.0149" in summary


def test_the_other_ways_are_parts_of_the_same_address(client, ann):
    agent = make_agent(ann)

    prompt = client.get(f"/agents/{agent.pk}/edit/?try=prompt", headers=HX)
    side = client.get(f"/agents/{agent.pk}/edit/?try=side", headers=HX)

    assert 'id="agent-preview-body"' in prompt.content.decode()
    assert 'name="version-4"' in side.content.decode()


def test_runs_side_by_side_what_was_chosen(client, ann):
    agent = make_agent(ann)
    publish_agent(agent, by=ann)
    chosen = {"version-1": "draft", "version-2": "1", "version-3": "draft"}
    model = {"model-3": f"{agent.provider_id}:model-a"}

    answer = client.post(
        f"/agents/{agent.pk}/side-by-side/", {"input": "x"} | chosen | model
    )

    assert Run.objects.count() == 3
    page = client.get(answer.headers["Location"]).content.decode()
    assert page.count('id="turn-answer-') == 3
    assert "Version 1" in page


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        pytest.param({"input": ""}, "Enter a value for", id="no question"),
        pytest.param({"version-2": "7"}, "Select a valid choice", id="no version"),
        pytest.param({"model-1": "9:none"}, "Select a valid choice", id="no model"),
        pytest.param({"version-1": ""}, "Select a value for", id="nothing"),
    ],
)
def test_a_wrong_choice_is_said_and_starts_nothing(client, ann, typed, says):
    agent = make_agent(ann)
    given = {"input": "x", "version-1": "draft"} | typed

    answer = client.post(f"/agents/{agent.pk}/side-by-side/", given, headers=HX)

    assert says in answer.content.decode()
    assert not Run.objects.exists()


@pytest.mark.parametrize(("query", "view"), [("", ""), ("?try=chat", "2")])
def test_the_server_says_which_pane_a_phone_shows(client, ann, query, view):
    agent = make_agent(ann)

    page = client.get(f"/agents/{agent.pk}/edit/{query}").content.decode()

    panes = page.split('<div class="panes even" id="agent-panes"')[1].split(">")[0]
    assert panes.strip() == (f'data-view="{view}"' if view else "")


def test_other_peoples_runs_and_chats_are_not_shown(client, ann):
    agent = make_agent(ann)
    ben = make_user()
    conversation = Conversation.objects.create(owner=ben, agent=agent, is_test=True)
    run = make_run(
        ben, agent=agent, conversation=conversation, inputs={"input": "TOP SECRET"}
    )

    for query in (
        f"?try=chat&conversation={conversation.pk}",
        f"?try=side&runs={run.pk}",
    ):
        page = client.get(f"/agents/{agent.pk}/edit/{query}").content.decode()
        assert "TOP SECRET" not in page


def test_a_stranger_can_test_nothing(client, ann):
    agent = make_agent(visibility="everyone")

    codes = {
        client.post(f"/agents/{agent.pk}/test/", {"input": "x"}).status_code,
        client.post(f"/agents/{agent.pk}/side-by-side/", {"input": "x"}).status_code,
    }

    assert codes == {404}
    assert not Run.objects.exists()


@pytest.mark.parametrize("query", ["?try=x", "?try=side&runs=a-²-9", "?conversation=²"])
def test_nonsense_in_the_address_is_no_error(client, ann, query):
    agent = make_agent(ann)

    assert client.get(f"/agents/{agent.pk}/edit/{query}").status_code == 200


def test_one_starts_from_a_template_without_a_script(client, ann):
    agent = make_agent(ann)

    page = client.get(f"/agents/{agent.pk}/edit/?start=researcher").content.decode()

    field = page.split('name="instructions"')[1].split("</textarea>")[0]
    assert "You find things out." in field


def test_an_unpublished_draft_is_compared_with_another_model_at_first(client, ann):
    agent = make_agent(ann)
    other = make_provider(ann, default_model="model-z")

    part = client.get(f"/agents/{agent.pk}/edit/?try=side", headers=HX)

    form = part.context["side"].form
    assert form["model-2"].value() == f"{other.pk}:model-z"
    assert not form["version-3"].value()


def test_a_test_is_compared_with_the_version_before_by_one_click(client, ann):
    agent = make_agent(ann)
    save_agent(agent, uses=[], instructions="Answer in {language}.")
    publish_agent(agent, by=ann)
    typed = {"input": "Hi", "in-language": "French", "conversation_id": "new"}
    client.post(f"/agents/{agent.pk}/test/", typed)

    same = client.get(f"/agents/{agent.pk}/edit/").content.decode()
    save_agent(agent, uses=[], instructions="Answer in {language}, politely.")
    changed = client.get(f"/agents/{agent.pk}/edit/").content.decode()

    assert "Compare with version" not in same
    form = changed[changed.index('<form class="again"') :]
    form = form[: form.index("</form>")]
    assert "Compare with version 1" in form
    sent = dict(re.findall(r'name="([a-z0-9-]+)" value="([^"]*)"', form))
    client.post(f"/agents/{agent.pk}/side-by-side/", sent)
    draft, version = Run.objects.order_by("pk")[1:]
    assert (draft.version, version.version.number) == (None, 1)
    assert draft.inputs == version.inputs == {"input": "Hi", "language": "French"}


def test_earlier_messages_of_a_test_chat_are_folded(client, ann):
    agent = make_agent(ann)
    address = f"/agents/{agent.pk}/test/"
    for text in ("first", "second", "third", "fourth"):
        latest = Conversation.objects.first()
        chosen = str(latest.pk) if latest else "new"
        client.post(address, {"input": text, "conversation_id": chosen})
        end_runs()

    page = client.get(f"/agents/{agent.pk}/edit/").content.decode()

    log = page[page.index('role="log"') :]
    fold = log[log.index("<details") : log.index("third")]
    assert "2 earlier messages" in fold
    assert fold.index("first") < fold.index("second")
    assert fold.index("second") < fold.rindex("</details>")
    assert "fourth" in log


def test_an_earlier_message_without_an_answer_is_not_folded(client, ann):
    agent = make_agent(ann)
    for text in ("first", "second", "third", "fourth", "fifth"):
        latest = Conversation.objects.first()
        chosen = str(latest.pk) if latest else "new"
        sent = {"input": text, "conversation_id": chosen}
        client.post(f"/agents/{agent.pk}/test/", sent)
        if text == "first":
            end_runs()

    page = client.get(f"/agents/{agent.pk}/edit/").text

    log = page[page.index('role="log"') :]
    assert "1 earlier message" in log
    assert log.index("</details>") < log.index("second")
    assert log.count('action="/runs/') >= 4
