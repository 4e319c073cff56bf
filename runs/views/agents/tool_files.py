"""Export of tools as a file, and import of tools as drafts."""

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from runs.forms.agents.import_file import AgentImportForm
from runs.htmx import HtmxRequest
from runs.services.agentfile.export import export_tools
from runs.views.agents.import_file import import_uploaded_file
from tools.models import Tool


@require_GET
def tool_export(request: HtmxRequest) -> HttpResponse:
    """Export the tools named by `slug`, as far as the user may edit them."""
    slugs = request.GET.getlist("slug")[:500]
    tools = Tool.objects.editable_by(request.user).filter(slug__in=slugs)
    if not tools:
        raise Http404
    answer = HttpResponse(
        export_tools(tools, by=request.user), content_type="application/yaml"
    )
    name = slugs[0] if len(slugs) == 1 else "tools"
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
