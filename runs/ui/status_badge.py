"""The icon, shape and label of a run's status."""

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _

STATUS_SHAPES = {
    "queued": '<circle cx="8" cy="8" r="6" stroke-dasharray="2.2 2.5"/>',
    "running": '<circle class="track" cx="8" cy="8" r="6"/>'
    '<path class="arc" d="M8 2a6 6 0 0 1 6 6"/>',
    "awaiting_approval": '<circle class="solid" cx="8" cy="8" r="7"/>'
    '<path class="cut" d="M6.3 5.6v4.8M9.7 5.6v4.8"/>',
    "awaiting_decision": '<path class="solid" d="M8 .5 15.5 8 8 15.5.5 8z"/>'
    '<path class="cut" d="M8 4.8v3.7M8 11v.1"/>',
    "waiting": '<circle cx="8" cy="8" r="6"/><path d="M8 4.8V8l2.1 1.4"/>',
    "succeeded": '<circle class="solid" cx="8" cy="8" r="7"/>'
    '<path class="cut" d="m5 8.2 2.1 2.1L11 6"/>',
    "limit_reached": '<rect class="solid" x="1.5" y="1.5" width="13" height="13"'
    ' rx="3"/>'
    '<path class="cut" d="M5 8h6"/>',
    "failed": '<path class="solid" d="M5.1 1h5.8L15 5.1v5.8L10.9 15H5.1L1 10.9V5.1z"/>'
    '<path class="cut" d="m5.7 5.7 4.6 4.6M10.3 5.7l-4.6 4.6"/>',
    "canceled": '<circle cx="8" cy="8" r="6"/><path d="m3.9 12.1 8.2-8.2"/>',
}
STATUS_LABELS = {
    "queued": _("Queued"),
    "running": _("Running"),
    "awaiting_approval": _("Awaiting approval"),
    "awaiting_decision": _("Awaiting decision"),
    "waiting": _("Waiting"),
    "succeeded": _("Succeeded"),
    "limit_reached": _("Limit reached"),
    "failed": _("Failed"),
    "canceled": _("Canceled"),
}


def icon(name: str, extra: str = "") -> SafeString:
    """Draw one icon of the sprite in `parts/_icons.html`."""
    return format_html(
        '<svg class="ico{}" aria-hidden="true"><use href="#i-{}"/></svg>',
        f" {extra}" if extra else "",
        name,
    )


def get_status_label(name: str) -> str:
    """Return the label of a status in the language of the page."""
    return str(STATUS_LABELS.get(name, name))


def glyph(status: str) -> SafeString:
    """Draw the shape of a run's status, without its label."""
    return format_html(
        '<svg class="st" viewBox="0 0 16 16" aria-hidden="true">{}</svg>',
        mark_safe(STATUS_SHAPES.get(status, STATUS_SHAPES["queued"])),  # noqa: S308  # our own shapes
    )


def status(name: str, *, look: str = "", word: str = "") -> SafeString:
    """Draw a status: shape and label; `look` is "", "pill" or "sr" (label hidden)."""
    word = word or get_status_label(name)
    return format_html(
        '<span class="status{}" data-status="{}">{}{}</span>',
        " pill" if look == "pill" else "",
        name,
        glyph(name),
        format_html('<span class="sr">{}</span>', word) if look == "sr" else word,
    )
