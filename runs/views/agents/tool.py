"""The page of an agent's overrides for a tool."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from runs.forms.agents.tool_overrides import AgentToolForm
from runs.htmx import HtmxRequest
from runs.models import Agent
from tools.models import Tool


@require_http_methods(["GET", "POST"])
def agent_tool(request: HtmxRequest, pk: int, tool_pk: int) -> HttpResponse:
    agent = get_object_or_404(Agent.objects.editable_by(request.user), pk=pk)
    mine = Tool.objects.filter(used_by__agent=agent)
    tools = (Tool.objects.usable_by(request.user) | mine).distinct()
    tool = get_object_or_404(tools, pk=tool_pk)
    form = AgentToolForm(request.POST or None, agent=agent, tool=tool)
    if form.is_valid():
        form.save()
        messages.success(
            request,
            _("Settings of %(callee)s saved for agent %(agent)s.")
            % {"callee": tool.name, "agent": agent},
        )
        return redirect("agent-edit", pk=pk)
    return render(
        request, "agents/tool.html", {"form": form, "agent": agent, "tool": tool}
    )
