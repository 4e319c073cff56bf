"""The conversation around a run: what came before it, and how it goes on."""

from dataclasses import dataclass
from typing import NamedTuple

from django.contrib.auth.models import AnonymousUser, User

from runs.engine.observations import text_of
from runs.models import Run
from runs.services.record import question_of
from runs.services.turns_of_talk import turns_of_talk

SHOWN = 20
"""Earlier turns on the page."""
LONGEST = 600
"""Characters of an answer that are repeated."""

NOT_GIVEN = {
    "failed": "It failed, so the model was not told of it.",
    "cancelled": "It was cancelled, so the model was not told of it.",
    "succeeded": "The model was not told of it: earlier turns had grown too long, or "
    "it was not over yet.",
}
OTHERWISE = "The model was not told of it: it was not over yet."


class EarlierTurn(NamedTuple):
    """A question of the same conversation, and what became of it."""

    pk: int
    question: str
    answer: str
    note: str


@dataclass(frozen=True)
class Continuing:
    """The form below an answer."""

    may: bool
    text: str = ""
    error: str = ""


def earlier_turns(run: Run) -> list[EarlierTurn]:
    """Return the turns before `run`, oldest first, with what the model knew of each."""
    if run.conversation is None:
        return []
    runs = turns_of_talk(run.conversation).filter(pk__lt=run.pk)
    return [_turn(one, run.turn_ids) for one in runs.order_by("-pk")[:SHOWN]][::-1]


def _turn(run: Run, given: list[int]) -> EarlierTurn:
    question = question_of(run.inputs)
    if run.pk in given:
        if run.status != Run.Status.SUCCEEDED:
            return EarlierTurn(
                run.pk, question, "No answer", "The model was told so: it was stopped."
            )
        return EarlierTurn(run.pk, question, _cut(run.output), "")
    answer = _cut(run.output) if run.status == Run.Status.SUCCEEDED else "No answer"
    return EarlierTurn(run.pk, question, answer, NOT_GIVEN.get(run.status, OTHERWISE))


def _cut(output: object) -> str:
    text = output if isinstance(output, str) else text_of(output)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def continuing_of(run: Run, user: User | AnonymousUser) -> Continuing:
    """Return whether `user` may ask the next question in the conversation of `run`."""
    return Continuing(
        may=run.conversation_id is not None
        and run.is_over
        and run.owner_id == user.pk
        and run.agent.archived_at is None
    )


def next_inputs(run: Run, text: str) -> dict[str, str]:
    """Return the inputs of the run before with another question."""
    asked = "input" if "input" in run.inputs else next(iter(run.inputs), "input")
    return {**run.inputs, asked: text}
