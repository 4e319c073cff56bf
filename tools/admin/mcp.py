"""MCP servers in the admin: importing tools and accepting changes."""

from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_POST

from tools.admin.base import redirect_to_new_tools
from tools.admin.cells import render_breakable_address, render_time_ago
from tools.admin.mcp_sign_in import connect_page, disconnect, signed_in_page
from tools.admin.owned import OwnedAdmin
from tools.errors import Interrupted, ToolFailed
from tools.forms.mcp_server import McpServerForm
from tools.mcp_offer import Offer
from tools.mcp_pin import McpPin
from tools.mcp_servers.decide_change import accept_mcp_change, reject_mcp_change
from tools.mcp_servers.import_tools import (
    discover_mcp_tools,
    get_discovery_timeout,
    import_mcp_tools,
    list_server_tools,
)
from tools.models import Credential, McpServer, McpSignIn, Tool
from tools.text.visible_text import render_visible_text
from tools.ui.mcp_diff import diff_definitions


class McpServerAdmin(OwnedAdmin):
    """Servers of the Model Context Protocol."""

    form = McpServerForm
    noun = "MCP server"
    can_delete_when_unused = True
    actions = ("share", "unshare")
    list_display = ("name", "transport", "where", "tools", "waiting", "changed")
    list_filter = ("transport",)
    search_fields = ("name", "url", "command")
    ordering = ("name",)
    fieldsets = (
        (None, {"fields": ["name", "transport"]}),
        (
            _("Streamable HTTP"),
            {
                "fields": ["url", "credential", "client_id", "client_secret"],
                "classes": ["when-http"],
            },
        ),
        (_("Command"), {"fields": ["command"], "classes": ["when-stdio"]}),
        (_("Changes of its tools"), {"fields": ["accepts_descriptions"]}),
        (_("Sharing"), {"fields": ["visibility", "groups"]}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the visible servers with the number of their tools."""
        alive = Q(tool__archived_at=None)
        waiting = alive & Q(tool__pin__noticed_at__isnull=False)
        rows: QuerySet[Any] = super().get_queryset(request)
        found: QuerySet[Any] = rows.annotate(
            tools_now=Count("tool", filter=alive, distinct=True),
            changed_now=Count("tool", filter=waiting, distinct=True),
        )
        return found

    @admin.display(description=_("Location"))
    def where(self, server: McpServer) -> SafeString:
        """Its URL or the name of its command."""
        return format_html(
            "<code>{}</code>", render_breakable_address(server.url or server.command)
        )

    @admin.display(description=_("Tools"))
    def tools(self, server: Any) -> int | str:
        return server.tools_now or ""

    @admin.display(description=_("Changes to review"))
    def waiting(self, server: Any) -> SafeString | str:
        if not server.changed_now:
            return ""
        return format_html(
            '<span class="rate" data-tone="need">{}</span>', server.changed_now
        )

    @admin.display(description=_("Changed"), ordering="updated_at")
    def changed(self, server: McpServer) -> SafeString | str:
        return render_time_ago(server.updated_at)

    def formfield_for_foreignkey(
        self, db_field: Any, request: HttpRequest, **more: Any
    ) -> Any:
        """Offer only credentials that the person may use."""
        if db_field.name == "credential":
            more["queryset"] = Credential.objects.usable_by(request.user)
        return super().formfield_for_foreignkey(db_field, request, **more)

    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Continue with the tools of the new server."""
        if {"_addanother", "_continue"} & set(request.POST):
            return super().response_add(request, obj, post_url_continue)
        return redirect("admin:tools_mcp_tools", obj.pk)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        return super().changelist_view(
            request, {"title": gettext("MCP servers"), **(extra_context or {})}
        )

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **more: Any
    ) -> Any:
        """Show the imported tools beside the form."""
        if server := context.get("original"):
            context["taken"] = list_server_tools(server)
            context["sign_in"] = McpSignIn.objects.filter(server=server).first()
        return super().render_change_form(request, context, *args, **more)

    def get_urls(self) -> list[URLPattern]:
        own = self.admin_site.admin_view
        return [
            path(
                "<int:pk>/connect/",
                own(require_POST(partial(connect_page, self))),
                name="tools_mcp_connect",
            ),
            path(
                "<int:pk>/disconnect/",
                own(require_POST(partial(disconnect, self))),
                name="tools_mcp_disconnect",
            ),
            path(
                "signed-in/",
                own(require_GET(partial(signed_in_page, self))),
                name="tools_mcp_signed_in",
            ),
            path(
                "<int:pk>/tools/", own(self.server_tools_page), name="tools_mcp_tools"
            ),
            path(
                "changes/<int:pk>/",
                own(self.review_change_page),
                name="tools_mcp_change",
            ),
            *super().get_urls(),
        ]

    def server_tools_page(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Discover the tools on POST, and import the selected ones."""
        server: McpServer | None = self.get_object(request, str(pk))
        if server is None:
            raise Http404
        if not self.has_view_permission(request, server):
            raise PermissionDenied
        offers: list[Offer] | None = None
        error = ""
        if request.method == "POST":
            try:
                offers = discover_mcp_tools(server, by=request.user)  # type: ignore[arg-type]  # staff
            except (ToolFailed, Interrupted) as failed:
                error = str(failed)
        if offers is not None and "import" in request.POST:
            return self.import_chosen_tools(request, server, offers)
        return self.render_server_tools(request, server, offers, error)

    def render_server_tools(
        self,
        request: HttpRequest,
        server: McpServer,
        offers: list[Offer] | None,
        error: str,
    ) -> HttpResponse:
        """Show the tools of the server, imported or not."""
        rows = None if offers is None else build_offer_rows(server, offers)
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Tools of %(server)s") % {"server": server.name},
            "opts": self.model._meta,
            "server": server,
            "rows": rows,
            "can_choose": any(row["can_choose"] for row in rows or ()),
            "error": render_visible_text(error) if error else "",
            "seconds": int(get_discovery_timeout(server)),
            "taken": list_server_tools(server),
            "can_add": can_add_tool(request),
        }
        return render(request, "admin/tools/mcpserver/tools.html", context)

    def import_chosen_tools(
        self, request: HttpRequest, server: McpServer, offers: list[Offer]
    ) -> HttpResponse:
        """Import the selected tools, except those that changed meanwhile."""
        if not can_add_tool(request):
            raise PermissionDenied
        chosen = dict(
            reversed(one.partition(" ")[::2]) for one in request.POST.getlist("offer")
        )
        made = import_mcp_tools(server, offers, chosen, by=request.user)  # type: ignore[arg-type]  # staff
        for tool in made:
            self.log_change(request, server, f"Imported the tool {tool.name}")
        if left := len(chosen) - len(made):
            self.message_user(
                request,
                ngettext(
                    "%(count)d tool was not imported: it changed meanwhile, or it was "
                    "already imported.",
                    "%(count)d tools were not imported: they changed meanwhile, or "
                    "they were already imported.",
                    left,
                )
                % {"count": left},
                messages.WARNING,
            )
        if not made:
            if not chosen:
                text = gettext("Select at least one tool.")
                self.message_user(request, text, messages.WARNING)
            return self.render_server_tools(request, server, offers, "")
        return redirect_to_new_tools(request, made, kind="mcp")

    def review_change_page(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Show how a server changed one tool; accept or reject the change on POST."""
        tools = Tool.objects.visible_to(request.user)
        tool: Any = tools.filter(pk=pk, kind="mcp").first()
        if tool is None:
            raise Http404
        may = (
            request.user.has_perm("tools.change_tool")
            and Tool.objects.editable_by(request.user).filter(pk=pk).exists()
        )
        if not may and not request.user.has_perm("tools.view_tool"):
            raise PermissionDenied
        error = ""
        if request.method == "POST":
            if not may:
                raise PermissionDenied
            try:
                self.message_user(
                    request, decide_mcp_change(request, tool), messages.SUCCESS
                )
            except ToolFailed as failed:
                error = str(failed)
            else:
                return redirect("admin:tools_tool_change", tool.pk)
        return self.render_change(request, tool, error, may=may)

    def render_change(
        self, request: HttpRequest, tool: Tool, error: str, *, may: bool
    ) -> HttpResponse:
        pin = McpPin.objects.filter(tool=tool).first()
        offered = pin.offered if pin else None
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Change of %(tool)s") % {"tool": tool.name},
            "opts": self.model._meta,
            "tool": tool,
            "pin": pin,
            "flaw": render_visible_text(pin.flaw.rstrip(".")) if pin else "",
            "parts": diff_definitions(pin.accepted, offered) if pin and offered else [],
            "digest": pin.digest if pin and offered else "",
            "error": error,
            "may": may,
        }
        status = 409 if error else 200
        return render(
            request, "admin/tools/mcpserver/change.html", context, status=status
        )


def decide_mcp_change(request: HttpRequest, tool: Tool) -> str:
    """Accept or reject the change that was shown; return the message."""
    user: Any = request.user
    digest = request.POST.get("digest", "")
    if "off" in request.POST:
        reject_mcp_change(tool, digest, by=user)
        return gettext("Change rejected. %(tool)s stays disabled.") % {
            "tool": tool.name
        }
    accept_mcp_change(tool, digest, by=user)
    return gettext("Change accepted. %(tool)s is enabled.") % {"tool": tool.name}


def can_add_tool(request: HttpRequest) -> bool:
    user: Any = request.user
    return bool(user.has_perm("tools.add_tool"))


def build_offer_rows(server: McpServer, offers: list[Offer]) -> list[dict[str, Any]]:
    """Return a row per offered tool, and per imported tool that is gone."""
    taken = {tool.config.get("tool"): tool for tool in list_server_tools(server)}
    rows = []
    for offer in offers:
        tool = taken.get(offer.name)
        is_changed = tool is not None and tool.config.get("digest") != offer.digest
        rows.append(
            {
                "offer": offer,
                "name": render_visible_text(offer.name[:200]),
                "description": render_visible_text(offer.description[:2_000]),
                "is_cut": len(offer.description) > 2_000,
                "hint": offer.hint,
                "flaw": render_visible_text(offer.flaw),
                "tool": tool,
                "is_changed": is_changed,
                "can_choose": tool is None and not offer.flaw_code,
            }
        )
    here = {offer.name for offer in offers}
    return rows + [
        {
            "name": render_visible_text(str(name)),
            "tool": tool,
            "is_gone": True,
            "can_choose": False,
        }
        for name, tool in taken.items()
        if name not in here
    ]


def render_tool_server(tool: Tool | None) -> SafeString:
    """Return the server of a tool, and whether a change awaits review."""
    if tool is None or tool.pk is None:
        return SafeString("")
    pin = McpPin.objects.filter(tool=tool).first()
    context = {"tool": tool, "server": tool.mcp_server, "pin": pin}
    return SafeString(render_to_string("admin/tools/mcpserver/server.html", context))
