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
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from tools.admin.audit import AuditEntryAdmin
from tools.admin.base import filter_with_title, render_muted
from tools.admin.cells import (
    format_call_count,
    render_arguments_table,
    render_failure_rate,
    render_time_ago,
)
from tools.admin.filters import (
    AgentFilter,
    ArchivedFilter,
    CredentialFilter,
    FailingFilter,
    KindFilter,
    OwnerFilter,
    UsageFilter,
)
from tools.admin.mcp import McpServerAdmin, render_tool_server
from tools.admin.openapi import choose_operations_view, upload_openapi_view
from tools.admin.owned import OwnedAdmin, find_visible_referrers
from tools.admin.people import AccountAdmin, UserGroupAdmin
from tools.admin.schema import check_json_view, schema_editor_view
from tools.definition.restore_revision import restore_revision
from tools.definition.save import duplicate_tool, save_tool
from tools.forms.credential import CredentialForm
from tools.forms.kinds import TOOL_FORMS
from tools.models import AuditEntry, Credential, McpServer, Tool, ToolRevision
from tools.typed_generics import ModelForm
from tools.ui.labels import describe_pending_change, find_call_flaw
from tools.ui.revision_diff import diff_revision
from tools.ui.sparkline import render_sparkline, sum_usage_by_day
from tools.usage import with_usage

admin.site.site_header = admin.site.site_title = "Agentsite"
admin.site.index_title = _("Administration")
admin.site.empty_value_display = ""
admin.site.register(AuditEntry, AuditEntryAdmin)
admin.site.register(McpServer, McpServerAdmin)
admin.site.unregister([User, Group])  # Django's own pages of them
admin.site.register(User, AccountAdmin)
admin.site.register(Group, UserGroupAdmin)


