"""The conversation of a run: its earlier messages, and the form that continues it."""

from dataclasses import dataclass
from typing import NamedTuple

from django.contrib.auth.models import AnonymousUser, User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.engine.observations import stringify_value
from runs.engine.types import HistoryTurn
from runs.models import Run
from runs.services.agents.publish import get_latest_version
from runs.services.runs.conversation_runs import get_conversation_turns
from runs.services.spec.definition import uses_memory
from runs.store.history import extract_question, parse_given_turns

MAX_EARLIER_TURNS = 20
"""Earlier messages on the page."""
MAX_ANSWER_CHARACTERS = 600
"""Characters of an earlier answer on the page."""

OMITTED_REASONS = {
    "failed": gettext_lazy("Not sent to the model: the run failed."),
    "canceled": gettext_lazy("Not sent to the model: the run was canceled."),
    "succeeded": gettext_lazy(
        "Not sent to the model: the conversation was too long, or the run was not "
        "finished."
    ),
}
UNFINISHED_REASON = gettext_lazy("Not sent to the model: the run was not finished.")


class EarlierTurn(NamedTuple):
    """An earlier message of the conversation, and its answer."""

    pk: int | None
    """The run; None if the message came with the request of a program."""
    question: str
    answer: str
    note: str


@dataclass(frozen=True)
class ContinueForm:
    """The form below an answer."""

    is_allowed: bool
    is_remembered: bool = False
    """Whether the agent sees earlier messages."""
    text: str = ""
    error: str = ""


def list_earlier_turns(run: Run) -> list[EarlierTurn]:
    """Return the messages before `run`, oldest first, and which the model was sent."""
    given = [_build_given_turn(turn) for turn in parse_given_turns(run)]
    if run.conversation is None:
        return given[-MAX_EARLIER_TURNS:]
    runs = get_conversation_turns(run.conversation).filter(pk__lt=run.pk)
    earlier = [
        _build_earlier_turn(one, run.turn_ids)
        for one in runs.order_by("-pk")[:MAX_EARLIER_TURNS]
    ]
    return [*earlier[::-1], *given][-MAX_EARLIER_TURNS:]


def _build_given_turn(turn: HistoryTurn) -> EarlierTurn:
    return EarlierTurn(
        None,
        _truncate_answer(turn.question or ""),
        _truncate_answer(turn.answer or ""),
        _("Sent with the request"),
    )


def _build_earlier_turn(run: Run, given: list[int]) -> EarlierTurn:
    question = extract_question(run.inputs)
    if run.pk in given:
        if run.status != Run.Status.SUCCEEDED:
            return EarlierTurn(
                run.pk,
                question,
                _("No answer"),
                _("The model was sent a note that a limit was reached."),
            )
        return EarlierTurn(run.pk, question, _truncate_answer(run.output), "")
    answer = (
        _truncate_answer(run.output)
        if run.status == Run.Status.SUCCEEDED
        else _("No answer")
    )
    return EarlierTurn(
        run.pk,
        question,
        answer,
        str(OMITTED_REASONS.get(run.status, UNFINISHED_REASON)),
    )


def _truncate_answer(output: object) -> str:
    text = output if isinstance(output, str) else stringify_value(output)
    return (
        text
        if len(text) <= MAX_ANSWER_CHARACTERS
        else text[: MAX_ANSWER_CHARACTERS - 1] + "…"
    )


def build_continue_form(run: Run, user: User | AnonymousUser) -> ContinueForm:
    """Return the form, which is allowed to the owner of an ended run."""
    is_allowed = (
        run.conversation_id is not None
        and run.is_over
        and run.owner_id == user.pk
        and run.agent.archived_at is None
    )
    if not is_allowed:
        return ContinueForm(is_allowed=False)
    newest = get_latest_version(run.agent)
    return ContinueForm(is_allowed, uses_memory(run.agent, newest))


def build_next_inputs(run: Run, text: str) -> dict[str, str]:
    """Return the inputs of the previous run with another message."""
    asked = "input" if "input" in run.inputs else next(iter(run.inputs), "input")
    return {**run.inputs, asked: text}
