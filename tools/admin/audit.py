"""The audit log in the admin, with filters and CSV export."""

import csv
import json
from collections.abc import Callable, Iterator
from typing import Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import URLPattern, path
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from tools.admin.base import ProductAdmin, filter_with_title, render_muted
from tools.audit.entry import AuditEntry
from tools.text.csv_cell import format_csv_cell
from tools.ui.audit_labels import (
    FIELD_LABELS,
    format_audit_action,
    label_action,
    label_noun,
)

MAX_CSV_ROWS = 50_000
"""Rows of one CSV file, newest first."""

WHOLE_ROW_ACTIONS = ("made", "deleted", "published")
"""Actions whose entry has all fields, shown on the page of the entry only."""

MAX_SUMMARY_FIELDS = 3
MAX_SUMMARY_LENGTH = 60
CSV_COLUMNS = ("number", "at", "by", "by_number", "way", "action", "noun", "thing")
CSV_DETAIL_COLUMNS = ("thing_number", "changes", "note")


FieldValues = tuple[str, str | None, str | None]
"""Label, value before and value after; None is empty."""


def filter_with_labels(label: Callable[[str], str], title: Any) -> Any:
    """Return a filter by stored codes that shows their labels."""

    class Labeled(admin.AllValuesFieldListFilter):
        def choices(self, changelist: Any) -> Iterator[Any]:
            for choice in super().choices(changelist):
                yield {**choice, "display": label(str(choice["display"]))}

    return filter_with_title(Labeled, title)


class AuditEntryAdmin(ProductAdmin):
    """Read-only, also for superusers."""

    list_display = ("when", "who", "what", "which", "changes_short", "note_short")
    list_display_links = ("when",)
    list_filter = (
        ("at", filter_with_title(admin.DateFieldListFilter, _("time"))),
        ("noun", filter_with_labels(label_noun, _("object type"))),
        ("action", filter_with_labels(label_action, _("action"))),
        ("way", filter_with_title(admin.ChoicesFieldListFilter, _("source"))),
        ("by", filter_with_title(admin.AllValuesFieldListFilter, _("user"))),
    )
    search_fields = ("thing", "by", "note")
    list_per_page = 50
    empty_value_display = SafeString("")
    show_full_result_count = False
    fields = ("when", "who", "source", "what", "which", "changes_long", "reason")
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def lookup_allowed(
        self, lookup: str, value: str, request: HttpRequest | None = None
    ) -> bool:
        """Allow links to the entries about one object."""
        return lookup == "thing_number" or super().lookup_allowed(
            lookup, value, request
        )

    # The columns.

    @admin.display(description=_("Time"), ordering="pk")
    def when(self, entry: AuditEntry) -> SafeString:
        """The time, to the second."""
        return format_html(
            '<time datetime="{}" title="{} UTC">{}</time>',
            entry.at.isoformat(timespec="seconds"),
            f"{entry.at:%Y-%m-%d %H:%M:%S}",
            f"{date_format(entry.at, 'SHORT_DATE_FORMAT')} {entry.at:%H:%M:%S}",
        )

    @admin.display(description=_("User"), ordering="by")
    def who(self, entry: AuditEntry) -> str:
        """The user, and whether the API was used."""
        name = entry.by or gettext("System")
        if entry.way == entry.Way.API:
            return gettext("%(user)s (API)") % {"user": name}
        return name

    @admin.display(description=_("Source"))
    def source(self, entry: AuditEntry) -> str:
        """Where the change was made."""
        return str(entry.Way(entry.way).label)

    @admin.display(description=_("Action"), ordering="action")
    def what(self, entry: AuditEntry) -> str:
        """The labels of the action and of the object type."""
        return format_audit_action(entry.action, entry.noun)

    @admin.display(description=_("Object"), ordering="thing")
    def which(self, entry: AuditEntry) -> str:
        """The name of the object at that time."""
        return entry.thing

    @admin.display(description=_("Before → after"))
    def changes_short(self, entry: AuditEntry) -> SafeString:
        """The first few fields; for new and deleted objects their number."""
        if entry.action in WHOLE_ROW_ACTIONS:
            return format_html("{}", render_muted(format_field_count(entry)))
        pairs = list(iter_field_changes(entry, MAX_SUMMARY_LENGTH))
        rest = len(pairs) - MAX_SUMMARY_FIELDS
        return render_changes_table(pairs[:MAX_SUMMARY_FIELDS], more=max(rest, 0))

    @admin.display(description=_("Before → after"))
    def changes_long(self, entry: AuditEntry) -> SafeString:
        return render_changes_table(list(iter_field_changes(entry, None)))

    @admin.display(description=_("Reason"))
    def reason(self, entry: AuditEntry) -> str:
        return entry.note

    @admin.display(description=_("Reason"))
    def note_short(self, entry: AuditEntry) -> str:
        return shorten_to_line(entry.note, 120)

    # The pages.

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """Add the query of the list for the CSV export."""
        more = {"title": gettext("Audit log"), "query": request.GET.urlencode()}
        return super().changelist_view(request, {**more, **(extra_context or {})})

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.export_csv)
        return [path("csv/", view, name="tools_auditentry_csv"), *super().get_urls()]

    def export_csv(self, request: HttpRequest) -> HttpResponse:
        """Return the filtered list as CSV, newest first."""
        if not self.has_view_permission(request):
            return HttpResponse(status=403)
        try:
            page = self.get_changelist_instance(request)
            rows: QuerySet[Any] = page.get_queryset(request)
        except IncorrectLookupParameters:  # as the list itself does
            return redirect("admin:tools_auditentry_changelist")
        answer = HttpResponse(content_type="text/csv; charset=utf-8")
        answer["Content-Disposition"] = 'attachment; filename="audit-log.csv"'
        answer["Cache-Control"] = "no-store"
        file = csv.writer(answer)
        file.writerow([*CSV_COLUMNS, *CSV_DETAIL_COLUMNS])
        for entry in rows[:MAX_CSV_ROWS].iterator(chunk_size=1000):
            file.writerow([format_csv_cell(one) for one in build_audit_csv_row(entry)])
        return answer


