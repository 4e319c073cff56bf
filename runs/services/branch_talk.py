"""Saying something else at an earlier place of a conversation, or the same again."""

from collections.abc import Sequence
from typing import NamedTuple

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Min

from runs.models import Conversation, Run
from runs.services.errors import NotAllowed
from runs.services.start_run import start_run
from runs.services.turns_of_talk import turns_of_talk


def branch_talk(
    talk: Conversation, *, at: Run, by: User, inputs: dict[str, str]
) -> Run:
    """Return the first run of a new conversation that parts from `talk` at run `at`.

    What was said before it is part of both; nothing of `talk` is lost. Raises what
    `start_run` raises, and `NotAllowed` for a run that is not in `talk`.
    """
    if not turns_of_talk(talk).filter(pk=at.pk).exists():
        raise NotAllowed(f"Run {at.pk} is no turn of this conversation.")
    with transaction.atomic():
        branch = new_branch(talk, at=at)
        return start_run(talk.agent, by=by, inputs=inputs, conversation=branch)


def new_branch(talk: Conversation, *, at: Run) -> Conversation:
    """Return a new conversation that parts from `talk` in the place of run `at`."""
    place, home = places_of(talk, [at])[at.pk]
    return Conversation.objects.create(
        owner=talk.owner,
        agent=talk.agent,
        title=talk.title,
        is_test=talk.is_test,
        branch_of=home,
        branch_at=place,
    )


def is_own_turn(run: Run, user: User) -> bool:
    """Whether a fork of `run` by `user` goes on in a branch of its conversation."""
    return run.conversation is not None and run.conversation.owner_id == user.pk


class Place(NamedTuple):
    """Where a run stands: whose place it takes, and the conversation of that one."""

    run_pk: int
    home: Conversation


def places_of(talk: Conversation, runs: Sequence[Run]) -> dict[int, Place]:
    """Return the place of each of the runs of `talk`, by run.

    The first run of a branch stands in the place of the run it replaced, so that all
    versions of one turn share one place.
    """
    homes = {run.pk: run.conversation or talk for run in runs}
    branches = {home.pk for home in homes.values() if home.branch_at is not None}
    branched = Run.objects.filter(conversation__in=branches).values("conversation")
    firsts = set(branched.annotate(first=Min("pk")).values_list("first", flat=True))
    return {pk: _place(pk, home, is_first=pk in firsts) for pk, home in homes.items()}


def _place(run_pk: int, home: Conversation, *, is_first: bool) -> Place:
    if is_first and home.branch_at is not None and home.branch_of is not None:
        return Place(home.branch_at, home.branch_of)
    return Place(run_pk, home)
