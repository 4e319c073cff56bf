"""Filters of the tool list in the admin."""

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from tools.forms.kinds import FORMS
from tools.usage import SPAN

FAILING = 0.1
"""Part of the calls that failed, from which on a tool is called failing."""


class KindFilter(admin.SimpleListFilter):
    """Tools by what they are made of, in the words of the forms."""

    title = "kind"
    parameter_name = "kind__exact"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        """Return the choices."""
        return [(kind, form.word) for kind, form in FORMS.items()]

    def queryset(self, request: HttpRequest, tools: QuerySet[Any]) -> QuerySet[Any]:
        """Return the tools of the choice."""
        return tools.filter(kind=self.value()) if self.value() else tools


class UsedFilter(admin.SimpleListFilter):
    """Tools by whether somebody needs them."""

    title = "use"
    parameter_name = "used"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        """Return the choices."""
        return [("yes", "Used in 30 days"), ("no", "Not used in 30 days")]

    def queryset(self, request: HttpRequest, tools: QuerySet[Any]) -> QuerySet[Any]:
        """Return the tools of the choice."""
        recent = {"last_used_at__gte": timezone.now() - SPAN}
        if self.value() == "yes":
            return tools.filter(**recent)
        return tools.exclude(**recent) if self.value() == "no" else tools


class FailingFilter(admin.SimpleListFilter):
    """Tools that need a look."""

    title = "failures"
    parameter_name = "failing"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        """Return the choices."""
        return [("yes", "Failing (10 % and more)"), ("no", "Working")]

    def queryset(self, request: HttpRequest, tools: QuerySet[Any]) -> QuerySet[Any]:
        """Return the tools of the choice."""
        if self.value() == "yes":
            return tools.filter(failure_rate__gte=FAILING)
        return tools.filter(failure_rate__lt=FAILING) if self.value() == "no" else tools


class ArchivedFilter(admin.SimpleListFilter):
    """Hides the archive unless asked for."""

    title = "archive"
    parameter_name = "archived"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        """Return the one choice besides the first."""
        return [("yes", "Archived")]

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Call the first choice by its name."""
        for number, choice in enumerate(super().choices(changelist)):
            yield choice if number else {**choice, "display": "Not archived"}

    def queryset(self, request: HttpRequest, tools: QuerySet[Any]) -> QuerySet[Any]:
        """Return what is archived, or what is not."""
        return tools.filter(archived_at__isnull=self.value() != "yes")
