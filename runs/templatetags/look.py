"""Tags of the look: icons, statuses, times, numbers, fields."""

import json
import re
from datetime import datetime, timedelta
from decimal import Decimal
from math import floor, inf
from typing import Any, NamedTuple

from django import template
from django.forms import BaseForm, BoundField
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import capfirst

from runs.views.exact import visible
from runs.views.hits import marked as with_hits
from runs.views.timeline import percent

register = template.Library()

SHAPES = {
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
    "stopped": '<rect class="solid" x="1.5" y="1.5" width="13" height="13" rx="3"/>'
    '<path class="cut" d="M5 8h6"/>',
    "failed": '<path class="solid" d="M5.1 1h5.8L15 5.1v5.8L10.9 15H5.1L1 10.9V5.1z"/>'
    '<path class="cut" d="m5.7 5.7 4.6 4.6M10.3 5.7l-4.6 4.6"/>',
    "cancelled": '<circle cx="8" cy="8" r="6"/><path d="m3.9 12.1 8.2-8.2"/>',
}
WORDS = {
    "queued": "Queued",
    "running": "Running",
    "awaiting_approval": "Awaiting approval",
    "awaiting_decision": "Awaiting decision",
    "waiting": "Waiting",
    "succeeded": "Succeeded",
    "stopped": "Stopped",
    "failed": "Failed",
    "cancelled": "Cancelled",
}


@register.simple_tag
def icon(name: str, extra: str = "") -> SafeString:
    """Draw one icon of the sprite in `parts/_icons.html`."""
    return format_html(
        '<svg class="ico{}" aria-hidden="true"><use href="#i-{}"/></svg>',
        f" {extra}" if extra else "",
        name,
    )


@register.simple_tag
def errors_of(field: BoundField) -> SafeString:
    """Say what is wrong with a field, under the id that its input refers to."""
    if not field.errors:
        return SafeString("")
    return format_html(
        '<ul class="errorlist" id="{}_error">{}</ul>',
        field.auto_id,
        format_html_join(
            "",
            '<li class="error">{}<span>{}</span></li>',
            ((icon("alert"), error) for error in field.errors),
        ),
    )


@register.simple_tag
def glyph(status: str) -> SafeString:
    """Draw the shape of a run's status, without its word."""
    return format_html(
        '<svg class="st" viewBox="0 0 16 16" aria-hidden="true">{}</svg>',
        mark_safe(SHAPES.get(status, SHAPES["queued"])),  # noqa: S308  # our own shapes
    )


@register.simple_tag
def status(name: str, *, look: str = "", word: str = "") -> SafeString:
    """Draw a status: shape and word; `look` is "", "pill" or "sr" (word hidden)."""
    word = word or WORDS.get(name, name)
    return format_html(
        '<span class="status{}" data-status="{}">{}{}</span>',
        " pill" if look == "pill" else "",
        name,
        glyph(name),
        format_html('<span class="sr">{}</span>', word) if look == "sr" else word,
    )


@register.simple_tag
def url_or_none(name: str, *args: Any) -> str:
    """Return the address of a page; empty where there is no such page."""
    try:
        return reverse(name, args=args)
    except NoReverseMatch:
        return ""


@register.filter
def status_word(name: str) -> str:
    """Return the words of a status."""
    return WORDS.get(name, name)


@register.filter
def moment(at: datetime | None, style: str = "ago") -> SafeString:
    """Write a time element; the page's script puts it into the viewer's zone.

    `style` is ago (relative), past (the same, never ahead of the clock), due (the same,
    of what should have come by then), for (how long since), time (clock), day (date
    and clock).
    """
    if at is None:
        return SafeString("")
    now, words = timezone.now(), ago(at)
    plain = {
        "ago": words,
        "past": ago(min(at, now)),
        "due": words if at > now else f"due {words}",
        "for": lasting((now - at).total_seconds()),
        "time": f"{at:%H:%M}",
    }.get(style, f"{at:%d %b %Y %H:%M}")
    return format_html(
        '<time datetime="{}" title="{} UTC" data-style="{}">{}</time>',
        at.isoformat(timespec="seconds"),
        f"{at:%d %b %Y %H:%M:%S}",
        style,
        plain,
    )


