"""The text that a model is writing, as updates of its place on a page."""

from django.utils.html import format_html, format_html_join

from runs.live.batches import DraftText
from runs.live.sse import format_element_update

MISSING = "…"
"""Stands for what was written before anyone watched."""


def render_draft_update(place: str, draft: DraftText, sent: int | None) -> bytes:
    """Return what is new after `sent` characters; None: all of it, anew.

    `place` is the id of the element that holds the text. Finished blocks are sent
    once; the open block is replaced.
    """
    rendering = draft.rendering
    rendering.advance(draft.text)
    since = sent or 0
    blocks = format_html_join(
        "", "{}", ((one.html,) for one in rendering.blocks if one.known_at > since)
    )
    opened = format_html(
        '<div class="open-block" id="{}-open">{}</div>', place, rendering.open_html
    )
    if sent is None:
        missing = format_html("<p>{}</p>", MISSING) if draft.start else ""
        html = format_html("{}{}{}", missing, blocks, opened)
        return format_element_update(f"#{place}", "innerHTML", html)
    if rendering.rendered_at <= since:
        return b""
    # Replaced as a whole: an element that stayed would move when a block is added.
    html = format_html("{}{}", blocks, opened)
    return format_element_update(f"#{place}-open", "outerHTML", html)
