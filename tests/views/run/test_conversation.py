"""The conversation on the page of a run."""

import pytest

from runs.models import Conversation, Run
from tests.make import make_agent, make_run, make_user

pytestmark = pytest.mark.django_db


def conversation_of(owner, *statuses, **last):
    """Return the last of several runs of a conversation."""
    agent = make_agent(owner, memory=True)
    conversation = Conversation.objects.create(owner=owner, agent=agent)
    runs = [
        make_run(owner, agent=agent, conversation=conversation, status=status)
        for status in statuses
    ]
    return make_run(owner, agent=agent, conversation=conversation, **last), runs


def page(client, run):
    """Return the text of a run's page."""
    return client.get(f"/runs/{run.pk}/").content.decode()


def test_shows_the_turns_before_and_what_the_model_knew(client, ann):
    run, earlier = conversation_of(
        ann, "succeeded", "limit_reached", "failed", "canceled", status="succeeded"
    )
    run.turn_ids = [one.pk for one in earlier[:2]]
    run.save()

    text = page(client, run)

    assert "Earlier in this conversation" in text
    assert all(f'href="/runs/{one.pk}/"' in text for one in earlier)
    assert "The model was sent a note that a limit was reached." in text
    assert "Not sent to the model: the run failed." in text
    assert "Not sent to the model: the run was canceled." in text


def test_shows_messages_that_came_with_the_request(client, ann):
    turns = [["Be kind.", None], [None, "Hello!"], ["My name is Ann", "Hello Ann"]]
    run = make_run(ann, status="succeeded", given_turns=turns)

    text = page(client, run)

    assert text.count("Sent with the request") == 3
    assert all(one in text for turn in turns for one in turn if one)


def test_a_turn_that_was_left_out_says_so(client, ann):
    run, _ = conversation_of(ann, "succeeded", "running", status="succeeded")
    text = page(client, run)

    assert "the conversation was too long" in text
    assert "the run was not finished." in text


def test_the_next_question_starts_a_run_of_the_same_conversation(client, ann):
    run, _ = conversation_of(ann, status="succeeded")
    assert "Continue the conversation" in page(client, run)

    answer = client.post(f"/runs/{run.pk}/continue/", {"input": "And then?"})

    new = Run.objects.latest("pk")
    assert answer.headers["Location"] == f"/runs/{new.pk}/"
    assert (new.inputs, new.conversation) == ({"input": "And then?"}, run.conversation)
    assert new.turn_ids == [run.pk]


def test_an_empty_question_is_refused_at_the_field(client, ann):
    run, _ = conversation_of(ann, status="succeeded")
    text = client.post(f"/runs/{run.pk}/continue/", {"input": " "}).content.decode()

    assert "Enter a message." in text
    assert Run.objects.count() == 1


def test_what_cannot_start_keeps_what_was_typed(client, ann):
    run, _ = conversation_of(
        ann, status="succeeded", inputs={"input": "Q", "town": "Rome"}
    )
    text = client.post(f"/runs/{run.pk}/continue/", {"input": "Why?"}).content.decode()

    assert "The agent does not have the input" in text
    assert ">\nWhy?</textarea>" in text


def test_the_part_has_no_form_for_somebody_elses_or_an_unfinished_run(client, ann):
    client.force_login(make_user("root", is_superuser=True))
    run, _ = conversation_of(ann, status="succeeded")
    unfinished, _ = conversation_of(ann, status="running")

    for one in (run, unfinished):
        part = client.get(f"/runs/{one.pk}/continue/").content.decode()
        assert 'id="run-continue"' in part
        assert "<form" not in part
        assert client.post(f"/runs/{one.pk}/continue/").status_code == 404


def test_a_run_without_a_conversation_has_neither(client, ann):
    text = page(client, make_run(ann, status="succeeded"))

    assert "conversation" not in text
