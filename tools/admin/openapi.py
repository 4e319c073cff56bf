"""The pages that import tools from an OpenAPI document."""

from typing import Any, cast
from urllib.parse import urlsplit

from django.contrib import messages
from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from tools.admin.base import redirect_to_new_tools
from tools.net.netpolicy import AddressRefused
from tools.net.outbound_policy import get_net_policy
from tools.openapi.choice import OperationChoice
from tools.openapi.form import OpenApiForm
from tools.openapi.import_tools import import_openapi
from tools.openapi.operations import Operation, list_operations
from tools.openapi.security import find_required_credential
from tools.openapi.uploads import current_uploads, load_document


def upload_openapi_view(site: Any, request: HttpRequest) -> HttpResponse:
    """Show the upload form, and store the document."""
    if not site.has_add_permission(request):
        raise PermissionDenied
    is_sent = request.method == "POST"
    form = OpenApiForm(
        request.POST if is_sent else None,
        request.FILES if is_sent else None,
        user=cast("User", request.user),
    )
    if is_sent and form.is_valid():
        return redirect("admin:tools_tool_import_choice", form.upload.pk)
    context = {**build_openapi_page_context(site, request), "form": form}
    return render(request, "admin/tools/tool/import.html", context)


def choose_operations_view(site: Any, request: HttpRequest, pk: int) -> HttpResponse:
    """Show the operations of an uploaded document, then create the tools."""
    if not site.has_add_permission(request):
        raise PermissionDenied
    user = cast("User", request.user)
    upload = current_uploads(user).select_related("credential").filter(pk=pk).first()
    if upload is None:
        text = _("The document has expired. Upload it again.")
        site.message_user(request, text, messages.WARNING)
        return redirect("admin:tools_tool_import")
    document = load_document(upload)
    is_create = "create" in request.POST or "all" in request.POST
    keys = None if "all" in request.POST else request.POST.getlist("operation")
    if is_create and (keys is None or keys):
        made = import_openapi(
            document,
            keys if keys is None else frozenset(keys),
            by=user,
            base=upload.server_url,
            credential=upload.credential,
        )
        LogEntry.objects.log_actions(user.pk, made, ADDITION, "Imported")
        return redirect_to_new_tools(request, made, kind="http")
    operations = list_operations(document, base=upload.server_url)
    context = {
        **build_openapi_page_context(site, request),
        "choice": OperationChoice(operations, request.POST or request.GET),
        "unreachable": find_unreachable_server(operations),
        "document": document,
        "upload": upload,
        "wanted": find_required_credential(document),
        "is_nothing_selected": is_create,
    }
    return render(request, "admin/tools/tool/import_choice.html", context)


def build_openapi_page_context(site: Any, request: HttpRequest) -> dict[str, Any]:
    return {
        **site.admin_site.each_context(request),
        "title": _("Import OpenAPI document"),
        "opts": site.model._meta,
    }


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
