"""Actions on the agents selected in the list."""

from collections.abc import Callable

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from runs.htmx import HtmxRequest, get_return_url
from runs.models import Agent
from runs.services.agentfile.export import export_agents
from runs.services.agents.manage import (
    archive_definition,
    change_visibility,
    delete_agents,
    find_deletable_agents,
    unarchive_definition,
)
from runs.ui.frame.undo import add_message_with_undo
from runs.views.agents.tool_files import build_yaml_download
from runs.views.lists.actions import describe_archived_before, describe_not_archived
from runs.views.lists.confirm import is_confirmed
from runs.views.lists.selection import report_unchanged_rows
from runs.whole_number import parse_whole_number
from tools.audit.write import write_entry
from tools.ownership import Visibility

MAX_SELECTED_AGENTS = 200
"""Agents at once; a page of the list has fewer."""

CHANGES: dict[str, Callable[[Agent], None]] = {
    "archive": archive_definition,
    "unarchive": unarchive_definition,
    "share": lambda agent: change_visibility(agent, Visibility.EVERYONE),
    "unshare": lambda agent: change_visibility(agent, Visibility.PRIVATE),
}
UNDONE_BY = {
    "archive": "unarchive",
    "unarchive": "archive",
    "share": "unshare",
    "unshare": "share",
}


@require_POST
def agent_selection(request: HtmxRequest) -> HttpResponse:
    """Archive, restore, share, export or delete the selected agents."""
    chosen = {parse_whole_number(t) for t in request.POST.getlist("agent")} - {None}
    back = redirect(get_agent_list_url(request))
    if len(chosen) > MAX_SELECTED_AGENTS:
        messages.error(
            request,
            _("Select at most %(count)s agents. Nothing was changed.")
            % {"count": MAX_SELECTED_AGENTS},
        )
        return back
    editable = Agent.objects.editable_by(request.user).filter(is_playground=False)
    agents = editable.filter(pk__in=chosen).order_by("name", "pk")
    do = request.POST.get("do", "")
    if not agents:
        messages.error(request, _("Select agents of yours in the list first."))
    elif do in CHANGES:
        change_selected_agents(request, agents, do)
    elif do == "export":
        return export_selected_agents(request, agents)
    elif do == "delete":
        return delete_selected_agents(request, agents) or back
    else:
        messages.error(request, _("Unknown action. Nothing was changed."))
    return back


def get_agent_list_url(request: HtmxRequest) -> str:
    return get_return_url(request, reverse("agent-list"))


def change_selected_agents(
    request: HtmxRequest, agents: QuerySet[Agent], do: str
) -> None:
    """Change the agents; say what that means, and which needed no change."""
    rows = list(agents.select_related("prompt"))
    if request.POST.get("undo") == "1":
        rows = [row for row in rows if not is_changed_by(row, UNDONE_BY[do])]
    if not rows:
        messages.error(request, _("Nothing was undone: the agents changed meanwhile."))
        return
    changed = [row for row in rows if is_changed_by(row, do)]
    # The groups of an agent are lost when its sharing changes.
    has_groups = any(row.visibility == Visibility.GROUPS for row in changed)
    is_undoable = do in ("archive", "unarchive") or not has_groups
    left = [row for row in rows if row not in changed]
    for agent in changed:
        CHANGES[do](agent)
    text = describe_changed_agents(do, len(changed))
    if changed and is_undoable:
        add_message_with_undo(
            request,
            text,
            reverse("agent-selection"),
            agent=[str(row.pk) for row in changed],
            do=UNDONE_BY[do],
            undo="1",
            here=get_agent_list_url(request),
        )
    elif changed:
        messages.success(request, text)
    if left:
        report_unchanged_rows(request, describe_unchanged_agents(do, len(left)), left)


def describe_changed_agents(do: str, count: int) -> str:
    return {
        "archive": ngettext(
            "%(count)s agent archived. It accepts no new runs.",
            "%(count)s agents archived. They accept no new runs.",
            count,
        ),
        "unarchive": ngettext(
            "%(count)s agent restored.", "%(count)s agents restored.", count
        ),
        "share": ngettext(
            "%(count)s agent shared with everyone.",
            "%(count)s agents shared with everyone.",
            count,
        ),
        "unshare": ngettext(
            "%(count)s agent is now private.",
            "%(count)s agents are now private.",
            count,
        ),
    }[do] % {"count": count}


def describe_unchanged_agents(do: str, count: int) -> str:
    """Return a sentence about `names`."""
    return {
        "archive": describe_archived_before(count),
        "unarchive": describe_not_archived(count),
        "share": ngettext(
            "%(names)s was already shared with everyone.",
            "%(names)s were already shared with everyone.",
            count,
        ),
        "unshare": ngettext(
            "%(names)s was already private.", "%(names)s were already private.", count
        ),
    }[do]


def is_changed_by(agent: Agent, do: str) -> bool:
    match do:
        case "archive":
            return agent.archived_at is None
        case "unarchive":
            return agent.archived_at is not None
        case "share":
            return agent.visibility != Visibility.EVERYONE
        case _:
            return agent.visibility != Visibility.PRIVATE


def export_selected_agents(
    request: HtmxRequest, agents: QuerySet[Agent]
) -> HttpResponse:
    """Download the newest versions as one file; drafts of agents without a version."""
    rows = list(agents.select_related("provider", "prompt", "owner"))
    text = export_agents(rows)
    for agent in rows:
        write_entry("exported", "agent", agent, by=request.user)
    return build_yaml_download(text, rows[0].slug if len(rows) == 1 else "agents")


def delete_selected_agents(
    request: HtmxRequest, agents: QuerySet[Agent]
) -> HttpResponse | None:
    """Show a confirmation first; then delete the agents to which nothing refers."""
    deletable = find_deletable_agents(agents)
    if not is_confirmed(request):
        context = {
            "agents": deletable,
            "kept": agents.exclude(pk__in=deletable.values("pk")),
            "here": get_agent_list_url(request),
        }
        return render(request, "agents/delete.html", context)
    count = agents.count()
    done = delete_agents(agents)
    if done:
        text = ngettext("%(count)s agent deleted.", "%(count)s agents deleted.", done)
        messages.success(request, text % {"count": done})
    if left := count - done:
        text = ngettext(
            "%(count)s agent not deleted: something refers to it. Archive it instead.",
            "%(count)s agents not deleted: something refers to them. Archive them "
            "instead.",
            left,
        )
        messages.info(request, text % {"count": left})
    return None
