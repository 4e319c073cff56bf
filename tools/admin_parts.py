"""Parts of the tool pages in the admin: cells, tables, revisions."""

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince

from tools.admin_filters import FAILING
from tools.argument_rows import rows_of
from tools.generic import TabularInline
from tools.models import Tool, ToolRevision
from tools.revision_diff import changes_of
from tools.services import tool_spec_of


class RevisionInline(TabularInline):
    """What became of the tool, newest first; to be read only."""

    model = ToolRevision
    fields = readonly_fields = ("number", "changes", "note", "by", "made")
    extra = 0
    can_delete = False
    template = "admin/tools/tool/revisions.html"

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Revisions are written by saving."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Revisions stay as they were."""
        return False

    @admin.display(description="When")
    def made(self, revision: ToolRevision) -> SafeString | str:
        """How long ago."""
        return when(revision.at)

    @admin.display(description="Changes")
    def changes(self, revision: ToolRevision) -> SafeString:
        """What differs from the one before."""
        context = {"changes": changes_of(revision)}
        return SafeString(render_to_string("admin/tools/tool/changes.html", context))


def when(at: datetime | None) -> SafeString | str:
    """Return how long ago, the exact time being the title."""
    if at is None:
        return "never"
    ago = timesince(at, depth=1)
    return format_html(
        '<time datetime="{}" title="{} UTC" data-style="ago">{} ago</time>',
        at.isoformat(timespec="seconds"),
        f"{at:%d %b %Y %H:%M}",
        ago,
    )


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
        f"{100 * tool.failure_rate:.1f}".removesuffix(".0"),
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
