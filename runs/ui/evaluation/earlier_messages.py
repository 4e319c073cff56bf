"""The conversation before a run, above its input when people judge the answer."""

from typing import NamedTuple

from runs.models import Run
from runs.services.evaluation.earlier_messages import load_earlier_messages
from runs.ui.markdown import render_markdown

MAX_SHOWN = 20
MAX_OPEN = 6
"""More are folded."""
MAX_CHARS = 50_000
"""Of each message."""


class ShownMessage(NamedTuple):
    role: str
    text: str
    html: str
    """Of an answer."""


class EarlierMessages(NamedTuple):
    """The last messages that the model saw, and how many it saw."""

    shown: list[ShownMessage]
    total: int

    @property
    def is_open(self) -> bool:
        return self.total <= MAX_OPEN


def build_earlier_messages(run: Run) -> EarlierMessages:
    messages = load_earlier_messages([run])[run.pk]
    shown = []
    for message in messages[-MAX_SHOWN:]:
        text = message.text[:MAX_CHARS]
        html = render_markdown(text) if message.role == "assistant" else ""
        shown.append(ShownMessage(message.role, text, html))
    return EarlierMessages(shown, len(messages))
