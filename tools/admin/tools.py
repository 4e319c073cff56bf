"""Tools and credentials in the Django admin."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from tools.admin_audit import AuditEntryAdmin
from tools.admin_filters import (
    ArchivedFilter,
    FailingFilter,
    KindFilter,
    UsedFilter,
)
from tools.admin_import import import_page
from tools.admin_mcp import McpServerAdmin, server_line
from tools.admin_owned import OwnedAdmin, seen_users
from tools.admin_parts import (
    arguments_table,
    called_by,
    failure_rate,
    when,
)
from tools.admin_people import PersonAdmin, TeamAdmin
from tools.admin_plain import quiet
from tools.admin_schema import json_part, schema_part
from tools.admin_try import try_page
from tools.forms.credential import CredentialForm
from tools.forms.kinds import FORMS
from tools.generic import ModelForm
from tools.models import AuditEntry, Credential, McpServer, Tool, ToolRevision
from tools.revision_diff import changes_of
from tools.services import duplicate_tool, restore_revision, save_tool
from tools.sparkline import days_of, draw
from tools.tool_words import call_flaw, change_waits
from tools.usage import with_usage

admin.site.site_header = admin.site.site_title = "Agentsite"
admin.site.index_title = "Administration"
admin.site.empty_value_display = ""
admin.site.register(AuditEntry, AuditEntryAdmin)
admin.site.register(McpServer, McpServerAdmin)
admin.site.unregister([User, Group])  # Django's own pages of them
admin.site.register(User, PersonAdmin)
admin.site.register(Group, TeamAdmin)


@admin.register(Tool)
class ToolAdmin(OwnedAdmin):
    """Tools: what models may call."""

    list_display = (
        *("tool", "kind_word", "effect", "approval", "is_on"),
        *("last_used", "calls", "failed", "by_day"),
    )
    list_filter = (
        *(KindFilter, "effect", "enabled"),
        *(UsedFilter, FailingFilter, ArchivedFilter),
    )
    search_fields = ("name", "slug", "description")
    ordering = ("name",)
    list_per_page = 50
    readonly_fields = ("arguments_shown", "server_shown")
    noun = "tool"
    actions = ("enable", "disable", "archive", "bring_back", "export")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the visible tools with their calls of 30 days."""
        rows = with_usage(super().get_queryset(request))
        return rows.select_related("credential", "mcp_server", "pin")

    # The list.

    @admin.display(description="Tool", ordering="name")
    def tool(self, tool: Tool) -> SafeString:
        """The name, what it is for, what it lacks, and what went wrong last."""
        sentence = tool.description.partition("\n")[0]
        said = (
            ("need", change_waits(tool)),
            ("bad", call_flaw(tool) if tool.enabled else ""),
            ("bad", tool.last_error and f"Last error: {tool.last_error}"),
        )
        return format_html(
            "<code>{}</code> <small>{}</small>{}",
            *(tool.name, sentence),
            format_html_join(
                "",
                '<small class="{}">{}</small>',
                ((tone, words) for tone, words in said if words),
            ),
        )

    @admin.display(description="Kind", ordering="kind")
    def kind_word(self, tool: Tool) -> str:
        """What people call the kind."""
        return FORMS[tool.kind].word if tool.kind in FORMS else tool.kind

    @admin.display(description="Enabled", ordering="enabled")
    def is_on(self, tool: Tool) -> SafeString | str:
        """Whether agents may call it."""
        return "yes" if tool.enabled else SafeString('<span class="tag">off</span>')

    @admin.display(description="Last used", ordering="last_used_at")
    def last_used(self, tool: Tool) -> SafeString | str:
        """How long ago."""
        return when(tool.last_used_at)

    @admin.display(description="Calls, 30 days", ordering="calls_30")
    def calls(self, tool: Any) -> int | str:
        """How often in 30 days."""
        return called_by(tool)

    @admin.display(
        description="Failed",
        ordering="failure_rate",
        empty_value=quiet("no calls"),
    )
    def failed(self, tool: Any) -> SafeString | str:
        """Which part of the calls failed."""
        return failure_rate(tool)

    @admin.display(description="By day", empty_value="")
    def by_day(self, tool: Any) -> SafeString:
        """Calls and failures of 30 days as a drawing."""
        return draw(days_of(tool.recent_usage, now=timezone.now()))

    @admin.action(description="Enable", permissions=["change"])
    def enable(self, request: HttpRequest, tools: QuerySet[Tool]) -> None:
        """Let agents call the tools again."""
        self._change(request, tools, "Enabled", enabled=True)

    @admin.action(description="Disable", permissions=["change"])
    def disable(self, request: HttpRequest, tools: QuerySet[Tool]) -> None:
        """Refuse calls from now on, also of running runs."""
        self._change(request, tools, "Disabled", enabled=False)

    @admin.action(description="Archive", permissions=["change"])
    def archive(self, request: HttpRequest, tools: QuerySet[Tool]) -> None:
        """Take tools away; runs and agents that refer to them keep doing so."""
        self._change(request, tools, "Archived", archived_at=timezone.now())

    @admin.action(description="Bring back from the archive", permissions=["change"])
    def bring_back(self, request: HttpRequest, tools: QuerySet[Tool]) -> None:
        """Take tools out of the archive."""
        self._change(request, tools, "Brought back", archived_at=None)

    @admin.action(description="Export as a file", permissions=["view"])
    def export(self, request: HttpRequest, tools: QuerySet[Tool]) -> HttpResponse:
        """Take definitions along, without secrets."""
        slugs = [
            tool.slug for tool in tools if self.has_change_permission(request, tool)
        ]
        if not slugs:
            self.message_user(request, "None of them is yours.", messages.WARNING)
            return redirect("admin:tools_tool_changelist")
        return redirect(
            f"{reverse('tool-export')}?{urlencode({'slug': slugs}, doseq=True)}"
        )

    def _change(
        self, request: HttpRequest, tools: QuerySet[Tool], word: str, **values: Any
    ) -> None:
        mine = [tool for tool in tools if self.has_change_permission(request, tool)]
        for tool in mine:
            for name, value in values.items():
                setattr(tool, name, value)
            save_tool(tool, by=request.user, note=word)  # type: ignore[arg-type]  # staff
            self.log_change(request, tool, word)
        left = len(tools) - len(mine)
        self.message_user(request, f"{word}: {len(mine)}.", messages.SUCCESS)
        if left:
            self.message_user(
                request, f"{left} are not yours to change.", messages.WARNING
            )

    # The form.

    def kind_of(self, request: HttpRequest, tool: Tool | None) -> str:
        """Return the kind of the form: the tool's, or the one asked for."""
        asked = request.GET.get("kind", "function") if tool is None else tool.kind
        can_be = asked in FORMS and (tool is not None or FORMS[asked].is_typed_in)
        return asked if can_be else "function"

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **more: Any
    ) -> type[ModelForm]:
        """Return the form of the kind."""
        more["form"] = FORMS[self.kind_of(request, obj)]
        form: type[ModelForm] = super().get_form(request, obj, change=change, **more)
        return form

    def formfield_for_foreignkey(
        self, db_field: Any, request: HttpRequest, **more: Any
    ) -> Any:
        """Offer only credentials that the person may use."""
        if db_field.name == "credential":
            more["queryset"] = Credential.objects.usable_by(request.user)
        return super().formfield_for_foreignkey(db_field, request, **more)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the parts of the kind's form."""
        parts = FORMS[self.kind_of(request, obj)].fieldsets()
        return [*parts, ("This change", {"fields": ["note"]})] if obj else parts

    @admin.display(description="Arguments")
    def arguments_shown(self, tool: Tool | None) -> SafeString:
        """The arguments, as the function declares them."""
        return arguments_table(tool)

    @admin.display(description="Comes from")
    def server_shown(self, tool: Tool | None) -> SafeString:
        """The MCP server, and whether it changed the tool."""
        return server_line(tool)

    def save_model(
        self, request: HttpRequest, obj: Any, form: ModelForm, change: bool
    ) -> None:
        """Save the tool and its revision."""
        if not change:
            obj.owner = request.user
        note = form.cleaned_data.get("note", "") or ("" if change else "Made")
        save_tool(obj, by=request.user, note=note)  # type: ignore[arg-type]  # staff

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """Offer one button a kind."""
        kinds = [(kind, form.word) for kind, form in FORMS.items() if form.is_typed_in]
        return super().changelist_view(
            request, {"title": "Tools", "kinds": kinds, **(extra_context or {})}
        )

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **more: Any
    ) -> Any:
        """Show beside the form how it was used, and what became of it."""
        tool = context.get("original")
        context["kind_word"] = FORMS[self.kind_of(request, tool)].word
        if tool is not None:
            context["call_flaw"] = call_flaw(tool)
            context["spark"] = draw(days_of(tool.recent_usage, now=timezone.now()))
            rows = tool.revisions.select_related("by")
            context["revisions"] = [(row, changes_of(row)) for row in rows]
        return super().render_change_form(request, context, *args, **more)

    # More pages.

    def get_urls(self) -> list[URLPattern]:
        """Add the pages of one tool."""
        own = self.admin_site.admin_view
        return [
            path("<int:pk>/try/", own(self.try_it), name="tools_tool_try"),
            path("<int:pk>/duplicate/", own(self.copy), name="tools_tool_duplicate"),
            path(
                "revisions/<int:pk>/restore/", own(self.restore), name="tools_restore"
            ),
            path("schema/", own(schema_part), name="tools_tool_schema"),
            path("json/", own(json_part), name="tools_tool_json"),
            path("import/", own(self.import_openapi), name="tools_tool_import"),
            *super().get_urls(),
        ]

    def try_it(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Show the form of the arguments, and what came of a call."""
        return try_page(self, request, pk)

    def import_openapi(self, request: HttpRequest) -> HttpResponse:
        """Make tools of an OpenAPI document."""
        return import_page(self, request)

    def restore(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Take back an earlier revision, as a new one."""
        visible = self.get_queryset(request)
        revision = get_object_or_404(ToolRevision, pk=pk, tool__in=visible.values("pk"))
        if request.method != "POST" or not self.has_change_permission(
            request, revision.tool
        ):
            raise PermissionDenied
        tool = restore_revision(revision, by=request.user)  # type: ignore[arg-type]  # staff
        self.log_change(request, tool, f"Restored revision {revision.number}")
        self.message_user(
            request, f"Revision {revision.number} is back, as {tool.revision}."
        )
        return redirect("admin:tools_tool_change", tool.pk)

    def copy(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Make a copy that is switched off, and show it."""
        tool = self.get_object(request, str(pk))
        there = reverse("admin:tools_tool_changelist")
        if request.method != "POST" or tool is None:
            return redirect(there)
        if not self.has_add_permission(request):
            return redirect(there)
        copy = duplicate_tool(tool, by=request.user)  # type: ignore[arg-type]  # staff
        self.message_user(
            request,
            f"This is a copy of {tool.name}; it is switched off.",
            messages.INFO,
        )
        return redirect("admin:tools_tool_change", copy.pk)


@admin.register(Credential)
class CredentialAdmin(OwnedAdmin):
    """Secrets for tools; written, never read."""

    form = CredentialForm
    noun = "credential"
    goes_when_unused = True
    actions = None
    list_display = ("name", "kind", "bound_to", "is_set", "changed")
    list_filter = ("kind",)
    search_fields = ("name",)
    ordering = ("name",)
    fields = ("name", "kind", "field", "secret", "hosts", "visibility", "groups")

    @admin.display(description="Hosts")
    def bound_to(self, credential: Credential) -> str:
        """The hosts it may be sent to."""
        return ", ".join(credential.hosts)

    @admin.display(description="Secret")
    def is_set(self, credential: Credential) -> SafeString | str:
        """Whether a secret is stored."""
        if credential.sealed:
            return "stored"
        return format_html('<span class="rate" data-tone="need">{}</span>', "missing")

    @admin.display(description="Changed", ordering="updated_at")
    def changed(self, credential: Credential) -> SafeString | str:
        """How long ago."""
        return when(credential.updated_at)

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **more: Any
    ) -> Any:
        """Show beside the form which tools and servers send it."""
        if credential := context.get("original"):
            context["used_by"] = seen_users(credential, request.user).seen
        return super().render_change_form(request, context, *args, **more)
