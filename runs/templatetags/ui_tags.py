"""Template tags: icons, statuses, times, numbers, form fields."""

import json
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django import template
from django.forms import BaseForm, BoundField
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.engine.transcript import estimate_tokens
from runs.ui.evaluation.score_marks import (
    format_position,
    format_signed_points,
    format_whole_percentage,
    score_mark,
)
from runs.ui.format import (
    dollars,
    duration,
    format_clock,
    format_date_time,
    format_day,
    format_exact_time,
    format_relative_time,
    lasting,
    number,
    percent_of,
    tick,
)
from runs.ui.frame.undo import read_undo_form
from runs.ui.highlight import highlight_matches as with_hits
from runs.ui.list_state import get_run_state
from runs.ui.reveal_invisible import reveal_text
from runs.ui.role_labels import get_role_label
from runs.ui.status_badge import get_status_label, glyph, icon, status
from runs.ui.time_scale import format_percent
from tools.accounts.person_name import get_person_name
from tools.text.translatable import decode_stored_text, translate_text
from tools.ui.diff import DiffLine

register = template.Library()
for tag in (icon, glyph, status, score_mark):
    register.simple_tag(tag)
for text_filter in (duration, lasting, tick, number, percent_of, dollars):
    register.filter(text_filter)
register.simple_tag(read_undo_form, name="undo_form")


register.filter("day", format_day)
register.filter("percent_position", format_position)
register.filter("signed_points", format_signed_points)
register.filter("percent_of_one", format_whole_percentage)


@register.simple_tag
def field_errors(field: BoundField) -> SafeString:
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
def url_or_none(name: str, *args: Any) -> str:
    """Return the URL of a page; empty if there is no such page."""
    try:
        return reverse(name, args=args)
    except NoReverseMatch:
        return ""


@register.filter
def role_label(role: str) -> str:
    return get_role_label(role)


@register.filter
def token_estimate(text: str) -> int:
    """Return about how many tokens a model reads in `text`."""
    return estimate_tokens(text.encode())


register.filter("run_state", get_run_state)


@register.filter
def status_label(name: str) -> str:
    return get_status_label(name)


@register.filter
def moment(at: datetime | None, style: str = "ago") -> SafeString:
    """Write a time element, which the script moves to the viewer's time zone.

    `style` is ago (relative), past (the same, never ahead of the clock), due (the same,
    for what is due then), for (the time since), time (time of day), day (date and
    time).
    """
    if at is None:
        return SafeString("")
    now, words = timezone.now(), format_relative_time(at)
    match style:
        case "past":
            words = format_relative_time(min(at, now))
        case "due" if at <= now:
            words = _("due %(time)s") % {"time": words}
        case "for":
            words = lasting((now - at).total_seconds())
        case "time":
            words = format_clock(at)
        case "day":
            words = format_date_time(at)
    return format_html(
        '<time datetime="{}" title="{} UTC" data-style="{}">{}</time>',
        at.isoformat(timespec="seconds"),
        format_exact_time(at),
        style,
        words,
    )


@register.filter
def bar_percent(seconds: float) -> str:
    """Write a length on the time scale of a run, at scale 0."""
    return format_percent(seconds)


@register.filter
def tokens(run: Any) -> str:
    """Write all tokens of a run; nothing before its first model call."""
    return number((run.input_tokens + run.output_tokens) or None)


@register.simple_tag
def token_cell(total: int | None, output: int, style: str = "") -> SafeString:
    """Write the tokens of a step: their sum, and for wide screens both parts."""
    if not total:
        return SafeString("")
    if not output:
        return SafeString(number(total, style))
    return format_html(
        '<span title="{}"><span class="sum">{}</span><span class="split">{} → {}</span>'
        "</span>",
        _("%(input)s input tokens, %(output)s output tokens")
        % {"input": number(total - output), "output": number(output)},
        number(total, style),
        number(total - output, style),
        number(output, style),
    )


EFFECT_LABELS = {
    "read": gettext_lazy("read-only"),
    "idempotent": gettext_lazy("idempotent"),
    "side_effect": gettext_lazy("side effect"),
}


@register.filter
def effect_label(effect: str) -> str:
    """Return the short label of what a call of a tool does."""
    return str(EFFECT_LABELS.get(effect, effect))


