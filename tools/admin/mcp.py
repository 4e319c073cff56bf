"""MCP servers in the admin: reaching them, taking over tools, accepting changes."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from tools.admin_owned import OwnedAdmin
from tools.admin_parts import breaking, when
from tools.errors import Interrupted, ToolFailed
from tools.forms.mcp_server import McpServerForm
from tools.mcp.offer import Offer
from tools.mcp.pin import McpPin
from tools.mcp_diff import parts_of
from tools.models import Credential, McpServer, Tool
from tools.services import (
    accept_mcp_change,
    discover_mcp_tools,
    import_mcp_tools,
    keep_mcp_tool_off,
)
from tools.services.import_mcp_tools import LOOK_SECONDS, tools_of
from tools.visible_text import visible


class McpServerAdmin(OwnedAdmin):
    """Servers of the Model Context Protocol."""

    form = McpServerForm
    noun = "MCP server"
    goes_when_unused = True
    actions = None
    list_display = ("name", "transport", "where", "tools", "waiting", "changed")
    list_filter = ("transport",)
    search_fields = ("name", "url", "command")
    ordering = ("name",)
    fieldsets = (
        (None, {"fields": ["name", "transport"]}),
        (
            "Streamable HTTP",
            {"fields": ["url", "credential"], "classes": ["when-http"]},
        ),
        ("Command", {"fields": ["command"], "classes": ["when-stdio"]}),
        ("Sharing", {"fields": ["visibility", "groups"]}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the visible servers with their tools."""
        alive = Q(tool__archived_at=None)
        waiting = alive & Q(tool__pin__noticed_at__isnull=False)
        rows: QuerySet[Any] = super().get_queryset(request)
        found: QuerySet[Any] = rows.annotate(
            tools_now=Count("tool", filter=alive, distinct=True),
            changed_now=Count("tool", filter=waiting, distinct=True),
        )
        return found

    @admin.display(description="Where")
    def where(self, server: McpServer) -> SafeString:
        """Its address, or the name of its command."""
        return format_html("<code>{}</code>", breaking(server.url or server.command))

    @admin.display(description="Tools")
    def tools(self, server: Any) -> int | str:
        """How many of its tools were taken over."""
        return server.tools_now or ""

    @admin.display(description="Changes to accept")
    def waiting(self, server: Any) -> SafeString | str:
        """How many of them wait for a person."""
        if not server.changed_now:
            return ""
        return format_html(
            '<span class="rate" data-tone="need">{}</span>', server.changed_now
        )

    @admin.display(description="Changed", ordering="updated_at")
    def changed(self, server: McpServer) -> SafeString | str:
        """How long ago."""
        return when(server.updated_at)

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
        """Go on to the tools of the new server."""
        if {"_addanother", "_continue"} & set(request.POST):
            return super().response_add(request, obj, post_url_continue)
        return redirect("admin:tools_mcp_tools", obj.pk)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """Call the list by its name."""
        return super().changelist_view(
            request, {"title": "MCP servers", **(extra_context or {})}
        )

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **more: Any
    ) -> Any:
        """Show beside the form which tools were taken over, and what waits."""
        if server := context.get("original"):
            context["taken"] = tools_of(server)
        return super().render_change_form(request, context, *args, **more)

    def get_urls(self) -> list[URLPattern]:
        """Add the pages of one server, and of one change."""
        own = self.admin_site.admin_view
        return [
            path("<int:pk>/tools/", own(self.its_tools), name="tools_mcp_tools"),
            path("changes/<int:pk>/", own(self.change), name="tools_mcp_change"),
            *super().get_urls(),
        ]

    def its_tools(self, request: HttpRequest, pk: int) -> HttpResponse:
        """GET asks nothing; POST asks the server, and makes tools of what is chosen."""
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
            return self.take_over(request, server, offers)
        return self.show_tools(request, server, offers, error)

    def show_tools(
        self,
        request: HttpRequest,
        server: McpServer,
        offers: list[Offer] | None,
        error: str,
    ) -> HttpResponse:
        """Show what the server offers beside what was taken over."""
        rows = None if offers is None else rows_of(server, offers)
        context = {
            **self.admin_site.each_context(request),
            "title": f"Tools of {server.name}",
            "opts": self.model._meta,
            "server": server,
            "rows": rows,
            "can_choose": any(row["can_choose"] for row in rows or ()),
            "error": visible(error) if error else "",
            "seconds": int(LOOK_SECONDS),
            "taken": tools_of(server),
            "can_add": can_add_tools(request),
        }
        return render(request, "admin/tools/mcpserver/tools.html", context)

    def take_over(
        self, request: HttpRequest, server: McpServer, offers: list[Offer]
    ) -> HttpResponse:
        """Make the chosen tools; what changed since it was shown is left out."""
        if not can_add_tools(request):
            raise PermissionDenied
        chosen = dict(
            reversed(one.partition(" ")[::2]) for one in request.POST.getlist("offer")
        )
        made = import_mcp_tools(server, offers, chosen, by=request.user)  # type: ignore[arg-type]  # staff
        for tool in made:
            self.log_change(request, server, f"Took over the tool {tool.name}")
        if left := len(chosen) - len(made):
            self.message_user(
                request,
                f"{left} of them changed while you looked, or are here already.",
                messages.WARNING,
            )
        if not made:
            if not chosen:
                self.message_user(request, "Choose a tool.", messages.WARNING)
            return self.show_tools(request, server, offers, "")
        self.message_user(
            request,
            f"{len(made)} tools made. They are switched off until you enable them.",
            messages.SUCCESS,
        )
        there = reverse("admin:tools_tool_changelist")
        return redirect(f"{there}?kind__exact=mcp&enabled__exact=0")

    def change(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Show what a server changed about one tool; POST decides on exactly that."""
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
                self.message_user(request, decide(request, tool), messages.SUCCESS)
            except ToolFailed as failed:
                error = str(failed)
            else:
                return redirect("admin:tools_tool_change", tool.pk)
        return self.show_change(request, tool, error, may=may)

    def show_change(
        self, request: HttpRequest, tool: Tool, error: str, *, may: bool
    ) -> HttpResponse:
        """Show the accepted and the newer definition."""
        pin = McpPin.objects.filter(tool=tool).first()
        offered = pin.offered if pin else None
        context = {
            **self.admin_site.each_context(request),
            "title": f"What changed about {tool.name}",
            "opts": self.model._meta,
            "tool": tool,
            "pin": pin,
            "flaw": visible(offered.get("flaw", "")) if offered else "",
            "parts": parts_of(pin.accepted, offered) if pin and offered else [],
            "digest": pin.digest if pin and offered else "",
            "error": error,
            "may": may,
        }
        status = 409 if error else 200
        return render(
            request, "admin/tools/mcpserver/change.html", context, status=status
        )


def decide(request: HttpRequest, tool: Tool) -> str:
    """Accept what the person has seen, or put it away; return what to tell."""
    user: Any = request.user
    digest = request.POST.get("digest", "")
    if "off" in request.POST:
        keep_mcp_tool_off(tool, digest, by=user)
        return f"{tool.name} stays switched off."
    accept_mcp_change(tool, digest, by=user)
    return f"{tool.name} is switched on again."


def can_add_tools(request: HttpRequest) -> bool:
    """Whether the person may make tools."""
    user: Any = request.user
    return bool(user.has_perm("tools.add_tool"))


def rows_of(server: McpServer, offers: list[Offer]) -> list[dict[str, Any]]:
    """Return what the page shows of each offer, and of tools that are gone."""
    taken = {tool.config.get("tool"): tool for tool in tools_of(server)}
    rows = []
    for offer in offers:
        tool = taken.get(offer.name)
        is_changed = tool is not None and tool.config.get("digest") != offer.digest
        rows.append(
            {
                "offer": offer,
                "name": visible(offer.name[:200]),
                "description": visible(offer.description[:2_000]),
                "is_cut": len(offer.description) > 2_000,
                "hint": offer.hint,
                "flaw": visible(offer.flaw),
                "tool": tool,
                "is_changed": is_changed,
                "can_choose": tool is None and not offer.flaw,
            }
        )
    here = {offer.name for offer in offers}
    return rows + [
        {"name": visible(str(name)), "tool": tool, "is_gone": True, "can_choose": False}
        for name, tool in taken.items()
        if name not in here
    ]


def server_line(tool: Tool | None) -> SafeString:
    """Return which server a tool comes from, and whether a change of it waits."""
    if tool is None or tool.pk is None:
        return SafeString("")
    pin = McpPin.objects.filter(tool=tool).first()
    context = {"tool": tool, "server": tool.mcp_server, "pin": pin}
    return SafeString(render_to_string("admin/tools/mcpserver/server.html", context))
