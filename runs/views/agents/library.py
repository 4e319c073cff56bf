"""The tools and agents that an agent can add, in groups."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from runs.forms.agents.tool_choices import OFF, ToolChoice, list_tool_choices
from runs.htmx import HtmxRequest
from runs.models import Agent, AgentTool
from runs.whole_number import parse_whole_number
from tools.ui.labels import KIND_LABELS

PERMISSIONS = [(OFF, gettext_lazy("Not used")), *AgentTool.Policy.choices]


class ToolGroup(NamedTuple):
    """Tools of one kind or one MCP server, or agents."""

    label: str
    choices: list[ToolChoice]


@require_GET
def agent_library(request: HtmxRequest) -> HttpResponse:
    """List what the agent of `?agent=` does not use; all of it for a new agent."""
    agent = None
    if "agent" in request.GET:
        mine = Agent.objects.editable_by(request.user)
        key = parse_whole_number(request.GET["agent"]) or 0
        agent = get_object_or_404(mine, pk=key)
    owner = agent or Agent(owner=request.user)
    choices = list_tool_choices(owner, request.user, None)
    context = {"agent": agent, **build_library_context(choices)}
    return render(request, "agents/_library_rows.html", context)


def build_library_context(choices: Iterable[ToolChoice]) -> dict[str, Any]:
    groups = group_tool_choices(one for one in choices if not one.is_on)
    return {"library": groups, "permissions": render_permissions()}


def render_permissions() -> dict[str, SafeString]:
    """Return the options of a menu for each that can be selected.

    A page has hundreds of these menus, and templates are slow at loops.
    """
    return {
        chosen: format_html_join(
            "",
            '<option value="{}"{}>{}</option>',
            [
                (value, SafeString(" selected" if value == chosen else ""), label)
                for value, label in PERMISSIONS
            ],
        )
        for chosen, _label in PERMISSIONS
    }


def group_tool_choices(choices: Iterable[ToolChoice]) -> list[ToolGroup]:
    """Return the choices in groups: kinds of tools, MCP servers, then agents."""
    groups: dict[tuple[int, str], list[ToolChoice]] = {}
    for choice in choices:
        groups.setdefault(get_group_key(choice), []).append(choice)
    return [ToolGroup(key[1], groups[key]) for key in sorted(groups)]


def get_group_key(choice: ToolChoice) -> tuple[int, str]:
    """Return what sorts the group, and its label."""
    if isinstance(choice.callee, Agent):
        return 2, _("Agents")
    if server := choice.callee.mcp_server:
        return 1, _("MCP: %(name)s") % {"name": server.name}
    return 0, str(KIND_LABELS.get(choice.callee.kind, choice.callee.kind))
