"""Send the next message of a conversation, or branch it at an earlier one."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Min, Q
from django.utils.translation import gettext as _

from runs.llm.registry import list_offline_kinds
from runs.models import Agent, Conversation, Provider, Run
from runs.services.agents.publish import get_latest_version
from runs.services.errors import NotAllowed
from runs.services.runs.conversation_runs import (
    get_conversation_turns,
    require_active_conversation,
    require_finished_answers,
)
from runs.services.runs.resume import resume_run
from runs.services.runs.start import build_run_title, start_run
from runs.services.spec.definition import uses_memory
from runs.store.history import load_stopped_answers


@transaction.atomic
def send_message(
    agent: Agent,
    *,
    by: User,
    inputs: dict[str, str],
    conversation: Conversation | None = None,
    draft: bool = False,
    is_test: bool = False,
) -> Run:
    """Return a new run of the published agent in `conversation`, or in a new one.

    Raises what `start_run` raises, and `AnswerUnfinished`; nothing is stored then.
    """
    if conversation is None:
        conversation = Conversation.objects.create(
            owner=by, agent=agent, title=build_run_title(inputs)
        )
    else:
        require_finished_answers(conversation)
    return start_run(
        agent,
        by=by,
        inputs=inputs,
        conversation=conversation,
        draft=draft,
        is_test=is_test,
    )


def continue_answer(conversation: Conversation, *, run: Run, by: User) -> Run:
    """Return a new run that asks the model to continue the stopped answer of `run`.

    It is a message like any other: not every model can continue a text of its own,
    but all see in the earlier turns what was written. Raises what `send_message`
    raises, and `NotAllowed` if the agent would not see it.
    """
    if not can_continue_answer(run):
        raise NotAllowed(_("This answer cannot be continued."))
    inputs = {**run.inputs, "input": _("Continue your answer where it stopped.")}
    return send_message(
        conversation.agent, by=by, inputs=inputs, conversation=conversation
    )


def resume_answer(
    conversation: Conversation, *, run: Run, by: User, limits: dict[str, Any]
) -> None:
    """Resume a run of `conversation`.

    Raises what `resume_run` raises, and `NotAllowed` if the conversation is archived.
    """
    require_active_conversation(conversation)
    resume_run(run, by=by, limits=limits)


def can_continue_answer(run: Run) -> bool:
    """Whether the agent sees what was written of the stopped answer of `run`.

    The demo sees it, too, but says what its script says.
    """
    if run.pk not in load_stopped_answers([run]) or "input" not in run.inputs:
        return False
    if not uses_memory(run.agent, get_latest_version(run.agent)):
        return False
    scripted = Provider.objects.filter(kind__in=list_offline_kinds())
    return not scripted.filter(pk=run.provider_key or 0).exists()


def branch_conversation(
    conversation: Conversation, *, at: Run, by: User, inputs: dict[str, str]
) -> Run:
    """Return the first run of a new branch of `conversation` at run `at`.

    Earlier messages are part of both; `conversation` stays complete. Raises what
    `start_run` raises, and `NotAllowed` for a run that is not in `conversation`.
    """
    if not get_conversation_turns(conversation).filter(pk=at.pk).exists():
        raise NotAllowed(
            _("Run %(run)s is not part of this conversation.") % {"run": at.pk}
        )
    with transaction.atomic():
        branch = create_branch(conversation, at=at)
        return start_run(conversation.agent, by=by, inputs=inputs, conversation=branch)


def create_branch(conversation: Conversation, *, at: Run) -> Conversation:
    """Return a new branch of `conversation` in place of run `at`."""
    place, home = find_turn_positions(conversation, [at])[at.pk]
    return Conversation.objects.create(
        owner=conversation.owner,
        agent=conversation.agent,
        title=conversation.title,
        is_test=conversation.is_test,
        archived_at=conversation.archived_at,
        branch_of=home,
        branch_at=place,
        root_id=home.root_pk,
    )


def update_all_branches(conversation: Conversation, **fields: Any) -> None:
    """Change `conversation` with all its branches: people see them as one."""
    family = Q(pk=conversation.root_pk) | Q(root=conversation.root_pk)
    Conversation.objects.filter(family, owner=conversation.owner_id).update(**fields)


def is_in_own_conversation(run: Run, user: User) -> bool:
    """Whether a fork of `run` by `user` continues in a branch of its conversation."""
    return run.conversation is not None and run.conversation.owner_id == user.pk


class TurnPosition(NamedTuple):
    """Where a run stands: whose position it has, and in which conversation."""

    run_pk: int
    conversation: Conversation


def find_turn_positions(
    conversation: Conversation, runs: Sequence[Run]
) -> dict[int, TurnPosition]:
    """Return the position of each run of `conversation`, by run.

    The first run of a branch has the position of the run it replaced, so that all
    versions of one message share a position.
    """
    homes = {run.pk: run.conversation or conversation for run in runs}
    branches = {home.pk for home in homes.values() if home.branch_at is not None}
    branched = Run.objects.filter(conversation__in=branches).values("conversation")
    firsts = set(branched.annotate(first=Min("pk")).values_list("first", flat=True))
    return {
        pk: _find_turn_position(pk, home, is_first=pk in firsts)
        for pk, home in homes.items()
    }


def _find_turn_position(
    run_pk: int, home: Conversation, *, is_first: bool
) -> TurnPosition:
    if is_first and home.branch_at is not None and home.branch_of is not None:
        return TurnPosition(home.branch_at, home.branch_of)
    return TurnPosition(run_pk, home)
