"""Actions on the tools selected in the list."""

from collections.abc import Iterable
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from runs.htmx import HtmxRequest, get_return_url
from runs.services.tools.delete_unused import delete_unused_tools, find_deletable_tools
from runs.ui.frame.undo import add_message_with_undo
from runs.views.lists.actions import describe_archived_before, describe_not_archived
from runs.views.lists.confirm import is_confirmed
from runs.views.lists.selection import report_unchanged_rows
from runs.whole_number import parse_whole_number
from tools.definition.save import change_tools
from tools.models import Tool
from tools.ownership import Visibility

MAX_SELECTED_TOOLS = 200
"""Tools at once; a page of the list has fewer."""


class BulkToolChange(NamedTuple):
    """What an action changes, and the note of the revisions."""

    note: str
    field: str
    value: Any


CHANGES = {
    "enable": BulkToolChange("Enabled", "enabled", True),
    "disable": BulkToolChange("Disabled", "enabled", False),
    "share": BulkToolChange("Shared", "visibility", Visibility.EVERYONE),
    "share_groups": BulkToolChange(
        "Shared with groups", "visibility", Visibility.GROUPS
    ),
    "unshare": BulkToolChange("Made private", "visibility", Visibility.PRIVATE),
    "ask_always": BulkToolChange("Approval: always", "approval", Tool.Approval.ALWAYS),
    "ask_effects": BulkToolChange(
        "Approval: side effects", "approval", Tool.Approval.SIDE_EFFECTS
    ),
    "ask_never": BulkToolChange("Approval: never", "approval", Tool.Approval.NEVER),
    "unarchive": BulkToolChange("Restored", "archived_at", None),
}
"""All but archiving, whose value is the time; sharing with groups only undoes."""


@require_POST
def tool_selection(request: HtmxRequest) -> HttpResponse:
    """Change, export or delete the selected tools."""
    user = request.user
    if not (user.is_staff and user.has_perm("tools.change_tool")):
        raise PermissionDenied
    chosen = {parse_whole_number(t) for t in request.POST.getlist("tool")} - {None}
    back = redirect(get_tool_list_url(request))
    tools = Tool.objects.editable_by(user).filter(pk__in=chosen).order_by("name", "pk")
    do = request.POST.get("do", "")
    if len(chosen) > MAX_SELECTED_TOOLS:
        text = _("Select at most %(count)s tools. Nothing was changed.")
        messages.error(request, text % {"count": MAX_SELECTED_TOOLS})
    elif not tools:
        messages.error(request, _("Select tools of yours in the list first."))
    elif do == "undo":
        undo_tool_changes(request, tools)
    elif change := find_change(do):
        change_selected_tools(request, tools, do, change)
    elif do == "export":
        slugs = [tool.slug for tool in tools]
        return redirect(
            f"{reverse('tool-export')}?{urlencode({'slug': slugs}, doseq=True)}"
        )
    elif do == "delete":
        return delete_selected_tools(request, tools) or back
    else:
        messages.error(request, _("Unknown action. Nothing was changed."))
    return back


def get_tool_list_url(request: HtmxRequest) -> str:
    return get_return_url(request, reverse("tool-list"))


def find_change(do: str) -> BulkToolChange | None:
    if do == "archive":
        return BulkToolChange("Archived", "archived_at", timezone.now())
    return CHANGES.get(do)


def find_reverse(tool: Tool, field: str) -> str:
    """Return the action that gives `tool` the value that it has now."""
    value = getattr(tool, field)
    for do, change in CHANGES.items():
        if change.field == field and change.value == value:
            return do
    return "archive"


def apply_change(
    request: HtmxRequest, tools: Iterable[Tool], change: BulkToolChange
) -> None:
    values = {change.field: change.value}
    change_tools(tools, by=request.user, note=change.note, **values)