def format_field_count(entry: AuditEntry) -> str:
    """Return how many fields an entry has, as text."""
    number = len(entry.changes)
    return ngettext("%(count)d field", "%(count)d fields", number) % {"count": number}


def build_audit_csv_row(entry: AuditEntry) -> list[Any]:
    return [
        *(entry.pk, entry.at.isoformat(), entry.by, entry.by_number, entry.way),
        *(entry.action, entry.noun, entry.thing, entry.thing_number),
        *(json.dumps(entry.changes, ensure_ascii=False), entry.note),
    ]


def iter_field_changes(entry: AuditEntry, longest: int | None) -> Iterator[FieldValues]:
    """Yield field, before and after; None for an empty value."""
    for name, (before, after) in entry.changes.items():
        yield (
            format_field_name(name),
            format_audit_value(before, longest),
            format_audit_value(after, longest),
        )


def format_field_name(name: str) -> str:
    """Return the label of a field with the part that changed: `config: url`."""
    field, *part = name.split(".", 1)
    words = str(FIELD_LABELS.get(field, field.replace("_", " ")))
    return ": ".join([words, *part])


def format_audit_value(value: Any, longest: int | None) -> str | None:
    """Return a value as text; None for an empty one."""
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if longest is None else shorten_to_line(text, longest)


def shorten_to_line(text: str, longest: int) -> str:
    """Return the beginning of a text as one line."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[:longest]}…"


def render_changes_table(pairs: list[FieldValues], *, more: int = 0) -> SafeString:
    context = {"pairs": pairs, "more": more}
    return SafeString(render_to_string("admin/tools/auditentry/changes.html", context))
