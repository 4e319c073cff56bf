"""Export of tools and agents as files, and import of tools as drafts."""

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from runs.forms.agents.import_file import AgentImportForm
from runs.htmx import HtmxRequest
from runs.models import Agent
from runs.services.agentfile.export import (
    ExportTooLarge,
    export_agent_version,
    export_tools,
)
from runs.views.agents.import_file import import_uploaded_file
from runs.whole_number import parse_whole_number
from tools.audit.write import write_entry
from tools.models import Tool


@require_GET
def tool_export(request: HtmxRequest) -> HttpResponse:
    """Export the tools named by `slug`, as far as the user may edit them."""
    slugs = request.GET.getlist("slug")[:500]
    tools = Tool.objects.editable_by(request.user).filter(slug__in=slugs)
    if not tools:
        raise Http404
    name = slugs[0] if len(slugs) == 1 else "tools"
    return build_yaml_download(export_tools(tools, by=request.user), name)


@require_GET
def agent_export(request: HtmxRequest, pk: int) -> HttpResponse:
    """Export one version of an agent as `?version=` says; without it, the draft.

    `?datasets=1` adds the datasets and evaluators of its experiments.
    """
    agent = get_object_or_404(Agent.objects.editable_by(request.user), pk=pk)
    version, name = None, f"{agent.slug}-draft"
    if "version" in request.GET:
        number = parse_whole_number(request.GET["version"]) or 0
        version = get_object_or_404(
            agent.versions.select_related("spec"), number=number
        )
        name = f"{agent.slug}-v{number}"
    try:
        text = export_agent_version(
            agent, version, datasets=request.GET.get("datasets") == "1"
        )
    except ExportTooLarge as refused:
        messages.error(request, str(refused))
        return redirect("agent-versions", pk=pk)
    write_entry("exported", "agent", agent, by=request.user)
    return build_yaml_download(text, name)


def build_yaml_download(text: str, name: str) -> HttpResponse:
    """Return an agent file as a download that nothing caches."""
    answer = HttpResponse(text, content_type="application/yaml")
    answer["Content-Disposition"] = f'attachment; filename="{name}.yaml"'
    answer["Cache-Control"] = "no-store"
    return answer


@require_http_methods(["GET", "POST"])
def tool_import(request: HtmxRequest) -> HttpResponse:
    """Import tools as disabled drafts, all of them or nothing."""
    form = AgentImportForm(request.POST or None, request.FILES or None)
    if import_uploaded_file(request, form):
        return redirect("tool-list")
    user = request.user
    may_manage = user.is_staff and user.has_perm("tools.view_tool")
    context = {"form": form, "may_manage": may_manage}
    return render(request, "tools/import.html", context)