@admin.register(Tool)
class ToolAdmin(OwnedAdmin):
    list_display = (
        *("tool", "slug_text", "kind_word", "owner_name", "effect", "approval"),
        *("is_on", "last_used", "calls", "failed", "by_day"),
    )
    list_filter = (
        *(KindFilter, OwnerFilter, AgentFilter, CredentialFilter, "effect", "enabled"),
        *(
            (
                "visibility",
                filter_with_title(admin.ChoicesFieldListFilter, _("sharing")),
            ),
        ),
        *(UsageFilter, FailingFilter, ArchivedFilter),
    )
    search_fields = ("name", "slug", "description")
    ordering = ("name",)
    list_per_page = 50
    readonly_fields = ("arguments_display", "server_display")
    noun = "tool"
    actions = (
        *("enable", "disable", "share", "unshare", "ask_always", "ask_never"),
        *("archive", "unarchive", "export"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the visible tools with their usage in 30 days."""
        rows = with_usage(super().get_queryset(request))
        return rows.select_related("owner", "credential", "mcp_server", "pin")

    # The list.

    @admin.display(description=_("Tool"), ordering="name")
    def tool(self, tool: Tool) -> SafeString:
        """Name, first line of the description, and problems."""
        sentence = tool.description.partition("\n")[0]
        said = (
            ("need", describe_pending_change(tool)),
            ("bad", find_call_flaw(tool) if tool.enabled else ""),
            (
                "bad",
                tool.last_error
                and gettext("Last error: %(error)s") % {"error": tool.last_error},
            ),
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

    @admin.display(description=_("Slug"), ordering="slug")
    def slug_text(self, tool: Tool) -> str:
        return tool.slug

    @admin.display(description=_("Kind"), ordering="kind")
    def kind_word(self, tool: Tool) -> str:
        form = TOOL_FORMS.get(tool.kind)
        return str(form.kind_label) if form else tool.kind

    @admin.display(description=_("Enabled"), ordering="enabled")
    def is_on(self, tool: Tool) -> SafeString | str:
        if tool.enabled:
            return gettext("yes")
        return format_html('<span class="tag">{}</span>', gettext("disabled"))

    @admin.display(description=_("Owner"), ordering="owner__username")
    def owner_name(self, tool: Tool) -> str:
        return tool.owner.get_username()

    @admin.display(description=_("Last used"), ordering="last_used_at")
    def last_used(self, tool: Tool) -> SafeString | str:
        return render_time_ago(tool.last_used_at)

    @admin.display(description=_("Calls, 30 days"), ordering="calls_30")
    def calls(self, tool: Any) -> int | str:
        return format_call_count(tool)

    @admin.display(
        description=_("Failed"),
        ordering="failure_rate",
        empty_value=render_muted(_("no calls")),
    )
    def failed(self, tool: Any) -> SafeString | str:
        return render_failure_rate(tool)

    @admin.display(description=_("By day"), empty_value="")
    def by_day(self, tool: Any) -> SafeString:
        """Calls and failures of 30 days as a chart."""
        return render_sparkline(sum_usage_by_day(tool.recent_usage, now=timezone.now()))

    @admin.action(description=_("Enable"), permissions=["change"])
    def enable(self, request: HttpRequest, tools: QuerySet[Tool]) -> None:
        done = self._change(request, tools, "Enabled", enabled=True)
        text = ngettext("Enabled %(count)d tool.", "Enabled %(count)d tools.", done)
        self.message_user(request, text % {"count": done}, messages.SUCCESS)

    @admin.action(description=_("Disable"), permissions=["change"])
    def disable(self, request: HttpRequest, tools: QuerySet[Tool]) -> None:
        """Refuse calls from now on, also those of active runs."""
        done = self._change(request, tools, "Disabled", enabled=False)
        text = ngettext("Disabled %(count)d tool.", "Disabled %(count)d tools.", done)
        self.message_user(request, text % {"count": done}, messages.SUCCESS)

    @admin.action(description=_("Share with everyone"), permissions=["change"])
    def share(self, request: HttpRequest, tools: QuerySet[Tool]) -> None:
        self._change_access(request, tools, "Shared", visibility="everyone")

    @admin.action(description=_("Stop sharing"), permissions=["change"])
    def unshare(self, request: HttpRequest, tools: QuerySet[Tool]) -> None:
        self._change_access(request, tools, "Made private", visibility="private")

    @admin.action(description=_("Always require approval"), permissions=["change"])
    def ask_always(self, request: HttpRequest, tools: QuerySet[Tool]) -> None:
        self._change_access(request, tools, "Approval: always", approval="always")

    @admin.action(description=_("Never require approval"), permissions=["change"])
    def ask_never(self, request: HttpRequest, tools: QuerySet[Tool]) -> None:
        self._change_access(request, tools, "Approval: never", approval="never")

    def _change_access(
        self, request: HttpRequest, tools: QuerySet[Tool], note: str, **values: Any
    ) -> None:
        done = self._change(request, tools, note, **values)
        text = ngettext("Changed %(count)d tool.", "Changed %(count)d tools.", done)
        self.message_user(request, text % {"count": done}, messages.SUCCESS)

    @admin.action(description=_("Archive"), permissions=["change"])
    def archive(self, request: HttpRequest, tools: QuerySet[Tool]) -> None:
        """Hide tools; runs and agents that use them are not changed."""
        done = self._change(request, tools, "Archived", archived_at=timezone.now())
        text = ngettext("Archived %(count)d tool.", "Archived %(count)d tools.", done)
        self.message_user(request, text % {"count": done}, messages.SUCCESS)

    @admin.action(description=_("Restore from the archive"), permissions=["change"])
    def unarchive(self, request: HttpRequest, tools: QuerySet[Tool]) -> None:
        done = self._change(request, tools, "Restored", archived_at=None)
        text = ngettext("Restored %(count)d tool.", "Restored %(count)d tools.", done)
        self.message_user(request, text % {"count": done}, messages.SUCCESS)

    @admin.action(description=_("Export"), permissions=["view"])
    def export(self, request: HttpRequest, tools: QuerySet[Tool]) -> HttpResponse:
        """Download the definitions, without secrets."""
        slugs = [
            tool.slug for tool in tools if self.has_change_permission(request, tool)
        ]
        if not slugs:
            text = gettext("Select tools that you own: none of these is yours.")
            self.message_user(request, text, messages.WARNING)
            return redirect("admin:tools_tool_changelist")
        return redirect(
            f"{reverse('tool-export')}?{urlencode({'slug': slugs}, doseq=True)}"
        )

    def _change(
        self, request: HttpRequest, tools: QuerySet[Tool], note: str, **values: Any
    ) -> int:
        """Change the tools the person may change, and return how many."""
        mine = [tool for tool in tools if self.has_change_permission(request, tool)]
        for tool in mine:
            for name, value in values.items():
                setattr(tool, name, value)
            save_tool(tool, by=request.user, note=note)  # type: ignore[arg-type]  # staff
            self.log_change(request, tool, note)
        if left := len(tools) - len(mine):
            text = ngettext(
                "%(count)d tool was not changed: you are not its owner.",
                "%(count)d tools were not changed: you are not their owner.",
                left,
            )
            self.message_user(request, text % {"count": left}, messages.WARNING)
        return len(mine)

    # The form.

    def kind_of(self, request: HttpRequest, tool: Tool | None) -> str:
        """Return the kind of the tool, or of the requested form."""
        asked = request.GET.get("kind", "function") if tool is None else tool.kind
        can_be = asked in TOOL_FORMS and (
            tool is not None or TOOL_FORMS[asked].can_be_created
        )
        return asked if can_be else "function"

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **more: Any
    ) -> type[ModelForm]:
        more["form"] = TOOL_FORMS[self.kind_of(request, obj)]
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
        parts = TOOL_FORMS[self.kind_of(request, obj)].fieldsets()
        return [*parts, (_("Change note"), {"fields": ["note"]})] if obj else parts

    @admin.display(description=_("Arguments"))
    def arguments_display(self, tool: Tool | None) -> SafeString:
        return render_arguments_table(tool)

    @admin.display(description=_("Server"))
    def server_display(self, tool: Tool | None) -> SafeString:
        """The MCP server, and whether it changed the tool."""
        return render_tool_server(tool)

    def save_model(
        self, request: HttpRequest, obj: Any, form: ModelForm, change: bool
    ) -> None:
        """Save the tool and its revision."""
        if not change:
            obj.owner = request.user
        if not obj.description.strip():
            self.message_user(
                request,
                gettext(
                    "%(tool)s has no description. The model selects tools by this text."
                )
                % {"tool": obj.name},
                messages.WARNING,
            )
        note = form.cleaned_data.get("note", "") or ("" if change else "Created")
        save_tool(obj, by=request.user, note=note)  # type: ignore[arg-type]  # staff

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """Add one button per kind."""
        kinds = [
            (kind, form.kind_label)
            for kind, form in TOOL_FORMS.items()
            if form.can_be_created
        ]
        return super().changelist_view(
            request,
            {"title": gettext("Tools"), "kinds": kinds, **(extra_context or {})},
        )

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **more: Any
    ) -> Any:
        """Show usage and revisions beside the form."""
        tool = context.get("original")
        context["kind_word"] = TOOL_FORMS[self.kind_of(request, tool)].kind_label
        if tool is not None:
            context["call_flaw"] = find_call_flaw(tool)
            context["spark"] = render_sparkline(
                sum_usage_by_day(tool.recent_usage, now=timezone.now())
            )
            rows = tool.revisions.select_related("by")
            context["revisions"] = [(row, diff_revision(row)) for row in rows]
        return super().render_change_form(request, context, *args, **more)

    # More pages.

    def get_urls(self) -> list[URLPattern]:
        own = self.admin_site.admin_view
        return [
            path("<int:pk>/duplicate/", own(self.copy), name="tools_tool_duplicate"),
            path(
                "revisions/<int:pk>/restore/", own(self.restore), name="tools_restore"
            ),
            path("schema/", own(schema_editor_view), name="tools_tool_schema"),
            path("json/", own(check_json_view), name="tools_tool_json"),
            path("import/", own(self.upload_openapi), name="tools_tool_import"),
            path(
                "import/<int:pk>/",
                own(self.choose_operations),
                name="tools_tool_import_choice",
            ),
            *super().get_urls(),
        ]

    def upload_openapi(self, request: HttpRequest) -> HttpResponse:
        return upload_openapi_view(self, request)

    def choose_operations(self, request: HttpRequest, pk: int) -> HttpResponse:
        return choose_operations_view(self, request, pk)

    def restore(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Restore an earlier revision as a new one."""
        visible = self.get_queryset(request)
        revision = get_object_or_404(ToolRevision, pk=pk, tool__in=visible.values("pk"))
        if request.method != "POST" or not self.has_change_permission(
            request, revision.tool
        ):
            raise PermissionDenied
        tool = restore_revision(revision, by=request.user)  # type: ignore[arg-type]  # staff
        self.log_change(request, tool, f"Restored revision {revision.number}")
        self.message_user(
            request,
            gettext("Restored revision %(old)d as revision %(new)d.")
            % {"old": revision.number, "new": tool.revision},
        )
        return redirect("admin:tools_tool_change", tool.pk)

    def copy(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Create a disabled copy and open it."""
        tool = self.get_object(request, str(pk))
        there = reverse("admin:tools_tool_changelist")
        if request.method != "POST" or tool is None:
            return redirect(there)
        if not self.has_add_permission(request):
            return redirect(there)
        copy = duplicate_tool(tool, by=request.user)  # type: ignore[arg-type]  # staff
        self.message_user(
            request,
            gettext("This is a copy of %(tool)s. It is disabled.")
            % {"tool": tool.name},
            messages.INFO,
        )
        return redirect("admin:tools_tool_change", copy.pk)


@admin.register(Credential)
class CredentialAdmin(OwnedAdmin):
    """Write-only secrets for tools."""

    form = CredentialForm
    noun = "credential"
    can_delete_when_unused = True
    actions = ("share", "unshare")
    list_display = ("name", "kind", "bound_to", "is_set", "changed")
    list_filter = ("kind",)
    search_fields = ("name",)
    ordering = ("name",)
    fields = ("name", "kind", "field", "secret", "hosts", "visibility", "groups")

    @admin.display(description=_("Hosts"))
    def bound_to(self, credential: Credential) -> str:
        return ", ".join(credential.hosts)

    @admin.display(description=_("Secret"))
    def is_set(self, credential: Credential) -> SafeString | str:
        if credential.sealed:
            return gettext("stored")
        return format_html(
            '<span class="rate" data-tone="need">{}</span>', gettext("missing")
        )

    @admin.display(description=_("Changed"), ordering="updated_at")
    def changed(self, credential: Credential) -> SafeString | str:
        return render_time_ago(credential.updated_at)

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **more: Any
    ) -> Any:
        """Show the tools and servers that use it beside the form."""
        if credential := context.get("original"):
            context["used_by"] = find_visible_referrers(
                credential, request.user
            ).visible
        return super().render_change_form(request, context, *args, **more)
