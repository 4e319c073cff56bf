"""Showing rounds as a chat: the model's words, then the result as the user's."""

from runs.engine.kinds.kind import ShownRound
from runs.engine.types import Message

REMINDER = (
    "Go on: reply with one JSON object, either the next tool or the final answer. The "
    "person cannot see this result, so repeat what matters of it in the final answer."
)


def results_in_chat(shown: ShownRound) -> tuple[Message, ...]:
    """Repeat a reply and answer it with its results."""
    said = (Message.of("assistant", shown.text),) if shown.text.strip() else ()
    told = "\n".join(_result(step.observation) for step in shown.steps)
    return (*said, Message.of("user", f"{told}\n\n{REMINDER}"))


def _result(observation: str) -> str:
    return f"Result:\n{observation}"
