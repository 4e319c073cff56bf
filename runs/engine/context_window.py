"""Which rounds a request shows: trimming and the size of the model's context (R13).

Rounds go as a whole, oldest first, and the newest one always stays.
"""

import json
from functools import cached_property

from runs.engine.transcript import Shown, Transcript, tokens_in
from runs.engine.types import ExecutorOptions, Message, ModelRequest, ModelSettings

SUMMARISE = (
    "Summarise these steps of an unfinished task for whoever continues it: what was "
    "tried, every fact found, what is still open. Write nothing else."
)


class Context:
    """Chooses the first round that is shown; what was once left out stays out."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._first = 0
        self._summary = ""

    def shown(self, options: ExecutorOptions, count: int) -> Shown:
        """Return which of `count` rounds the next request shows."""
        trimmed = max(self._first, _trimmed(options, count))
        if options.context_tokens is not None and options.context_method == "drop":
            self._first = trimmed = self._fitting(
                options.context_tokens, trimmed, count
            )
        return Shown(trimmed, count, self._summary)

    def too_many(self, options: ExecutorOptions, count: int) -> Shown | None:
        """Return the rounds to summarise before the next request, if any."""
        if options.context_tokens is None or options.context_method != "summary":
            return None
        first = max(self._first, _trimmed(options, count))
        if self._fitting(options.context_tokens, first, count) == first:
            return None
        end = (first + count) // 2 if count - first > 2 else count - 1
        return Shown(first, end, self._summary)

    def replace(self, end: int, summary: str) -> None:
        """Show `summary` for all rounds before `end`; without a text just drop them."""
        self._first = end
        if summary:
            self._summary = summary

    def summary_request(self, model: ModelSettings, old: Shown) -> ModelRequest:
        """Return the request that asks for a summary of `old` rounds."""
        lead = f"Summary so far: {old.summary}\n\n" if old.summary else ""
        text = lead + self._transcript.rounds_as_text(old.first, old.count)
        messages = (Message.of("system", SUMMARISE), Message.of("user", text))
        return ModelRequest(messages=messages, settings=model)

    def _fitting(self, limit: int, first: int, count: int) -> int:
        size = self._base + self._transcript.size_of_rounds(first, count)
        while size > limit and first < count - 1:
            size -= self._transcript.size_of_rounds(first, first + 1)
            first += 1
        return first

    @cached_property
    def _base(self) -> int:
        request = self._transcript.request(Shown(0, 0))
        tools = [[t.name, t.description, t.args_schema] for t in request.tools]
        return sum(tokens_in(message.canonical) for message in request.messages) + (
            tokens_in(json.dumps(tools).encode())
        )


def _trimmed(options: ExecutorOptions, count: int) -> int:
    most = options.trim_intermediate_steps
    return max(count - most, 0) if most > 0 else 0
