"""The page that makes tools of an OpenAPI document."""

from typing import Any
from urllib.parse import urlsplit

from django.contrib import messages
from django.contrib.admin.models import ADDITION, LogEntry
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from tools.forms.openapi import OpenApiForm
from tools.models import Tool
from tools.netpolicy import AddressRefused
from tools.openapi.operations import Operation
from tools.openapi.security import credential_of
from tools.outbound import policy_of
from tools.services.import_openapi import import_openapi


def import_page(site: Any, request: HttpRequest) -> HttpResponse:
    """First the document, then its operations, then the tools."""
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
        "title": "Import OpenAPI",
        "opts": site.model._meta,
        "form": form,
    }
    if is_sent and form.is_valid():
        chosen = request.POST.getlist("operation")
        if chosen or "all" in request.POST:
            return make_tools(site, request, form, chosen)
        operations = form.operations()
        context |= {
            "operations": [(one, Tool.Effect(one.effect).label) for one in operations],
            "unreachable": unreachable(operations),
            "possible": sum(not one.flaw for one in operations),
            "kept": form.cleaned_data["kept"],
            "document": form.read,
            "wanted": credential_of(form.read),
            "asked": "operation" in request.POST or "choose" in request.POST,
        }
    return render(request, "admin/tools/tool/import.html", context)


def unreachable(operations: list[Operation]) -> str:
    """Return why tools may not reach a server of the document; empty if they may."""
    servers = {
        urlsplit(one.config["url"]).netloc: one.config["url"]
        for one in operations
        if not one.flaw
    }
    for url in servers.values():
        try:
            policy_of("tool").check_url(url)
        except AddressRefused as refused:
            return str(refused)
    return ""


def make_tools(
    site: Any, request: HttpRequest, form: OpenApiForm, chosen: list[str]
) -> HttpResponse:
    """Make the chosen tools, or all, and show them in the list."""
    user: Any = request.user
    made = import_openapi(
        form.read,
        None if "all" in request.POST else frozenset(chosen),
        by=user,
        base=form.cleaned_data["base"],
        credential=form.cleaned_data["credential"],
    )
    LogEntry.objects.log_actions(user.pk, made, ADDITION, "Imported")
    site.message_user(
        request,
        f"{len(made)} tools made. They are switched off until you enable them.",
        messages.SUCCESS,
    )
    there = reverse("admin:tools_tool_changelist")
    return redirect(f"{there}?kind__exact=http&enabled__exact=0")
