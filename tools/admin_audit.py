"""The audit log in the admin: to be filtered, read and taken along as CSV."""

import csv
import json
from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString

from tools.admin_plain import PlainAdmin, quiet, titled
from tools.audit.entry import AuditEntry

MOST_ROWS = 50_000
"""Rows of one CSV file, the newest."""

WHOLE = ("made", "deleted", "published")
"""Actions whose entry holds a whole thing, which is for the entry's own page."""

SHOWN_FIELDS = 3
SHOWN_LENGTH = 60
FIELD_WORDS = {
    "is_superuser": "administrator",
    "is_staff": "opens the administration",
    "is_active": "may sign in",
    "user_permissions": "rights",
    "permissions": "rights",
    "is_on": "on",
    "everything": "of everyone's runs",
    "sealed": "secret",
    "sealed_key": "key",
    "sealed_headers": "extra headers",
    "sealed_url": "address",
    "sealed_secret": "signing secret",
    "sealed_old_secret": "old signing secret",
    "key_env": "variable with the key",
    "base_url": "base URL",
    "stream": "shows text while the model writes",
    "args_schema": "arguments",
    "archived_at": "archived",
    "revoked_at": "revoked",
    "at_expiry": "if nobody answers",
    "return_direct": "result is the answer",
    "output_limit": "result cut at",
    "mcp_server": "MCP server",
    "cron": "times",
}
"""Fields whose own name does not say what they are."""
COLUMNS = ("number", "at", "by", "by_number", "way", "action", "noun", "thing")
MORE_COLUMNS = ("thing_number", "changes", "note")


class AuditEntryAdmin(PlainAdmin):
    """Who did what, when; nobody can change it, superusers neither."""

    list_display = ("when", "who", "what", "which", "changes_short", "note_short")
    list_display_links = ("when",)
    list_filter = (
        ("at", titled(admin.DateFieldListFilter, "time")),
        ("noun", titled(admin.AllValuesFieldListFilter, "kind of thing")),
        ("action", titled(admin.AllValuesFieldListFilter, "what was done")),
        ("way", titled(admin.ChoicesFieldListFilter, "way")),
        ("by", titled(admin.AllValuesFieldListFilter, "person")),
    )
    search_fields = ("thing", "by", "note")
    list_per_page = 50
    empty_value_display = SafeString("")
    """Few give a reason."""
    show_full_result_count = False
    fields = ("when", "who", "way", "what", "which", "changes_long", "note")
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest) -> bool:
        """The services write it."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """It stays as it was written."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """It stays as it was written."""
        return False

    def lookup_allowed(
        self, lookup: str, value: str, request: HttpRequest | None = None
    ) -> bool:
        """Let pages of one thing lead to what became of it."""
        return lookup == "thing_number" or super().lookup_allowed(
            lookup, value, request
        )

    # The columns.

    @admin.display(description="When", ordering="pk")
    def when(self, entry: AuditEntry) -> SafeString:
        """The time, to the second."""
        return format_html(
            '<time datetime="{}" title="{} UTC">{}</time>',
            entry.at.isoformat(timespec="seconds"),
            f"{entry.at:%Y-%m-%d %H:%M:%S}",
            f"{entry.at:%d %b %H:%M:%S}",
        )

    @admin.display(description="Who", ordering="by")
    def who(self, entry: AuditEntry) -> str:
        """The person, and by which way where that was no page."""
        name = entry.by or "the server"
        return f"{name}, by the API" if entry.way == entry.Way.API else name

    @admin.display(description="Did", ordering="action")
    def what(self, entry: AuditEntry) -> str:
        """The verb and the noun."""
        return f"{entry.action} {entry.noun}"

    @admin.display(description="Which", ordering="thing")
    def which(self, entry: AuditEntry) -> str:
        """The thing's name at that time."""
        return entry.thing

    @admin.display(description="Before → after")
    def changes_short(self, entry: AuditEntry) -> SafeString:
        """The first few fields; of a new or deleted thing how many there are."""
        if entry.action in WHOLE:
            number = len(entry.changes)
            return quiet(counted(number))
        pairs = list(pairs_of(entry, SHOWN_LENGTH))
        rest = len(pairs) - SHOWN_FIELDS
        return changes_table(pairs[:SHOWN_FIELDS], more=max(rest, 0))

    @admin.display(description="Before → after")
    def changes_long(self, entry: AuditEntry) -> SafeString:
        """All fields, in full."""
        return changes_table(list(pairs_of(entry, None)))

    @admin.display(description="Reason")
    def note_short(self, entry: AuditEntry) -> str:
        """The beginning of the note."""
        return shortened(entry.note, 120)

    # The pages.

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """Offer the rows of the list as CSV too."""
        more = {"title": "Audit log", "query": request.GET.urlencode()}
        return super().changelist_view(request, {**more, **(extra_context or {})})

    def get_urls(self) -> list[URLPattern]:
        """Add the file."""
        view = self.admin_site.admin_view(self.as_csv)
        return [path("csv/", view, name="tools_auditentry_csv"), *super().get_urls()]

    def as_csv(self, request: HttpRequest) -> HttpResponse:
        """Return what the list shows under the same filters, the newest rows first."""
        if not self.has_view_permission(request):
            return HttpResponse(status=403)
        rows: QuerySet[Any] = self.get_changelist_instance(request).get_queryset(
            request
        )
        answer = HttpResponse(content_type="text/csv; charset=utf-8")
        answer["Content-Disposition"] = 'attachment; filename="audit-log.csv"'
        answer["Cache-Control"] = "no-store"
        file = csv.writer(answer)
        file.writerow([*COLUMNS, *MORE_COLUMNS])
        for entry in rows[:MOST_ROWS].iterator(chunk_size=1000):
            file.writerow([cell(one) for one in line_of(entry)])
        return answer


def counted(number: int) -> str:
    """Return a number of fields in words."""
    return "1 field" if number == 1 else f"{number} fields"


def line_of(entry: AuditEntry) -> list[Any]:
    """Return one entry as the columns of the file."""
    return [
        *(entry.pk, entry.at.isoformat(), entry.by, entry.by_number, entry.way),
        *(entry.action, entry.noun, entry.thing, entry.thing_number),
        *(json.dumps(entry.changes, ensure_ascii=False), entry.note),
    ]


def cell(value: Any) -> str:
    """Return a value that no spreadsheet takes for a formula."""
    text = "" if value is None else str(value)
    return f"'{text}" if text.lstrip().startswith(("=", "+", "-", "@")) else text


def pairs_of(entry: AuditEntry, longest: int | None) -> Iterator[tuple[str, str, str]]:
    """Yield field, before and after as text."""
    for name, (before, after) in entry.changes.items():
        yield field_words(name), shown(before, longest), shown(after, longest)


def field_words(name: str) -> str:
    """Return what a field is called, and which part of it: `config: url`."""
    field, *part = name.split(".", 1)
    words = FIELD_WORDS.get(field, field.replace("_", " "))
    return ": ".join([words, *part])


def shown(value: Any, longest: int | None) -> str:
    """Return a value as a person reads it."""
    if value is None or value == "":
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if longest is None else shortened(text, longest)


def shortened(text: str, longest: int) -> str:
    """Return the beginning of a text, in one line."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[:longest]}…"


def changes_table(pairs: list[tuple[str, str, str]], *, more: int = 0) -> SafeString:
    """Return a list of fields with both values."""
    context = {"pairs": pairs, "more": more}
    return SafeString(render_to_string("admin/tools/auditentry/changes.html", context))
