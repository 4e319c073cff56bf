"""Import of agents in the browser, as drafts only."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from runs.forms.agents.import_file import AgentImportForm
from runs.htmx import HtmxRequest
from runs.models import Agent
from runs.services.agentfile.load import ImportResult, import_agentfile
from runs.services.agentfile.text import AgentFileRefused
from runs.services.importers.convert import ForeignImport, convert_foreign_file
from runs.services.importers.errors import ForeignFileRefused
from runs.services.importers.registry import IMPORTERS


@require_http_methods(["GET", "POST"])
def agent_import(request: HtmxRequest) -> HttpResponse:
    """Import an agent file as drafts, all of it or nothing.

    A file of another product is converted and shown first; nothing is stored then.
    """
    form = AgentImportForm(request.POST or None, request.FILES or None)
    foreign = convert_uploaded_file(request, form)
    context = {"form": form, "products": [one.title for one in IMPORTERS]}
    if foreign is not None:
        form.replace_text(foreign.text)
        context |= {"foreign": foreign, "plan": plan_agent_import(request, form)}
    elif done := import_uploaded_file(request, form):
        return redirect(*get_page_after_import(done))
    return render(request, "agents/import.html", context)


def convert_uploaded_file(
    request: HtmxRequest, form: AgentImportForm
) -> ForeignImport | None:
    """Convert a file of another product; None for any other, or one with errors."""
    if not form.is_valid():
        return None
    text, name = form.cleaned_data["text"], form.file_name
    try:
        return convert_foreign_file(text, request.user, name=name)
    except ForeignFileRefused as error:
        form.add_error("text", str(error))
        return None


def plan_agent_import(
    request: HtmxRequest, form: AgentImportForm
) -> ImportResult | None:
    try:
        return import_agentfile(
            form.data["text"], request.user, inert=True, dry_run=True
        )
    except AgentFileRefused as error:
        form.add_file_errors(error.errors)
        return None


def import_uploaded_file(
    request: HtmxRequest, form: AgentImportForm
) -> ImportResult | None:
    """Create drafts from the uploaded file; return None if the form has errors."""
    if not form.is_valid():
        return None
    try:
        done = import_agentfile(form.cleaned_data["text"], request.user, inert=True)
    except AgentFileRefused as error:
        form.add_file_errors(error.errors)
        return None
    messages.success(request, summarize_import(done))
    return done


def summarize_import(done: ImportResult) -> str:
    parts = []
    if done.created:
        names = {"names": ", ".join(done.created)}
        parts.append(_("Created as drafts: %(names)s.") % names)
    else:
        parts.append(_("Nothing changed: everything in the file already exists."))
    if any(created.startswith("tool ") for created in done.created):
        parts.append(
            _("Tools stay disabled until someone who manages tools enables them.")
        )
    if done.missing:
        missing = {"parts": "; ".join(done.missing)}
        parts.append(_("Still missing: %(parts)s.") % missing)
    return " ".join(parts)


def get_page_after_import(done: ImportResult) -> tuple[str] | tuple[str, int]:
    """Return the next page: the agent, if the file created exactly one."""
    agents = [made for made in done.created if made.startswith("agent ")]
    if len(agents) != 1:
        return ("agent-list",)
    return ("agent-detail", Agent.objects.get(slug=agents[0].split()[1]).pk)
