"""What a stream sends: fragments of one run's changes, made once for all viewers."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from runs.ui.streamed_markdown import StreamedMarkdown


class Fragment(NamedTuple):
    """One changed thing, ready to be sent."""

    created_seq: int
    changed_seq: int
    appended: bytes
    """For a viewer who has not seen it yet."""
    replaced: bytes
    """For one who has."""


@dataclass(frozen=True)
class ChangeBatch:
    """Everything that changed in a run after `since`, up to `seq`."""

    run_id: int
    since: int
    seq: int
    fragments: tuple[Fragment, ...] = ()
    is_over: bool = False
    """Nothing comes after it."""
    has_more: bool = False
    """Whether the run was ahead when this was read."""
    next_call: int = 0
    """Drafts of calls below it are stored by now."""
    failed_attempt: int = 0
    """Drafts of the next call up to this attempt have come to nothing."""
    fence: int = 0
    is_running: bool = False

    def messages_after(self, cursor: int) -> list[bytes]:
        """Return what a viewer at `cursor` lacks."""
        return [
            piece.appended if piece.created_seq > cursor else piece.replaced
            for piece in self.fragments
            if piece.changed_seq > cursor
        ]


@dataclass
class DraftText:
    """What a model has written so far in one attempt, as far as it is known."""

    fence: int
    number: int
    attempt: int
    start: int
    """Characters that were missed before `text`."""
    text: str
    run_id: int = 0
    rendering: StreamedMarkdown = field(default_factory=StreamedMarkdown)
    """The text as HTML; each viewer is sent what is new in it."""

    @property
    def key(self) -> tuple[int, int, int]:
        """Newer attempts are greater."""
        return (self.number, self.fence, self.attempt)


@dataclass
class RendererState:
    """What a form keeps of one run between its batches; only the reader touches it."""

    entries: dict[str, object] = field(default_factory=dict)
    is_writing: bool = False
    """Whether the hub has a draft of the run."""


Head = dict[str, bytes]
"""Pieces of a message without a seq, by what they show; newer ones replace older."""
DRAFT_FRAME = "frame"
"""The piece that holds the place of the draft, which is then empty again."""


class StreamRenderer(Protocol):
    """How one kind of stream reads and writes: page fragments, or API events.

    Each language has its own renderer; the hub activates it around every call.
    """

    language: str

    def read_batches(
        self, wanted: dict[int, int], memories: dict[int, RendererState]
    ) -> list[ChangeBatch]:
        """Return the changes of each run after the given seq; called in the reader."""
        ...

    def find_stale_runs(
        self, run_ids: list[int], memories: dict[int, RendererState]
    ) -> list[int]:
        """Return the runs whose head changed without a new seq; asked every 2 s."""
        ...

    def render_heads(
        self, run_ids: list[int], memories: dict[int, RendererState]
    ) -> dict[int, Head]:
        """Return what shows each run as a whole, as it is now."""
        ...

    def render_message(self, batch: ChangeBatch, cursor: int) -> bytes:
        """Return the message that takes a viewer from `cursor` to the batch's seq."""
        ...

    def render_backlog(self, draft: DraftText) -> Iterator[None]:
        """Render text that came at once, with a pause before each long piece."""
        ...

    def render_draft(self, draft: DraftText, sent: int | None) -> bytes:
        """Return what is new after `sent` characters; None: all of it, anew.

        Empty if there is nothing to show yet.
        """
        ...