def change_selected_tools(
    request: HtmxRequest, tools: QuerySet[Tool], do: str, change: BulkToolChange
) -> None:
    """Change the tools; say how many were changed, and which needed no change."""
    rows = list(tools)
    reverses = {tool.pk: find_reverse(tool, change.field) for tool in rows}
    due = [tool for tool in rows if reverses[tool.pk] != do]
    left = [tool for tool in rows if reverses[tool.pk] == do]
    apply_change(request, due, change)
    if due:
        add_message_with_undo(
            request,
            describe_changed_tools(do, len(due)),
            reverse("tool-selection"),
            tool=[str(tool.pk) for tool in due],
            before=[reverses[tool.pk] for tool in due],
            do="undo",
            done=do,
            here=get_tool_list_url(request),
        )
    if left:
        report_unchanged_rows(request, describe_unchanged_tools(do, len(left)), left)


def describe_changed_tools(do: str, count: int) -> str:
    text = {
        "enable": ngettext(
            "Enabled %(count)d tool.", "Enabled %(count)d tools.", count
        ),
        "disable": ngettext(
            "Disabled %(count)d tool.", "Disabled %(count)d tools.", count
        ),
        "archive": ngettext(
            "Archived %(count)d tool.", "Archived %(count)d tools.", count
        ),
        "unarchive": ngettext(
            "Restored %(count)d tool.", "Restored %(count)d tools.", count
        ),
        "share": ngettext(
            "Shared %(count)d tool with everyone.",
            "Shared %(count)d tools with everyone.",
            count,
        ),
        "unshare": ngettext(
            "Made %(count)d tool private.", "Made %(count)d tools private.", count
        ),
        "ask_always": ngettext(
            "%(count)d tool always requires approval.",
            "%(count)d tools always require approval.",
            count,
        ),
        "ask_effects": ngettext(
            "%(count)d tool requires approval for side effects.",
            "%(count)d tools require approval for side effects.",
            count,
        ),
        "ask_never": ngettext(
            "%(count)d tool no longer requires approval.",
            "%(count)d tools no longer require approval.",
            count,
        ),
    }.get(do) or ngettext("Changed %(count)d tool.", "Changed %(count)d tools.", count)
    return text % {"count": count}


def describe_unchanged_tools(do: str, count: int) -> str:
    """Return a sentence about `names`."""
    return {
        "enable": ngettext(
            "%(names)s was already enabled.", "%(names)s were already enabled.", count
        ),
        "disable": ngettext(
            "%(names)s was already disabled.",
            "%(names)s were already disabled.",
            count,
        ),
        "archive": describe_archived_before(count),
        "unarchive": describe_not_archived(count),
    }.get(do) or ngettext(
        "%(names)s already had this setting.",
        "%(names)s already had this setting.",
        count,
    )


def undo_tool_changes(request: HtmxRequest, tools: QuerySet[Tool]) -> None:
    """Restore the earlier value of each tool, named by the action in `before`.

    Skips tools whose value has changed since the action `done`.
    """
    post = request.POST
    before = dict(zip(post.getlist("tool"), post.getlist("before"), strict=False))
    count = 0
    for tool in tools:
        change = find_change(before.get(str(tool.pk), ""))
        if change is None:
            continue
        if find_reverse(tool, change.field) == post.get("done", ""):
            apply_change(request, [tool], change)
            count += 1
    if not count:
        messages.error(request, _("Nothing was undone: the tools changed meanwhile."))
        return
    text = ngettext("Undone for %(count)d tool.", "Undone for %(count)d tools.", count)
    messages.success(request, text % {"count": count})


def delete_selected_tools(
    request: HtmxRequest, tools: QuerySet[Tool]
) -> HttpResponse | None:
    """Show a confirmation first; then delete the tools to which nothing refers."""
    if not is_confirmed(request):
        deletable = find_deletable_tools(tools)
        context = {
            "tools": deletable,
            "kept": tools.exclude(pk__in=deletable.values("pk")),
            "here": get_tool_list_url(request),
        }
        return render(request, "tools/delete.html", context)
    count = tools.count()
    done = delete_unused_tools(tools, by=request.user)
    if done:
        text = ngettext("Deleted %(count)d tool.", "Deleted %(count)d tools.", done)
        messages.success(request, text % {"count": done})
    if left := count - done:
        text = ngettext(
            "%(count)d tool not deleted: an agent or a run refers to it. Archive it "
            "instead.",
            "%(count)d tools not deleted: agents or runs refer to them. Archive them "
            "instead.",
            left,
        )
        messages.info(request, text % {"count": left})
    return None
