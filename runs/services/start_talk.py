"""Saying the first or the next thing to an agent in a conversation."""

from django.contrib.auth.models import User
from django.db import transaction

from runs.models import Agent, Conversation, Run
from runs.services.record import question_of
from runs.services.start_run import start_run


@transaction.atomic
def start_talk(
    agent: Agent, *, by: User, inputs: dict[str, str], talk: Conversation | None = None
) -> Run:
    """Return a new run of the published agent in `talk`, or in a new conversation.

    Raises what `start_run` raises; nothing is stored then.
    """
    if talk is None:
        lines = question_of(dict(inputs)).strip().splitlines()
        talk = Conversation.objects.create(
            owner=by, agent=agent, title=lines[0][:200] if lines else ""
        )
    return start_run(agent, by=by, inputs=inputs, conversation=talk)