@register.filter
def as_json(value: Any) -> str:
    """Write a value as JSON that a person can read."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) < 60 else json.dumps(value, ensure_ascii=False, indent=2)


@register.filter
def marked(text: str) -> SafeString:
    """Mark the `{variables}` of a prompt."""
    pieces = re.split(r"(\{[A-Za-z_][A-Za-z0-9_]*\})", str(text))
    return format_html_join(
        "",
        "{}",
        (
            (format_html('<span class="v">{}</span>', piece) if n % 2 else piece,)
            for n, piece in enumerate(pieces)
        ),
    )


@register.filter
def changed_words(line: DiffLine) -> SafeString:
    """Mark the words that differ in a line of a difference."""
    return render_pieces(line, str)


@register.filter
def changed_prompt_words(line: DiffLine) -> SafeString:
    """Mark the words that differ, and the `{variables}`, in a line of a prompt."""
    return render_pieces(line, marked)


def render_pieces(line: DiffLine, render: Callable[[str], str]) -> SafeString:
    tag = line.tone if line.tone in {"del", "ins"} else ""
    return format_html_join(
        "",
        "{}",
        (
            (format_html("<{0}>{1}</{0}>", tag, render(piece.text)),)
            if tag and piece.is_marked
            else (render(piece.text),)
            for piece in line.pieces
        ),
    )


@register.simple_tag
def meter(left: float, what: str) -> SafeString:
    """Draw how much is left of a limit, in percent."""
    tone = "bad" if left <= 5 else "need" if left < 20 else ""
    return format_html(
        '<svg class="meter" data-tone="{}" role="img" aria-label="{}">'
        '<rect class="of" width="100%" height="100%"/>'
        '<rect class="left" width="{}%" height="100%"/></svg>',
        tone,
        _("%(limit)s: %(percent)s%% left") % {"limit": what, "percent": round(left)},
        round(left, 1),
    )


@register.filter
def person(user: Any) -> str:
    """Write a person's name, or "nobody" if no person did it."""
    return get_person_name(user) if user else _("nobody")


@register.filter
def translated(text: str) -> str:
    """Write a stored sentence in the viewer's language; other texts as they are."""
    return translate_text(decode_stored_text(text), _)


@register.filter(name="visible")
def visible_text(text: str) -> SafeString:
    """Write a model's text with invisible and bidirectional characters revealed."""
    return reveal_text(str(text))


@register.simple_tag(takes_context=True)
def hits(context: template.Context, text: str) -> SafeString:
    """Show a text, or safe HTML, with matches of the page's search marked."""
    return with_hits(str(text), str(context.get("search", "")))


@register.filter
def get(table: dict[str, Any], key: str) -> Any:
    """Look `key` up; an unknown key stands for itself."""
    return table.get(key, key)


@register.inclusion_tag("parts/_definition_menu.html", takes_context=True)
def definition_menu(
    context: template.Context, noun: str, thing: Any, may_edit: bool
) -> dict[str, Any]:
    """Show the menu of an agent, prompt or provider: archive, duplicate, rename."""
    verbs = ("archive", "unarchive", "duplicate", "rename")
    urls = {f"{verb}_url": reverse(f"{noun}-{verb}", args=[thing.pk]) for verb in verbs}
    if noun == "agent" and may_edit:
        urls["export_url"] = reverse("agent-export", args=[thing.pk])
    token = context.get("csrf_token")
    return {"thing": thing, "may_edit": may_edit, "csrf_token": token, **urls}


@register.simple_block_tag
def crumbs(content: str, more: str = "") -> SafeString:
    """Show the links to the pages above this one; the page itself is the heading."""
    words = f"crumbs {more}".rstrip()
    return format_html(
        '<nav class="{}" aria-label="{}">{}</nav>', words, _("Breadcrumbs"), content
    )


class FieldErrorLink(NamedTuple):
    """A field with an error, and where it is on the page."""

    label: str
    place: str


@register.inclusion_tag("parts/_mistakes.html")
def mistakes(
    form: BaseForm, said: str = "", rows: Sequence[BaseForm] = ()
) -> dict[str, Any]:
    """Show above a form how many fields have errors, with links to them.

    `rows` are forms within the form.
    """
    said = said or _("Not saved.")
    forms = [form, *rows]
    wrong = [bound for one in forms for bound in one if one.errors.get(bound.name)]
    messages = [error for one in forms for error in one.non_field_errors()]
    messages += [error for bound in wrong if bound.is_hidden for error in bound.errors]
    fields = [
        FieldErrorLink(capfirst(str(bound.label)), get_focus_id(bound))
        for bound in wrong
        if not bound.is_hidden
    ]
    has_any = any(one.errors for one in forms)
    return {"said": said, "messages": messages, "fields": fields, "has_any": has_any}


def get_focus_id(bound: BoundField) -> str:
    """Return the id of the element to focus: the first of several checkboxes."""
    own = getattr(bound.field.widget, "place", "")
    return own or bound.id_for_label or f"{bound.auto_id}_0"


@register.inclusion_tag("parts/_field.html")
def field(bound: BoundField, label: str = "", unit: str = "") -> dict[str, Any]:
    """Show a form field: label above, help below, an error in place of the help."""
    return {"field": bound, "label": label or bound.label, "unit": unit}
