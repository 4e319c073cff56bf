"""The chat pages."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from runs.engine.stopping import get_stop_message
from runs.models import Agent, Conversation, Run
from runs.services.agents.publish import publish_agent
from runs.services.runs.conversation_runs import get_conversation_turns
from runs.services.runs.resume import resume_run
from runs.services.search.index_runs import index_runs
from runs.views.chat import conversation_list
from runs.views.chat.turns import build_run_turn
from tests.make import (
    make_agent,
    make_attempt,
    make_provider,
    make_run,
    make_step,
    make_user,
)
from tests.support.html import join_lines

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent(ann):
    return make_agent(ann, slug="planner", name="Planner", memory=True)


@pytest.fixture
def many_agents(ann):
    for number in range(70):
        make_agent(ann, name=f"Helper {number:02}", description=f"Task {number}.")


def text(client, path, **body):
    answer = client.post(path, body, follow=True) if body else client.get(path)
    return join_lines(answer.content.decode())


def say(client, words, **more):
    client.post("/chat/planner/say/", {"input": words, **more})
    return Run.objects.order_by("-pk").first()


def finish(run, output="It rains.", status="succeeded"):
    Run.objects.filter(pk=run.pk).update(
        status=status, output=output, ended_at=run.created_at
    )


def test_lists_the_agents_and_ones_conversations(client, agent):
    run = say(client, "Is it raining?")

    page = text(client, "/chat/")

    assert "/chat/planner/" in page
    assert f"/chat/planner/{run.conversation_id}/" in page
    assert "Is it raining?" in page


@pytest.mark.parametrize("path", ["", "planner/", "planner/{}/"])
def test_the_list_of_conversations_follows_what_its_runs_do(client, agent, path):
    run = say(client, "Is it raining?")
    url = f"/chat/{path.format(run.conversation_id)}"

    part = client.get(url, headers={"HX-Request": "true"})
    finish(run)
    over = client.get(url, headers={"HX-Request": "true"}).content.decode()

    shown = " ".join(part.content.decode().split())
    assert f'hx-get="{url}" hx-trigger="every 3s"' in shown
    assert "<html" not in shown
    assert 'data-status="queued"' in part.content.decode()
    assert "HX-Request" in part.headers["Vary"]
    assert f'hx-get="{url}" hx-trigger="every 15s"' in " ".join(over.split())
    assert "data-status=" not in over


def views_of(*pages):
    """Return which of the two panes a phone shows."""
    return [re.findall(r'data-view="(\d)"', page) for page in pages]


def test_a_phone_shows_the_list_or_one_conversation(client, agent):
    empty = text(client, "/chat/")
    run = say(client, "Is it raining?")
    pages = ["/chat/", "/chat/?new=1", "/chat/planner/"]
    pages += [f"/chat/planner/{run.conversation_id}/", "/chat/?q=nothing"]
    shown = views_of(empty, *(text(client, page) for page in pages))

    assert shown == [["2"], ["1"], ["2"], ["2"], ["2"], ["1"]]
    assert views_of(text(client, "/chat/planner/say/", input="")) == [["2"]]


def test_a_user_of_one_agent_can_write_at_once(client, ann, agent):
    assert 'placeholder="Message Planner"' in text(client, "/chat/")
    make_agent(ann, slug="other", name="Other")

    page = text(client, "/chat/")
    assert "Message Planner" not in page
    assert 'href="/chat/other/"' in page


def test_an_empty_conversation_offers_the_published_questions(client, agent):
    Agent.objects.update(suggested_questions=["Is it raining?"])
    agent.refresh_from_db()
    publish_agent(agent, by=agent.owner)
    Agent.objects.update(suggested_questions=["Not yet published"])
    page = text(client, "/chat/planner/")
    assert 'value="Is it raining?"' in page
    assert "Not yet published" not in page

    client.post("/chat/planner/say/", {"suggestion": "Is it raining?", "input": ""})
    run = Run.objects.get()
    assert run.inputs == {"input": "Is it raining?"}
    assert "suggestion" not in text(client, f"/chat/planner/{run.conversation_id}/")


def listed(page):
    """Return the titles in the list of conversations."""
    part = page.split('id="chat-list"')[1].split('class="conv-foot')[0]
    return re.findall(r'class="clip grow">(.*?)</span>', part)


def test_a_script_that_sends_a_message_gets_the_address_of_its_page(client, ann):
    make_agent(ann, slug="planner")
    headers = {"HX-Request": "true"}
    sent = client.post("/chat/planner/say/", {"input": "Hello"}, headers=headers)
    run = Run.objects.get()
    page = f"/chat/planner/{run.conversation_id}/"
    again = client.post(f"{page}branch/{run.pk}/", headers=headers)

    assert (sent.status_code, sent.headers["HX-Redirect"]) == (200, page)
    assert again.status_code == 200
    assert again.headers["HX-Redirect"].startswith("/chat/planner/")


def test_search_finds_titles_questions_and_answers_once_each(client, agent):
    first = say(client, "Is it RAINING in Oslo?")
    finish(first, "Only in **Bergen**.")
    edited = branch(client, first, input="And snow in Oslo?")
    finish(edited, "Bergen has none.")
    finish(say(client, "Trains to Rome"), "At nine.")
    while index_runs():
        pass
    found = text(client, "/chat/?q=bergen")

    assert listed(found) == ["Is it RAINING in Oslo?"]
    assert "<mark>Bergen</mark> has none." in found
    target = f"/chat/planner/{edited.conversation_id}/?at={edited.pk}"
    assert f'href="{target}#chat-turn-{edited.pk}"' in found
    assert "You: Is it <mark>RAINING</mark>" in text(client, "/chat/?q=raining")
    assert listed(text(client, "/chat/planner/?q=trains")) == [
        "<mark>Trains</mark> to Rome"
    ]
    assert "No conversation contains “Paris”" in text(client, "/chat/?q=Paris")


def test_search_costs_no_query_a_conversation(client, agent):
    def count_queries(number):
        for _ in range(number):
            finish(say(client, "Is it raining?"))
        while index_runs():
            pass
        with CaptureQueriesContext(connection) as queries:
            client.get("/chat/?q=rain")
        return len(queries)

    assert count_queries(1) == count_queries(5)


def test_search_finds_nothing_of_others_or_of_agents_no_longer_shared(client, ann):
    shared = make_agent(make_user(), slug="planner", visibility="everyone")
    finish(say(client, "Is it raining?"))
    other = Conversation.objects.create(owner=shared.owner, agent=shared, title="rain")
    make_run(shared.owner, agent=shared, conversation=other, title="rain")
    assert len(listed(text(client, "/chat/?q=rain"))) == 1

    Agent.objects.update(visibility="private")
    assert listed(text(client, "/chat/?q=rain")) == []


def test_a_conversation_with_an_archived_agent_can_be_read_only(client, agent):
    run = say(client, "Is it raining?")
    finish(run)
    Agent.objects.update(archived_at=timezone.now())
    path = f"/chat/planner/{run.conversation_id}/"
    page = text(client, path)

    assert "This agent is archived." in page
    assert "It rains." in page
    assert 'id="chat-form"' not in page
    assert "Regenerate" not in page
    assert listed(page) == ["Is it raining?"]
    assert "Unarchive it" in text(client, f"{path}branch/{run.pk}/", input="Again")


def test_an_archived_conversation_is_found_in_the_archive_and_put_back(client, agent):
    run = say(client, "Is it raining?")
    path = f"/chat/planner/{run.conversation_id}/"
    client.post(f"{path}archive/")

    assert listed(text(client, "/chat/")) == []
    assert listed(text(client, "/chat/?archived=1")) == ["Is it raining?"]
    assert "This conversation is archived." in text(client, path)
    client.post(f"{path}unarchive/")
    assert listed(text(client, "/chat/")) == ["Is it raining?"]


def test_conversations_are_grouped_by_age(client, agent):
    for days in (40, 20, 3, 0):
        run = say(client, f"{days} days ago")
        at = timezone.now() - timedelta(days=days)
        Run.objects.filter(pk=run.pk).update(created_at=at)

    headings = re.findall(r'when-head">(.*?)<', text(client, "/chat/"))
    assert headings == ["Last 24 hours", "Last 7 days", "Last 30 days", "Older"]


def test_earlier_conversations_are_on_pages_of_their_own(client, agent, monkeypatch):
    monkeypatch.setattr(conversation_list, "MAX_CONVERSATIONS", 2)
    runs = [say(client, f"Question {n}") for n in range(5)]
    for run in runs:
        finish(run)
    branch(client, runs[1], input="Edited")  # the newest of all
    newest = text(client, "/chat/")
    url = re.findall(r'href="(/chat/\?earlier=\d+)"', newest)[0]
    second = text(client, url)
    part = client.get(url, headers={"HX-Request": "true"}).text
    last = text(client, re.findall(r'href="(/chat/\?earlier=\d+)"', second)[-1])

    assert listed(newest) == ["Question 1", "Question 4"]
    assert listed(second) == listed(part) == ["Question 3", "Question 2"]
    assert listed(last) == ["Question 0"]
    assert f'hx-get="{url}"' in part
    assert 'href="/chat/">' in part
    assert "Newest conversations" in part
    assert "Earlier conversations" not in last
    beside = f"/chat/planner/{runs[2].conversation_id}/?{url.split('?')[1]}"
    assert f'href="{beside}"' in second
    assert listed(text(client, beside)) == ["Question 3", "Question 2"]


@pytest.mark.parametrize(
    ("is_staff", "has_agent", "is_calm"),
    [(False, False, True), (True, False, False), (False, True, False)],
)
def test_people_who_only_chat_see_no_workers(client, ann, is_staff, has_agent, is_calm):
    make_agent(make_user(), slug="shared", visibility="everyone")
    User.objects.filter(pk=ann.pk).update(is_staff=is_staff)
    if has_agent:
        make_agent(ann)
    page = text(client, "/chat/")

    assert ("No worker" not in page) is is_calm
    assert ("/account/tokens/" not in page.split("<main")[0]) is is_calm


def test_people_who_only_chat_stay_in_the_chat(client, ann):
    make_agent(make_user(), slug="planner", visibility="everyone")
    top = text(client, "/chat/").split("<main")[0]
    assert '<a class="brand" href="/chat/">' in top
    assert 'href="/">' in top.split('class="who"')[1]

    make_agent(ann)
    assert '<a class="brand" href="/">' in text(client, "/chat/")


def hide(page, name):
    """Return a page without the elements of a class."""
    return re.sub(rf'<(\w+)[^>]*class="[^"]*\b{name}\b[^"]*"[^>]*>.*?</\1>', "", page)


def test_people_who_only_chat_see_no_rounds_runs_or_datasets(client, ann):
    make_agent(make_user(), slug="planner", visibility="everyone")
    run = say(client, "Is it raining?")
    path = f"/chat/planner/{run.conversation_id}/"
    queued = hide(text(client, path), "full-only")
    finish(run)
    Run.objects.update(rounds=2, input_tokens=300)
    over = hide(text(client, path), "full-only")
    make_agent(ann)
    full = hide(text(client, path), "calm-only")

    assert "Waiting to start" in queued
    assert "No worker is running" not in queued
    assert "Answered in" in over
    internals = ["2 rounds", "300 tokens", f"Open run {run.pk}", "Add to dataset"]
    assert [words for words in internals if words in over] == []
    assert [words for words in internals if words in full] == internals


def test_the_first_words_begin_a_conversation_with_their_title(client, agent):
    run = say(client, "Is it raining?\nIn Oslo?")

    page = text(client, f"/chat/planner/{run.conversation_id}/")

    assert run.conversation.title == "Is it raining?"
    assert f'hx-sse:connect="/live/turns/{run.pk}/"' in page


def test_the_next_words_belong_to_it_and_the_model_knows_the_earlier(client, agent):
    first = say(client, "Is it raining?")
    finish(first)
    second = say(client, "And tomorrow?", conversation_id=first.conversation_id)

    assert second.conversation_id == first.conversation_id
    assert second.turn_ids == [first.pk]


def test_an_agent_without_memory_is_said_to_have_none(client, ann):
    make_agent(ann, slug="planner", memory=False)
    first = say(client, "One")
    finish(first)
    second = say(client, "Two", conversation_id=first.conversation_id)

    assert second.conversation_id == first.conversation_id
    assert second.turn_ids == []
    assert "The agent does not remember" in text(client, "/chat/planner/")


def test_refuses_to_say_nothing(client, agent):
    page = text(client, "/chat/planner/say/", input="  ")

    assert "New conversation with Planner" in page
    assert "field-error" in page
    assert not Conversation.objects.exists()


def test_a_message_beyond_the_limit_is_kept_in_the_box(client, agent, settings):
    settings.USER_RUNS = 1
    first = say(client, "One")
    body = {"input": "Kept text", "conversation_id": first.conversation_id}
    page = text(client, "/chat/planner/say/", **body)

    assert Run.objects.count() == 1
    assert "Kept text</textarea>" in page
    assert 'role="alert"' in page
    assert 'class="ask plain-text">One<' in page


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        ("running", "still being written. Wait"),
        ("awaiting_approval", "Approve or reject the call"),
        ("awaiting_decision", "Decide how to continue"),
        ("waiting", "is waiting to continue. Wait"),
    ],
)
def test_a_message_before_the_previous_answer_is_kept_in_the_box(
    client, ann, agent, status, advice
):
    conversation = Conversation.objects.create(owner=ann, agent=agent)
    make_run(ann, agent=agent, conversation=conversation, status=status)
    body = {"input": "Kept text", "conversation_id": conversation.pk}
    page = text(client, "/chat/planner/say/", **body)

    assert Run.objects.count() == 1
    assert "Kept text</textarea>" in page
    assert advice in page


def test_the_run_page_sends_no_message_before_the_previous_answer(client, agent):
    first = say(client, "One")
    finish(first)
    say(client, "Two", conversation_id=first.conversation_id)
    page = text(client, f"/runs/{first.pk}/continue/", input="Kept text")

    assert Run.objects.count() == 2
    assert "still being written" in page
    assert "Kept text</textarea>" in page


def test_a_turn_says_which_limit_it_waits_for(client, ann, agent):
    conversation = Conversation.objects.create(owner=ann, agent=agent)
    provider = make_provider(owner=ann, name="Fake", max_concurrent_runs=1)
    fields = {"waiting_for": "provider", "waiting_provider": provider}
    make_run(agent=agent, conversation=conversation, status="waiting", **fields)
    page = text(client, f"/chat/planner/{conversation.pk}/")

    words = "Waiting for a slot: provider Fake runs 1 of 1"
    assert f'class="full-only">{words}</span>' in page
    assert f'class="calm-only">{words}</span>' in page


def test_shows_the_answer_and_what_can_be_done_with_it(client, agent):
    run = say(client, "Is it raining?")
    finish(run, "**Yes**, it is.")

    page = text(client, f"/chat/planner/{run.conversation_id}/")

    assert "<strong>Yes</strong>, it is." in page
    assert "Regenerate" in page
    assert "/live/turns/" not in page


def test_stops_what_is_not_over(client, agent):
    run = say(client, "Is it raining?")
    client.post(f"/chat/planner/{run.conversation_id}/stop/")

    assert Run.objects.get(pk=run.pk).status == "canceled"


def branch(client, run, **body):
    path = f"/chat/planner/{run.conversation_id}/branch/{run.pk}/"
    client.post(path, body)
    return Run.objects.order_by("-pk").first()


def test_stops_what_was_said_before_the_branch_too(client, agent):
    first = say(client, "One")
    second = make_run(first.owner, agent=agent, conversation=first.conversation)
    other = branch(client, second, input="Three")

    client.post(f"/chat/planner/{other.conversation_id}/stop/")

    status = dict(Run.objects.values_list("pk", "status"))
    assert status == {
        first.pk: "canceled",
        second.pk: "queued",
        other.pk: "canceled",
    }


def test_lists_no_conversation_whose_page_is_gone(client, ann):
    shared = make_agent(make_user(), slug="planner", visibility="everyone")
    say(client, "Is it raining?")
    assert "Is it raining?" in text(client, "/chat/")

    shared.visibility = "private"
    shared.save()
    assert "Is it raining?" not in text(client, "/chat/")


def test_an_edited_question_begins_a_branch_that_knows_what_was_before(client, agent):
    first = say(client, "One")
    finish(first)
    second = say(client, "Two", conversation_id=first.conversation_id)
    finish(second)
    other = branch(client, second, input="Another two")

    assert other.conversation_id != first.conversation_id
    assert other.turn_ids == [first.pk]
    conversation = get_conversation_turns(other.conversation).order_by("pk")
    assert list(conversation) == [first, other]
    old = get_conversation_turns(first.conversation).order_by("pk")
    assert list(old) == [first, second]


def branch_navs(page):
    """Return (kind, words, conversations before and after) of each navigation."""
    parts = page.split('<nav class="branch" id="chat-branches-')[1:]
    return [
        (
            one.split("-")[0],
            re.search(r"(\d+/\d+)</span>", one)[1],
            re.findall(r"/chat/planner/(\d+)/", one.split("</nav>")[0]),
        )
        for one in parts
    ]


def test_versions_of_a_message_are_reached_from_each_other(client, agent):
    first = say(client, "One")
    finish(first)
    other = branch(client, first, input="Uno")
    finish(other)
    third = branch(client, other, input="Eins")
    finish(third)
    conversations = [str(run.conversation_id) for run in (first, other, third)]
    navs = [
        branch_navs(text(client, f"/chat/planner/{conversation}/"))
        for conversation in conversations
    ]

    assert navs[0] == [("question", "1/3", [conversations[1]])]
    assert navs[1] == [("question", "2/3", [conversations[0], conversations[2]])]
    assert navs[2] == [("question", "3/3", [conversations[1]])]


def test_versions_of_an_answer_belong_to_their_message(client, agent):
    first = say(client, "One")
    finish(first)
    again = branch(client, first)
    finish(again)
    edited = branch(client, again, input="Uno")
    finish(edited)
    page = text(client, f"/chat/planner/{again.conversation_id}/")
    of_edited = text(client, f"/chat/planner/{edited.conversation_id}/")

    assert branch_navs(page) == [
        ("question", "1/2", [str(edited.conversation_id)]),
        ("answer", "2/2", [str(first.conversation_id)]),
    ]
    assert branch_navs(of_edited) == [
        ("question", "2/2", [str(again.conversation_id)]),
    ]


def test_the_list_shows_a_conversation_once_whatever_its_branches(client, agent):
    first = say(client, "One")
    finish(first)
    other = branch(client, first, input="Uno")
    finish(other)
    again = branch(client, other)
    page = text(client, f"/chat/planner/{first.conversation_id}/")
    part = page.split('id="chat-list"')[1].split("</ul>")[0]

    assert part.count("<li") == 1
    assert f'/chat/planner/{again.conversation_id}/" ' in part
    assert 'aria-current="true"' in part
    assert text(client, "/chat/").count('id="chat-list-') == 1


def test_a_conversation_is_renamed_and_archived_with_its_branches(client, agent):
    first = say(client, "One")
    finish(first)
    other = branch(client, first, input="Uno")
    path = f"/chat/planner/{first.conversation_id}"
    text(client, f"{path}/rename/", title="Numbers")

    other.conversation.refresh_from_db()
    assert other.conversation.title == "Numbers"
    client.post(f"{path}/archive/")
    assert "Numbers" not in text(client, "/chat/planner/")


def test_answer_again_asks_the_same(client, agent):
    run = say(client, "Is it raining?")
    finish(run)
    again = branch(client, run)

    assert again.pk != run.pk
    assert again.inputs == run.inputs
    assert again.turn_ids == []


ARCHIVED = "This conversation is archived. Unarchive it first."


@pytest.mark.parametrize(
    ("action", "body"),
    [
        pytest.param("say/", {"input": "And tomorrow?"}, id="send"),
        pytest.param("{pk}/branch/{run}/", {"input": "And tomorrow?"}, id="edit"),
        pytest.param("{pk}/branch/{run}/", {}, id="regenerate"),
        pytest.param("{pk}/continue/{run}/", {}, id="continue"),
        pytest.param("{pk}/resume/{run}/", {}, id="resume"),
    ],
)
def test_an_archived_conversation_takes_no_message_of_a_page_that_was_open(
    client, agent, action, body
):
    run = say(client, "Is it raining?")
    if "continue" in action:
        stop_while_writing(run)
    else:
        finish(run, output=None, status="failed")
    chat = run.conversation_id
    client.post(f"/chat/planner/{chat}/archive/")
    url = f"/chat/planner/{action.format(pk=chat, run=run.pk)}"
    answer = client.post(url, {**body, "conversation_id": chat}, follow=True)
    page = join_lines(answer.text)

    assert ARCHIVED in page
    assert page.count(">Unarchive<") == 2
    assert (">And tomorrow?</textarea>" in page) is bool(body)
    assert [(one.pk, one.is_over) for one in Run.objects.all()] == [(run.pk, True)]
    assert Conversation.objects.filter(archived_at=None).count() == 0


def test_a_branch_of_a_branch_is_given_each_turn_once(client, agent):
    first = say(client, "One")
    finish(first)
    second = say(client, "Two", conversation_id=first.conversation_id)
    finish(second)
    fork = branch(client, second, input="Zwei")
    finish(fork)
    third = say(client, "Three", conversation_id=fork.conversation_id)
    finish(third)
    last = branch(client, third, input="Drei")

    assert last.turn_ids == [first.pk, fork.pk]


def test_an_answer_is_rated_and_the_rating_taken_back(client, agent):
    run = say(client, "Is it raining?")
    path = f"/chat/planner/{run.conversation_id}/rate/{run.pk}/"

    client.post(path, {"rating": "poor"})
    assert Run.objects.get(pk=run.pk).rating == -1
    client.post(path, {"rating": "poor"})
    assert Run.objects.get(pk=run.pk).rating is None


def test_an_answer_can_be_added_to_a_dataset_once_it_is_there(client, agent):
    run = say(client, "Is it raining?")
    link = f'href="/runs/{run.pk}/dataset/"'
    path = f"/chat/planner/{run.conversation_id}/"
    before = client.get(path).content.decode()
    finish(run)

    assert link not in before
    assert link in client.get(path).content.decode()


def test_a_conversation_is_renamed_and_put_away(client, agent):
    run = say(client, "Is it raining?")
    path = f"/chat/planner/{run.conversation_id}"

    assert "Rain in Oslo" in text(client, f"{path}/rename/", title=" Rain  in Oslo ")
    assert "1 to 200" in text(client, f"{path}/rename/", title=" ")
    client.post(f"{path}/archive/")

    assert "Rain in Oslo" not in text(client, "/chat/planner/")


def test_hides_what_is_someone_elses(client, agent):
    bob = make_user("bob")
    conversation = Conversation.objects.create(
        owner=bob, agent=agent, title="Secret conversation"
    )
    run = make_run(bob, agent=agent, conversation=conversation, title="Secret question")

    for path in ("", "stop/", "rename/", "archive/", f"branch/{run.pk}/"):
        answer = client.post if path else client.get
        assert answer(f"/chat/planner/{conversation.pk}/{path}").status_code == 404
    assert client.get(f"/chat/planner/{conversation.pk}/newer/0/").status_code == 404
    assert "Secret" not in text(client, "/chat/planner/")
    mine = say(client, "One")
    path = f"/chat/planner/{mine.conversation_id}/branch/{run.pk}/"
    assert client.post(path).status_code == 404


def test_an_agent_that_is_not_shared_is_not_there(client, ann):
    make_agent(make_user(), slug="private")

    assert client.get("/chat/private/").status_code == 404
    assert client.post("/chat/private/say/", {"input": "x"}).status_code == 404


def test_works_by_link_for_whom_it_is_shared_with(client, ann):
    make_agent(make_user(), slug="shared", visibility="everyone")

    assert client.get("/chat/shared/").status_code == 200
    client.post("/chat/shared/say/", {"input": "Hello"})
    assert Run.objects.get().owner == ann


def test_the_test_chat_of_an_agent_is_no_conversation_here(client, agent):
    conversation = Conversation.objects.create(
        owner=agent.owner, agent=agent, is_test=True
    )
    make_run(agent.owner, agent=agent, conversation=conversation, title="A test")

    assert "A test" not in text(client, "/chat/")
    assert client.get(f"/chat/planner/{conversation.pk}/").status_code == 404


def long_conversation(client, agent, *, turns):
    """Say something, and fill the conversation up with turns that are over."""
    first = say(client, "turn-0.")
    finish(first)
    add_turns(first.conversation, range(1, turns))
    return f"/chat/planner/{first.conversation_id}/"


def add_turns(chat, numbers):
    """Add turns that are over, each with a step."""
    for number in numbers:
        run = make_run(
            chat.owner,
            agent=chat.agent,
            conversation=chat,
            inputs={"input": f"turn-{number}."},
            status="succeeded",
        )
        make_step(run)


def asked_on(page):
    """Return the questions on a page."""
    return re.findall(r'<p class="ask plain-text">(turn-\d+\.)</p>', page)


def test_a_page_says_what_was_said_elsewhere_since(client, agent):
    path = long_conversation(client, agent, turns=1)
    url = re.search(r'hx-get="([^"]*/newer/\d+/)"', text(client, path))[1]

    before = text(client, url)
    add_turns(Conversation.objects.get(), [1])
    after = text(client, url)

    assert "hidden" in before
    assert "newer message" not in before
    assert f'hx-get="{url}"' in after
    assert f'<a href="{path}">' in after
    assert "Show 1 newer message<" in after
    assert "hidden" not in after.replace('aria-hidden="true"', "")


def poll_turns(client, page):
    """Return the part that polls, with the state that `page` has."""
    part = page.split('id="chat-newer"')[1].split("</p>")[0]
    url = re.search(r'hx-get="([^"]*)"', part)[1]
    state = re.search(r'"X-List-State": "(\w+)"', part)[1]
    return client.get(url, headers={"X-List-State": state}).text


def test_an_open_page_notices_a_run_that_was_resumed_elsewhere(client, agent):
    path = long_conversation(client, agent, turns=1)
    Run.objects.update(status="failed", output=None, error_code="x")
    page = text(client, path)
    before = poll_turns(client, page)
    resume_run(Run.objects.get(), by=agent.owner)
    changed = poll_turns(client, page)

    assert "data-changed" not in page + before
    assert "data-changed" in changed
    assert "data-changed" in poll_turns(client, changed)
    assert "data-changed" not in poll_turns(client, text(client, path))


def test_a_run_that_goes_on_leaves_the_page_to_its_stream(client, agent):
    run = say(client, "Is it raining?")
    page = text(client, f"/chat/planner/{run.conversation_id}/")
    make_step(run)
    Run.objects.filter(pk=run.pk).update(seq=F("seq") + 3)
    goes_on = poll_turns(client, page)
    finish(run)

    assert "data-changed" not in goes_on
    assert "data-changed" in poll_turns(client, page)


def test_the_turns_before_the_newest_are_a_link_away(client, agent):
    path = long_conversation(client, agent, turns=52)
    page = text(client, path)
    earlier = re.search(r'href="([^"]*\?before=\d+)"', page)[1]
    before = text(client, earlier)

    assert asked_on(page) == [f"turn-{n}." for n in range(2, 52)]
    assert asked_on(before) == ["turn-0.", "turn-1."]
    assert "Earlier messages" not in before
    assert f'<a href="{path}">Back to the newest messages</a>' in before
    assert "Back to the newest" not in page
    assert "chat-newer" not in before


@pytest.mark.parametrize("before", ["0", "x", str(2**70), "-1"])
def test_an_address_of_no_turns_shows_a_page(client, agent, before):
    run = say(client, "Is it raining?")
    answer = client.get(f"/chat/planner/{run.conversation_id}/?before={before}")

    assert answer.status_code == 200


def test_a_rated_answer_is_shown_where_it_is(client, agent):
    path = long_conversation(client, agent, turns=52)
    first, second = Run.objects.order_by("pk")[:2]
    rated = client.post(f"{path}rate/{first.pk}/", {"rating": "good"})

    assert rated["Location"] == f"{path}?at={first.pk}#chat-turn-{first.pk}"
    assert asked_on(text(client, rated["Location"])) == ["turn-0."]


def test_a_long_conversation_costs_no_query_a_turn(
    client, agent, django_assert_max_num_queries
):
    path = long_conversation(client, agent, turns=3)
    branch = branched(client, path)
    with CaptureQueriesContext(connection) as few:
        client.get(branch)
    add_turns(Conversation.objects.latest("pk"), range(12))

    with django_assert_max_num_queries(len(few)):
        assert len(asked_on(text(client, branch))) > 12


def branched(client, path):
    """Say something else in the place of the second turn; return its page."""
    second = Run.objects.order_by("pk")[1]
    client.post(f"{path}branch/{second.pk}/", {"input": "turn-100."})
    new = Run.objects.latest("pk")
    finish(new)
    return f"/chat/planner/{new.conversation_id}/"


@pytest.mark.parametrize(("output", "is_rated"), [("It rains.", True), (None, False)])
def test_only_an_answer_can_be_rated(client, agent, output, is_rated):
    run = say(client, "Is it raining?")
    finish(run, output=output, status="succeeded" if output else "canceled")

    page = text(client, f"/chat/planner/{run.conversation_id}/")

    assert ('name="rating"' in page) is is_rated


def stop_while_writing(run, text="It **rains**"):
    finish(run, output=None, status="canceled")
    make_attempt(run, code="canceled", partial_text=text)


def test_a_stopped_answer_keeps_what_was_written(client, agent):
    run = say(client, "Is it raining?")
    stop_while_writing(run)
    pages = [
        text(client, f"/chat/planner/{run.conversation_id}/"),
        text(client, f"/runs/{run.pk}/"),
    ]

    for page in pages:
        assert "It <strong>rains</strong>" in page
    assert "This answer was stopped" in pages[0]
    assert "Stopped before the start" in pages[0]
    assert "before the answer was complete" in pages[1]


@pytest.mark.parametrize(("by", "name"), [("ann", "You"), ("bo", "Bo")])
def test_a_stopped_answer_says_who_stopped_it(client, agent, by, name):
    run = say(client, "Is it raining?")
    stop_while_writing(run)
    user = run.owner if by == "ann" else make_user("bo", first_name="Bo")
    Run.objects.filter(pk=run.pk).update(canceled_by=user)

    page = text(client, f"/chat/planner/{run.conversation_id}/")

    assert f"<span>{name} stopped this answer</span>" in page


def test_a_stopped_answer_is_continued_by_the_next_message(client, agent):
    run = say(client, "Is it raining?")
    stop_while_writing(run)
    path = f"/chat/planner/{run.conversation_id}/"
    assert f"{path}continue/{run.pk}/" in text(client, path)

    page = text(client, f"{path}continue/{run.pk}/", sent="1")
    new = Run.objects.latest("pk")
    assert (new.conversation_id, new.turn_ids) == (run.conversation_id, [run.pk])
    assert "Continue your answer where it stopped." in page
    assert f"{path}continue/" not in page


@pytest.mark.parametrize("kind", ["time", "iterations"])
def test_a_run_that_reached_a_limit_can_be_resumed_in_the_chat(client, agent, kind):
    run = say(client, "Is it raining?")
    stop_while_writing(run)
    forced = {"output": get_stop_message(kind), "stop_reason": kind}
    Run.objects.filter(pk=run.pk).update(status="limit_reached", **forced)
    path = f"/chat/planner/{run.conversation_id}/"
    page = text(client, path)
    assert "It <strong>rains</strong>" in page
    assert "stopped this answer" not in page
    assert "limit reached" in page
    assert f"{path}resume/{run.pk}/" in page

    client.post(f"{path}resume/{run.pk}/")
    run.refresh_from_db()
    assert run.status == "queued"
    (resume,) = run.resumes.all()
    assert list(resume.limits) == (["max_iterations"] if kind == "iterations" else [])
    assert f"{path}resume/{run.pk}/" not in text(client, path)


def test_an_answered_run_cannot_be_resumed(client, agent):
    run = say(client, "Is it raining?")
    finish(run)
    path = f"/chat/planner/{run.conversation_id}/"
    assert "/resume/" not in text(client, path)

    page = client.post(f"{path}resume/{run.pk}/", follow=True).content.decode()
    assert "Only a run that failed or reached a limit can be resumed." in page


def test_text_of_an_attempt_that_was_repeated_is_no_answer(client, agent):
    run = say(client, "Is it raining?")
    stop_while_writing(run)
    Run.objects.filter(pk=run.pk).update(next_number=1)

    page = text(client, f"/chat/planner/{run.conversation_id}/")
    assert "rains" not in page


def test_a_turn_names_the_provider_that_it_waits_for(ann):
    provider = make_provider(ann, name="Local")
    run = make_run(ann, status="waiting", waiting_provider=provider)

    assert build_run_turn(run).words == "Waiting for provider Local"


def test_many_agents_are_searched(client, many_agents):
    everyone = client.get("/chat/")
    found = client.get("/chat/", {"new": "1", "agent": "task 06"})
    nothing = client.get("/chat/", {"new": "1", "agent": "no such agent"})

    assert len(everyone.context["agents"]) == 60
    assert "10 more agents" in join_lines(everyone.content.decode())
    assert [agent.name for agent in found.context["agents"]] == ["Helper 06"]
    assert 'value="task 06"' in found.content.decode()
    assert "Nothing found" in nothing.content.decode()


def test_few_agents_have_no_search(client, agent, ann):
    make_agent(ann, name="Another")

    assert 'name="agent"' not in client.get("/chat/").content.decode()
