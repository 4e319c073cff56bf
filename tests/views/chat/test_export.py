"""A conversation as a file."""

import json

import pytest

from runs.models import Conversation
from runs.services.conversations.messages import create_branch
from tests.make import make_agent, make_attempt, make_run, make_user

pytestmark = pytest.mark.django_db

KEY = "sk-abcdefghijklmnop1234"


def make_conversation(owner, title="Weather"):
    agent = make_agent(owner, slug="planner", name="Planner")
    conversation = Conversation.objects.create(owner=owner, agent=agent, title=title)
    fields = {"agent": agent, "conversation": conversation}
    inputs = {"input": f"Is it raining? {KEY}", "city": "Oslo"}
    make_run(status="succeeded", inputs=inputs, output=f"**Yes** {KEY}", **fields)
    stopped = make_run(status="canceled", inputs={"input": "And later?"}, **fields)
    make_attempt(stopped, code="canceled", partial_text="It will")
    return conversation


def download(client, conversation, form):
    return client.get(f"/chat/planner/{conversation.pk}/export/{form}/")


def test_markdown_has_each_turn_without_secrets(client, ann):
    conversation = make_conversation(ann)
    answer = download(client, conversation, "markdown")
    text = answer.content.decode()

    assert answer["Content-Disposition"] == (
        f'attachment; filename="conversation-{conversation.pk}.md"'
    )
    assert answer["Cache-Control"] == "no-store"
    assert text.startswith("# Weather\n\nConversation with Planner, exported ")
    assert "**You**\n\nIs it raining? " in text
    assert "**Planner**\n\n**Yes** " in text
    assert text.endswith(
        "**You**\n\nAnd later?\n\n**Planner**\n\nIt will\n\n*Canceled*\n"
    )
    assert KEY not in text


def test_json_has_each_turn_without_secrets(client, ann):
    answer = download(client, make_conversation(ann, title=KEY), "json")
    shape = json.loads(answer.content)

    assert shape["format"] == "agentsite-conversation/1"
    assert shape["agent"] == {"slug": "planner", "name": "Planner"}
    first, second = shape["turns"]
    assert first["status"] == "succeeded"
    assert first["inputs"]["city"] == "Oslo"
    assert first["answer"].startswith("**Yes** ")
    assert (second["answer"], second["stopped_text"]) == (None, "It will")
    assert KEY not in answer.content.decode()


def test_only_the_branch_on_the_page_is_exported(client, ann):
    conversation = make_conversation(ann)
    last = conversation.runs.order_by("-pk")[0]
    branch = create_branch(conversation, at=last)
    inputs = {"input": "And tomorrow?"}
    make_run(agent=last.agent, conversation=branch, inputs=inputs, status="succeeded")
    text = download(client, branch, "markdown").content.decode()

    assert "Is it raining?" in text
    assert "And tomorrow?" in text
    assert "And later?" not in text


@pytest.mark.parametrize("form", ["markdown", "json"])
def test_hides_what_is_someone_elses(client, ann, form):
    conversation = make_conversation(make_user("bob"))

    assert download(client, conversation, form).status_code == 404
