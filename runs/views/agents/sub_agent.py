"""The page of an agent's overrides for a sub-agent."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from runs.forms.agents.sub_agent import SubAgentForm
from runs.htmx import HtmxRequest
from runs.models import Agent


@require_http_methods(["GET", "POST"])
def sub_agent(request: HtmxRequest, pk: int, sub_pk: int) -> HttpResponse:
    agent = get_object_or_404(Agent.objects.editable_by(request.user), pk=pk)
    mine = Agent.objects.filter(used_by__agent=agent)
    others = (Agent.objects.usable_by(request.user) | mine).exclude(pk=pk).distinct()
    called = get_object_or_404(others, pk=sub_pk)
    form = SubAgentForm(request.POST or None, agent=agent, sub_agent=called)
    if form.is_valid():
        form.save()
        messages.success(
            request,
            _("Settings of %(callee)s saved for agent %(agent)s.")
            % {"callee": called, "agent": agent},
        )
        return redirect("agent-edit", pk=pk)
    return render(
        request,
        "agents/sub_agent.html",
        {"form": form, "agent": agent, "called": called},
    )
