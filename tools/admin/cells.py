"""Cells and tables of the admin pages."""

import re
from datetime import datetime
from typing import Any

from django.template.loader import render_to_string
from django.utils.formats import date_format, number_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from django.utils.translation import gettext as _

from tools.admin.base import render_muted
from tools.admin.filters import FAILURE_RATE_WARNING
from tools.definition.freeze import freeze_tool
from tools.models import Tool
from tools.ui.argument_rows import build_argument_rows

ADDRESS_BREAKS = re.compile(r"(?<=[/.?&=_-])(?![/.?&=_-])")
"""Where a URL may be broken into lines."""


def render_time_ago(at: datetime | None) -> SafeString:
    """Return how long ago, with the exact time as the title."""
    if at is None:
        return format_html("{}", render_muted(_("never")))
    return format_html(
        '<time datetime="{}" title="{} UTC" data-style="ago">{}</time>',
        at.isoformat(timespec="seconds"),
        date_format(at, "DATETIME_FORMAT"),
        _("%(time)s ago") % {"time": timesince(at, depth=1)},
    )


def render_breakable_address(address: str) -> SafeString:
    """Return a URL that breaks between its parts, never within a word."""
    parts = ADDRESS_BREAKS.split(address)
    return format_html_join(SafeString("<wbr>"), "{}", ((part,) for part in parts))


def format_call_count(tool: Any) -> int | str:
    """Return the number of calls in 30 days; an empty text for none."""
    return tool.calls_30 or ""


def render_failure_rate(tool: Any) -> SafeString | str:
    """Return the percentage of failed calls, highlighted if it is high."""
    if not tool.calls_30:
        return ""
    return format_html(
        '<span class="rate" data-tone="{}" title="{}">{}%</span>',
        "bad" if tool.failure_rate >= FAILURE_RATE_WARNING else "",
        tool.last_error,
        number_format(100 * tool.failure_rate, 1) if tool.failure_rate else "0",
    )


def render_arguments_table(tool: Tool | None) -> SafeString:
    if tool is None or tool.pk is None:
        return format_html(
            "<p>{}</p>", _("Derived from the function and shown after saving.")
        )
    rows = build_argument_rows(freeze_tool(tool).args_schema)
    return SafeString(
        render_to_string("admin/tools/tool/arguments.html", {"rows": rows})
    )
