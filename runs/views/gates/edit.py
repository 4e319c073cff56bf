"""The form of an agent's gate."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from runs.forms.gates.gate import GateForm
from runs.htmx import HtmxRequest
from runs.models import Agent
from runs.services.gates.edit import remove_gate, save_gate
from runs.services.gates.state import get_gate
from runs.views.lists.confirm import is_confirmed, render_confirmation


@require_http_methods(["GET", "POST"])
def agent_gate(request: HtmxRequest, pk: int) -> HttpResponse:
    """Require an experiment before a draft is published."""
    agent = get_object_or_404(Agent.objects.editable_by(request.user), pk=pk)
    gate = get_gate(agent)
    form = GateForm(request.user, gate, request.POST or None)
    if form.is_valid():
        save_gate(agent, form.build_plan(), by=request.user)
        messages.success(request, _("Gate saved."))
        return redirect("agent-publish", pk=pk)
    context = {"agent": agent, "gate": gate, "form": form}
    return render(request, "gates/form.html", context)


@require_POST
def agent_gate_remove(request: HtmxRequest, pk: int) -> HttpResponse:
    """Let drafts be published without an experiment."""
    agent = get_object_or_404(Agent.objects.editable_by(request.user), pk=pk)
    gate = get_gate(agent)
    if gate is not None and not is_confirmed(request):
        return render_confirmation(
            request,
            question=_("Remove the gate of %(agent)s?") % {"agent": agent.name},
            effect=_("Anyone who can publish may then publish without a test."),
            do="remove",
            here=reverse("agent-gate", args=[pk]),
        )
    if remove_gate(agent):
        messages.success(request, _("Gate removed."))
    return redirect("agent-publish", pk=pk)
