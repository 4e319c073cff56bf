"""The page that imports tools from an OpenAPI document."""

from typing import Any
from urllib.parse import urlsplit

from django.contrib import messages
from django.contrib.admin.models import ADDITION, LogEntry
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tools.net.netpolicy import AddressRefused
from tools.net.outbound_policy import get_net_policy
from tools.openapi.form import OpenApiForm
from tools.openapi.import_tools import import_openapi
from tools.openapi.operations import Operation
from tools.openapi.security import find_required_credential


def import_openapi_view(site: Any, request: HttpRequest) -> HttpResponse:
    """Show the upload form, then the operations, then create the tools."""
    if not site.has_add_permission(request):
        raise PermissionDenied
    is_sent = request.method == "POST"
    form = OpenApiForm(
        request.POST if is_sent else None,
        request.FILES if is_sent else None,
        user=request.user,
    )
    context: dict[str, Any] = {
        **site.admin_site.each_context(request),
        "title": _("Import OpenAPI document"),
        "opts": site.model._meta,
        "form": form,
    }
    if is_sent and form.is_valid():
        chosen = request.POST.getlist("operation")
        if chosen or "all" in request.POST:
            return create_openapi_tools(site, request, form, chosen)
        operations = form.operations()
        context |= {
            "operations": operations,
            "unreachable": find_unreachable_server(operations),
            "possible": sum(not one.flaw for one in operations),
            "kept": form.cleaned_data["kept"],
            "document": form.parsed_document,
            "wanted": find_required_credential(form.parsed_document),
            "asked": "operation" in request.POST or "choose" in request.POST,
        }
    return render(request, "admin/tools/tool/import.html", context)


def find_unreachable_server(operations: list[Operation]) -> str:
    """Return why a server of the document is refused; empty if none is."""
    servers = {
        urlsplit(one.config["url"]).netloc: one.config["url"]
        for one in operations
        if not one.flaw
    }
    for url in servers.values():
        try:
            get_net_policy("tool").check_url(url)
        except AddressRefused as refused:
            return str(refused)
    return ""


def create_openapi_tools(
    site: Any, request: HttpRequest, form: OpenApiForm, chosen: list[str]
) -> HttpResponse:
    """Create the selected tools, or all, and redirect to the list."""
    user: Any = request.user
    made = import_openapi(
        form.parsed_document,
        None if "all" in request.POST else frozenset(chosen),
        by=user,
        base=form.cleaned_data["base"],
        credential=form.cleaned_data["credential"],
    )
    LogEntry.objects.log_actions(user.pk, made, ADDITION, "Imported")
    site.message_user(
        request,
        ngettext(
            "Created %(count)d tool. It is disabled until you enable it.",
            "Created %(count)d tools. They are disabled until you enable them.",
            len(made),
        )
        % {"count": len(made)},
        messages.SUCCESS,
    )
    there = reverse("admin:tools_tool_changelist")
    return redirect(f"{there}?kind__exact=http&enabled__exact=0")
