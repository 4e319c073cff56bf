"""Which rounds a request shows: trimming, and the model's context size (R13).

Rounds are left out whole, oldest first; the newest one always stays.
"""

import json
from functools import cached_property

from runs.engine.transcript import RoundWindow, Transcript, estimate_tokens
from runs.engine.types import ExecutorOptions, Message, ModelRequest, ModelSettings

SUMMARY_PROMPT = (
    "Summarize these steps of an unfinished task for whoever continues it: what was "
    "tried, every fact found, what is still open. Write nothing else."
)


class ContextWindow:
    """Chooses the first round to show; a round once left out stays out."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._first = 0
        self._summary = ""

    def select_rounds(self, options: ExecutorOptions, count: int) -> RoundWindow:
        """Return which of `count` rounds the next request shows."""
        trimmed = max(self._first, _first_untrimmed_round(options, count))
        if options.context_tokens is not None and options.context_method == "drop":
            self._first = trimmed = self._find_first_fitting(
                options.context_tokens, trimmed, count
            )
        return RoundWindow(trimmed, count, self._summary)

    def rounds_to_summarize(
        self, options: ExecutorOptions, count: int
    ) -> RoundWindow | None:
        """Return the rounds to summarize before the next request, if any."""
        if options.context_tokens is None or options.context_method != "summary":
            return None
        first = max(self._first, _first_untrimmed_round(options, count))
        if self._find_first_fitting(options.context_tokens, first, count) == first:
            return None
        end = (first + count) // 2 if count - first > 2 else count - 1
        return RoundWindow(first, end, self._summary)

    def replace_with_summary(self, end: int, summary: str) -> None:
        """Show `summary` for all rounds before `end`; without a text just drop them."""
        self._first = end
        if summary:
            self._summary = summary

    def build_summary_request(
        self, model: ModelSettings, old: RoundWindow
    ) -> ModelRequest:
        lead = f"Summary so far: {old.summary}\n\n" if old.summary else ""
        text = lead + self._transcript.render_rounds(old.first, old.count)
        messages = (
            Message.from_text("system", SUMMARY_PROMPT),
            Message.from_text("user", text),
        )
        return ModelRequest(messages=messages, settings=model)

    def _find_first_fitting(self, limit: int, first: int, count: int) -> int:
        size = self._base_size + self._transcript.estimate_rounds_size(first, count)
        while size > limit and first < count - 1:
            size -= self._transcript.estimate_rounds_size(first, first + 1)
            first += 1
        return first

    @cached_property
    def _base_size(self) -> int:
        request = self._transcript.build_request(RoundWindow(0, 0))
        tools = [[t.name, t.description, t.args_schema] for t in request.tools]
        return sum(message.size // 4 + 1 for message in request.messages) + (
            estimate_tokens(json.dumps(tools).encode())
        )


def _first_untrimmed_round(options: ExecutorOptions, count: int) -> int:
    most = options.trim_intermediate_steps
    return max(count - most, 0) if most > 0 else 0