MILLION = 1_000_000
FINER = {"h": (60, "min"), "d": (3600, "h")}
"""What is said of a time to come beside hours and days."""
FAR = 86400 * 14
"""Seconds from which on the hours say nothing."""


def ago(at: datetime) -> str:
    """Say how long ago, or in how long, in words."""
    seconds = (timezone.now() - at).total_seconds()
    size = abs(seconds)
    for limit, unit, word in (
        (60, 1, "s"),
        (3600, 60, "min"),
        (86400, 3600, "h"),
        (inf if seconds < 0 else 86400 * 30, 86400, "d"),
    ):
        if size < limit:
            text = f"{int(size // unit)} {word}"
            if seconds >= 0:
                return f"{text} ago"
            smaller, of_it = FINER.get(word, (0, ""))
            is_far = size >= FAR
            rest = int(size % unit // smaller) if smaller and not is_far else 0
            return f"in {text} {rest} {of_it}" if rest else f"in {text}"
    return f"{at:%d %b %Y}"


@register.filter
def duration(value: float | timedelta | None) -> str:
    """Write seconds: 4 ms, 0.6 s, 14 s, 2:11 min, 3 h 12 min; `run.js` does the same.

    What is shown is rounded first, so that nothing reads 60 s or 10.0 s.
    """
    if value is None:
        return ""
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if (thousandths := _rounded(seconds * 1000)) < 100:
        return f"{max(0, thousandths)} ms"
    if (tenths := _rounded(seconds * 10)) < 100:
        return f"{tenths / 10:.1f} s"
    whole = _rounded(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d} min"
    minutes = _rounded(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min"


@register.filter
def lasting(seconds: float) -> str:
    """Write how long something has gone on, in whole seconds, as `app.js` does."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    return duration(whole) if whole < 86400 else f"{whole // 86400} d"


def _rounded(number: float) -> int:
    return floor(number + 0.5)


@register.filter
def tick(seconds: float) -> str:
    """Write a place on a time axis: 4 ms, 0.5 s, 15 s, 1:10, 2:30:00."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:g} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


@register.filter
def bar_percent(seconds: float) -> str:
    """Write a length on the time scale of a run, at scale 0."""
    return percent(seconds)


@register.filter
def number(value: int | float | None, form: str = "") -> str:
    """Write a count with commas: 26,078; nothing for none.

    Where a column is narrow, the form `short` writes 1.41 M from a million on.
    """
    if form == "short" and value is not None and value >= MILLION:
        return f"{value / MILLION:,.2f} M"
    return "" if value is None else f"{value:,}"


@register.filter
def tokens(run: Any) -> str:
    """Write all tokens of a run; nothing before its first model call."""
    return number((run.input_tokens + run.output_tokens) or None)


EFFECTS = {"read": "read", "idempotent": "idempotent", "side_effect": "side effect"}


@register.filter
def effect_word(effect: str) -> str:
    """Write what a tool may change."""
    return EFFECTS.get(effect, effect)


@register.filter
def as_json(value: Any) -> str:
    """Write a value as JSON that a person can read."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) < 60 else json.dumps(value, ensure_ascii=False, indent=2)


@register.filter
def marked(text: str) -> SafeString:
    """Mark the `{variables}` that a run will be asked for."""
    pieces = re.split(r"(\{[A-Za-z_][A-Za-z0-9_]*\})", text)
    return format_html_join(
        "",
        "{}",
        (
            (format_html('<span class="v">{}</span>', piece) if n % 2 else piece,)
            for n, piece in enumerate(pieces)
        ),
    )


@register.filter
def share_of(part: int, whole: int) -> str:
    """Write a share: 4.5 %; 0 % only for none at all."""
    if not whole:
        return ""
    return f"{100 * part / whole:.1f} %" if part else "0 %"


@register.simple_tag
def meter(left: float, what: str) -> SafeString:
    """Draw how much is left of a limit, in percent."""
    tone = "bad" if left <= 5 else "need" if left < 20 else ""
    return format_html(
        '<svg class="meter" data-tone="{}" role="img" aria-label="{} percent of the {} '
        'left"><rect class="of" width="100%" height="100%"/>'
        '<rect class="left" width="{}%" height="100%"/></svg>',
        tone,
        round(left),
        what,
        round(left, 1),
    )


@register.filter
def dollars(value: Decimal | float | None) -> str:
    """Write a cost: $0.0141, $13.30; nothing for none or nothing spent."""
    if not value:
        return ""
    return f"${value:,.2f}" if value >= 1 else f"${value:.4f}"


@register.filter
def person(user: Any) -> str:
    """Write a person's name; the program, where no person was it."""
    return (user.get_full_name() or user.get_username()) if user else "nobody"


@register.filter(name="visible")
def visible_text(text: str) -> SafeString:
    """Write a text of a model so that nothing in it hides or turns itself around."""
    return visible(str(text))


@register.simple_tag(takes_context=True)
def hits(context: template.Context, text: str) -> SafeString:
    """Show a text, or safe HTML, with what the page is searched for marked."""
    return with_hits(str(text), str(context.get("search", "")))


@register.filter
def get(table: dict[str, Any], key: str) -> Any:
    """Look `key` up; the key itself where the table does not know it."""
    return table.get(key, key)


@register.inclusion_tag("parts/_definition_menu.html", takes_context=True)
def definition_menu(
    context: template.Context, noun: str, thing: Any, may_edit: bool
) -> dict[str, Any]:
    """Show what can be done with an agent, prompt or provider beside changing it."""
    verbs = ("archive", "unarchive", "duplicate", "rename")
    urls = {f"{verb}_url": reverse(f"{noun}-{verb}", args=[thing.pk]) for verb in verbs}
    token = context.get("csrf_token")
    return {"thing": thing, "may_edit": may_edit, "csrf_token": token, **urls}


@register.simple_block_tag
def crumbs(content: str, more: str = "") -> SafeString:
    """Show the links to the pages above this one; the page itself is the heading."""
    words = f"crumbs {more}".rstrip()
    return format_html(
        '<nav class="{}" aria-label="Breadcrumbs">{}</nav>', words, content
    )


class Mistake(NamedTuple):
    """A field that needs a look, and where it is on the page."""

    label: str
    place: str


@register.inclusion_tag("parts/_mistakes.html")
def mistakes(form: BaseForm, said: str = "Not saved yet.") -> dict[str, Any]:
    """Show above a form how many fields are wrong, with links that go to them."""
    wrong = [bound for bound in form if form.errors.get(bound.name)]
    told = list(form.non_field_errors())
    told += [error for bound in wrong if bound.is_hidden for error in bound.errors]
    fields = [
        Mistake(capfirst(str(bound.label)), place_of(bound))
        for bound in wrong
        if not bound.is_hidden
    ]
    return {"said": said, "told": told, "fields": fields, "has_any": form.errors}


def place_of(bound: BoundField) -> str:
    """Return the id of what takes the focus: of several boxes the first."""
    own = getattr(bound.field.widget, "place", "")
    return own or bound.id_for_label or f"{bound.auto_id}_0"


@register.inclusion_tag("parts/_field.html")
def field(bound: BoundField, label: str = "", unit: str = "") -> dict[str, Any]:
    """Show a form field: label above, help below, an error in place of the help."""
    return {"field": bound, "label": label or bound.label, "unit": unit}
