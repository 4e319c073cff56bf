"""The page that makes tools of an OpenAPI document."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from tools.forms.openapi import OpenApiForm
from tools.openapi.security import credential_of
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
        if chosen:
            return make_tools(site, request, form, chosen)
        context |= {
            "operations": form.operations(),
            "text": form.cleaned_data["text"],
            "document": form.read,
            "wanted": credential_of(form.read),
            "asked": "operation" in request.POST or "choose" in request.POST,
        }
    return render(request, "admin/tools/tool/import.html", context)


def make_tools(
    site: Any, request: HttpRequest, form: OpenApiForm, chosen: list[str]
) -> HttpResponse:
    """Make the tools and show them in the list."""
    made = import_openapi(
        form.read,
        frozenset(chosen),
        by=request.user,  # type: ignore[arg-type]  # staff
        base=form.cleaned_data["base"],
        credential=form.cleaned_data["credential"],
    )
    for tool in made:
        site.log_addition(request, tool, "Imported")
    site.message_user(
        request,
        f"{len(made)} tools made. They are switched off until you enable them.",
        messages.SUCCESS,
    )
    there = reverse("admin:tools_tool_changelist")
    return redirect(f"{there}?kind__exact=http&enabled__exact=0")
