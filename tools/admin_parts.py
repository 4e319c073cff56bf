"""Parts of the tool pages in the admin: cells and tables."""

import re
from datetime import datetime
from typing import Any

from django.template.loader import render_to_string
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timesince import timesince

from tools.admin_filters import FAILING
from tools.admin_plain import quiet
from tools.argument_rows import rows_of
from tools.models import Tool
from tools.services import tool_spec_of

BREAKS = re.compile(r"(?<=[/.?&=_-])(?![/.?&=_-])")
"""Where an address may be broken into lines."""


def when(at: datetime | None) -> SafeString:
    """Return how long ago, the exact time being the title."""
    if at is None:
        return quiet("never")
    ago = timesince(at, depth=1)
    return format_html(
        '<time datetime="{}" title="{} UTC" data-style="ago">{} ago</time>',
        at.isoformat(timespec="seconds"),
        f"{at:%d %b %Y %H:%M}",
        ago,
    )


def breaking(address: str) -> SafeString:
    """Return an address that breaks between its parts, and never within a word."""
    parts = BREAKS.split(address)
    return format_html_join(SafeString("<wbr>"), "{}", ((part,) for part in parts))


def called_by(tool: Any) -> int | str:
    """Return the calls of 30 days, nothing for none."""
    return tool.calls_30 or ""


def failure_rate(tool: Any) -> SafeString | str:
    """Return the failed part in percent, marked where it needs a look."""
    if not tool.calls_30:
        return ""
    return format_html(
        '<span class="rate" data-tone="{}" title="{}">{} %</span>',
        "bad" if tool.failure_rate >= FAILING else "",
        tool.last_error,
        f"{100 * tool.failure_rate:.1f}" if tool.failure_rate else "0",
    )


def arguments_table(tool: Tool | None) -> SafeString:
    """Return the arguments as a table, for a tool that is stored."""
    if tool is None or tool.pk is None:
        return format_html(
            "<p>{}</p>", "They come from the function and are shown after saving."
        )
    rows = rows_of(tool_spec_of(tool).args_schema)
    return SafeString(
        render_to_string("admin/tools/tool/arguments.html", {"rows": rows})
    )
