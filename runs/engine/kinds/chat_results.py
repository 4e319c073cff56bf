"""Rounds as chat messages: the model's reply, then the results as the user's."""

from runs.engine.kinds.kind import ScratchpadRound
from runs.engine.types import Message

REMINDER = (
    "Go on: reply with one JSON object, either the next tool or the final answer. The "
    "person cannot see this result, so repeat what matters of it in the final answer."
)


def render_chat_results(shown: ScratchpadRound) -> tuple[Message, ...]:
    """Repeat a reply and answer it with its results."""
    said = (Message.from_text("assistant", shown.text),) if shown.text.strip() else ()
    message = "\n".join(_format_result(step.observation) for step in shown.steps)
    return (*said, Message.from_text("user", f"{message}\n\n{REMINDER}"))


def _format_result(observation: str) -> str:
    return f"Result:\n{observation}"
