"""Connecting an MCP server in the admin: there, to its sign-in, and back."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from pydantic import ValidationError

from tools.admin.owned import OwnedAdmin
from tools.errors import Interrupted, ToolFailed
from tools.mcp.errors import shorten_server_text
from tools.mcp_servers.sign_in import (
    PendingSignIn,
    begin_mcp_sign_in,
    disconnect_mcp_server,
    finish_mcp_sign_in,
)
from tools.models import McpServer
from tools.secrets import SecretUnreadable, seal, unseal
from tools.text.visible_text import render_visible_text

PENDING_KEY = "mcp_sign_in"
"""Session key of a sealed sign-in that was begun and not finished."""


def connect_page(site: OwnedAdmin, request: HttpRequest, pk: int) -> HttpResponse:
    """Find out where to sign in, and show the link to it."""
    server = get_own_server(site, request, pk)
    error, pending = "", None
    try:
        pending = begin_mcp_sign_in(server, redirect_uri=get_redirect_uri(request))
    except (ToolFailed, Interrupted, SecretUnreadable) as failed:
        error = str(failed)
    if pending is not None:
        request.session[PENDING_KEY] = seal(pending.model_dump_json())
    context = {
        **site.admin_site.each_context(request),
        "title": _("Connect %(server)s") % {"server": server.name},
        "opts": site.opts,
        "server": server,
        "error": render_visible_text(error) if error else "",
        "url": pending.authorization_url if pending else "",
        "host": urlsplit(pending.plan.server.issuer).netloc if pending else "",
    }
    return render(request, "admin/tools/mcpserver/connect.html", context)


def signed_in_page(site: OwnedAdmin, request: HttpRequest) -> HttpResponse:
    """Take the answer of a sign-in, which the browser brings."""
    pending = pop_pending(request)
    given = request.GET
    if pending is None or not pending.is_answered_by(
        given.get("state", ""), given.get("iss", "")
    ):
        site.message_user(
            request,
            _("This sign-in was not started here, or it took too long. Try again."),
            messages.ERROR,
        )
        return redirect("admin:tools_mcpserver_changelist")
    server = get_own_server(site, request, pending.server_id)
    there = redirect("admin:tools_mcpserver_change", server.pk)
    if "code" not in given:
        message = given.get("error_description") or given.get("error", "")
        text = _("Sign-in failed: %(reason)s") % {
            "reason": shorten_server_text(message)
        }
        site.message_user(request, text, messages.ERROR)
        return there
    user: Any = request.user
    try:
        finish_mcp_sign_in(pending, given["code"], server=server, by=user)
    except (ToolFailed, Interrupted) as failed:
        site.message_user(request, str(failed), messages.ERROR)
        return there
    text = _("%(server)s is connected.") % {"server": server.name}
    site.message_user(request, text, messages.SUCCESS)
    return there


def disconnect(site: OwnedAdmin, request: HttpRequest, pk: int) -> HttpResponse:
    server = get_own_server(site, request, pk)
    user: Any = request.user
    disconnect_mcp_server(server, by=user)
    text = _("%(server)s is disconnected.") % {"server": server.name}
    site.message_user(request, text, messages.SUCCESS)
    return redirect("admin:tools_mcpserver_change", server.pk)


def get_own_server(site: OwnedAdmin, request: HttpRequest, pk: int) -> McpServer:
    """Return a server over HTTP that the person may change."""
    server: McpServer | None = site.get_object(request, str(pk))
    if server is None or server.transport != McpServer.Transport.HTTP:
        raise Http404
    if not site.has_change_permission(request, server):
        raise PermissionDenied
    return server


def get_redirect_uri(request: HttpRequest) -> str:
    """Return where the browser comes back to."""
    address = request.build_absolute_uri(reverse("admin:tools_mcp_signed_in"))
    if settings.IS_HTTPS and address.startswith("http://"):
        return f"https://{address.removeprefix('http://')}"
    return address


def pop_pending(request: HttpRequest) -> PendingSignIn | None:
    """Return the sign-in that this browser began; it can be answered once."""
    sealed = request.session.pop(PENDING_KEY, "")
    try:
        return PendingSignIn.model_validate_json(unseal(sealed)) if sealed else None
    except (SecretUnreadable, ValidationError):
        return None
