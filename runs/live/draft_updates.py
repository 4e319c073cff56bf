"""The text that a model is writing, as updates of its place on a page."""

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from runs.live.batches import DraftText
from runs.live.sse import format_element_update
from runs.ui.streamed_markdown import StreamedMarkdown

MISSING = "…"
"""Stands for what was written before anyone watched."""


def render_draft_update(place: str, draft: DraftText, sent: int | None) -> bytes:
    """Return what is new after `sent` characters; None: all of it, anew.

    `place` is the id of the element that holds the text. Finished blocks, and complete
    items of a block that grows, are sent once; the open block is replaced.
    """
    rendering = draft.rendering
    rendering.advance(draft.text)
    if sent is None:
        missing = format_html("<p>{}</p>", MISSING) if draft.start else ""
        html = format_html("{}{}", missing, render_blocks(place, rendering, after=-1))
        return format_element_update(f"#{place}", "innerHTML", html)
    if rendering.rendered_at <= sent:
        return b""
    # Replaced as a whole: an element that stayed would move when a block is added.
    html = render_blocks(place, rendering, after=sent)
    update = format_element_update(f"#{place}-open", "outerHTML", html)
    return render_new_items(place, rendering, after=sent) + update


def render_blocks(place: str, rendering: StreamedMarkdown, *, after: int) -> SafeString:
    """Return what became known after so many characters, and the open block."""
    blocks = [
        block.render(get_items_id(place, number))
        for number, block in enumerate(rendering.blocks)
        if block.known_at > after
    ]
    opened = '<div class="open-block" id="{}-open">{}</div>'
    html = format_html(opened, place, rendering.open_html)
    return format_html_join("", "{}", ((one,) for one in [*blocks, html]))


def render_new_items(place: str, rendering: StreamedMarkdown, *, after: int) -> bytes:
    """Return additions to the block that grew when so many characters were known."""
    for number, block in reversed(list(enumerate(rendering.blocks))):
        if block.known_at <= after:
            items = block.render_items(after=after)
            target = f"#{get_items_id(place, number)}"
            return format_element_update(target, "beforeend", items) if items else b""
    return b""


def get_items_id(place: str, number: int) -> str:
    return f"{place}-items-{number}"
