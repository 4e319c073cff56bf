"""The titles that conversations get by themselves."""

import pytest

from runs.models import Conversation
from runs.services.conversations.messages import create_branch
from runs.services.search.index_runs import index_runs
from tests.make import make_agent, make_run

pytestmark = pytest.mark.django_db


def answered(*answers, title="Plan a day"):
    """Return a conversation of runs with these answers, after they are indexed."""
    agent = make_agent()
    conversation = Conversation.objects.create(
        owner=agent.owner, agent=agent, title=title
    )
    fields = {
        "conversation": conversation,
        "status": "succeeded",
        "title": "Plan a day",
    }
    for answer in answers:
        make_run(agent=agent, output=answer, **fields)
    index_runs()
    conversation.refresh_from_db()
    return conversation


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("# A day in **Oslo**\n\nSunny.", "A day in Oslo"),
        ("\n## [Oslo](https://oslo.example) in May", "Oslo in May"),
        ("It is sunny.\n\n# Later", "Plan a day"),
        ("#hashtag", "Plan a day"),
        ("# " + "x" * 81, "Plan a day"),
        ({"heading": "# No text"}, "Plan a day"),
    ],
)
def test_the_heading_of_the_first_answer_is_the_title(answer, title):
    assert answered(answer).title == title


def test_later_answers_and_given_titles_change_nothing():
    assert answered("Sunny.", "# Another day").title == "Plan a day"
    assert answered("# A day in Oslo", title="Oslo").title == "Oslo"


def test_branches_keep_the_title_of_their_conversation():
    agent = make_agent()
    conversation = Conversation.objects.create(
        owner=agent.owner, agent=agent, title="Plan a day"
    )
    fields = {"agent": agent, "status": "succeeded", "title": "Plan a day"}
    run = make_run(conversation=conversation, output="# Oslo", **fields)
    branch = create_branch(conversation, at=run)
    make_run(conversation=branch, output="# Rome", **fields)

    index_runs()
    assert set(Conversation.objects.values_list("title", flat=True)) == {"Oslo"}
