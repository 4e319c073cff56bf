"""Importing an agent file in the browser: drafts to look at, never more."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from runs.forms.agent_import import AgentImportForm
from runs.htmx import HtmxRequest
from runs.models import Agent
from runs.services.agentfile_text import AgentFileRefused
from runs.services.import_agentfile import Imported, import_agentfile


@require_http_methods(["GET", "POST"])
def agent_import(request: HtmxRequest) -> HttpResponse:
    """Ask for an agent file; make drafts of all that is in it, or of nothing."""
    form = AgentImportForm(request.POST or None, request.FILES or None)
    if done := imported(request, form):
        return redirect(*page_of(done))
    return render(request, "agents/import.html", {"form": form})


def imported(request: HtmxRequest, form: AgentImportForm) -> Imported | None:
    """Make drafts of what was sent and say so; None where there is something to mend.

    The form then says what.
    """
    if not form.is_valid():
        return None
    try:
        done = import_agentfile(form.cleaned_data["text"], request.user, inert=True)
    except AgentFileRefused as error:
        form.refuse(error.errors)
        return None
    messages.success(request, told_of(done))
    return done


def told_of(done: Imported) -> str:
    """Say what the file made, and what is left to do by hand."""
    if not done.created:
        return f"All of it is here already, so nothing has changed.{needs(done)}"
    words = ", ".join(done.created)
    has_tool = any(made.startswith("tool ") for made in done.created)
    off = " Tools stay off until someone who manages tools switches them on."
    return f"Made as drafts: {words}.{off if has_tool else ''}{needs(done)}"


def needs(done: Imported) -> str:
    """Say what is missing before the tools can be used."""
    return f" Still missing: {'; '.join(done.missing)}." if done.missing else ""


def page_of(done: Imported) -> tuple[str] | tuple[str, int]:
    """Return where to go on: the agent, if the file made just one."""
    agents = [made for made in done.created if made.startswith("agent ")]
    if len(agents) != 1:
        return ("agent-list",)
    return ("agent-detail", Agent.objects.get(slug=agents[0].split()[1]).pk)
