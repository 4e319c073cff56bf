"""Filters of the tool list in the admin."""

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from tools.forms.kinds import TOOL_FORMS
from tools.models import Tool
from tools.usage import USAGE_WINDOW

FAILURE_RATE_WARNING = 0.1
"""Share of failed calls from which a tool counts as failing."""


class KindFilter(admin.SimpleListFilter):
    title = _("kind")
    parameter_name = "kind__exact"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return [(kind, form.kind_label) for kind, form in TOOL_FORMS.items()]

    def queryset(self, request: HttpRequest, tools: QuerySet[Any]) -> QuerySet[Any]:
        return tools.filter(kind=self.value()) if self.value() else tools


class RelatedFilter(admin.SimpleListFilter):
    """Filters tools by a related row, of those that visible tools have."""

    field = ""
    name_field = "name"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        names = (self.field, f"{self.field}__{self.name_field}")
        rows = model_admin.model.objects.visible_to(request.user).exclude(
            **{self.field: None}
        )
        return rows.order_by(names[1]).values_list(*names).distinct()

    def queryset(self, request: HttpRequest, tools: QuerySet[Any]) -> QuerySet[Any]:
        number = parse_row_number(self.value())
        return tools if number is None else tools.filter(**{self.field: number})


class OwnerFilter(RelatedFilter):
    title = _("owner")
    parameter_name = field = "owner"
    name_field = "username"


class CredentialFilter(RelatedFilter):
    title = _("credential")
    parameter_name = field = "credential"


class AgentFilter(admin.SimpleListFilter):
    """Filters tools by an agent whose draft uses them, of those the person may see."""

    title = _("agent")
    parameter_name = "agent"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        agents = list_visible_agents(request).filter(uses__tool__isnull=False)
        return agents.order_by("name", "pk").values_list("pk", "name").distinct()

    def queryset(self, request: HttpRequest, tools: QuerySet[Any]) -> QuerySet[Any]:
        number = parse_row_number(self.value())
        if number is None:
            return tools
        agents = list_visible_agents(request).filter(pk=number)
        return tools.filter(pk__in=agents.values("uses__tool"))


def list_visible_agents(request: HttpRequest) -> Any:
    """Return the agents; they belong to an app that this one does not import."""
    relation: Any = Tool._meta.get_field("used_by")
    agents = relation.related_model._meta.get_field("agent").related_model.objects
    return agents.usable_by(request.user)


def parse_row_number(text: str | None) -> int | None:
    """Return the number of a row in a query; None for anything else."""
    return int(text) if text and text.isascii() and text.isdigit() else None


class UsageFilter(admin.SimpleListFilter):
    """Filters tools by recent usage."""

    title = _("usage")
    parameter_name = "used"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return [
            ("yes", _("Used in the last 30 days")),
            ("no", _("Not used in the last 30 days")),
        ]

    def queryset(self, request: HttpRequest, tools: QuerySet[Any]) -> QuerySet[Any]:
        recent = {"last_used_at__gte": timezone.now() - USAGE_WINDOW}
        if self.value() == "yes":
            return tools.filter(**recent)
        return tools.exclude(**recent) if self.value() == "no" else tools


class FailingFilter(admin.SimpleListFilter):
    """Filters tools by failure rate."""

    title = _("failures")
    parameter_name = "failing"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return [("yes", _("Failing (at least 10%)")), ("no", _("Working"))]

    def queryset(self, request: HttpRequest, tools: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == "yes":
            return tools.filter(failure_rate__gte=FAILURE_RATE_WARNING)
        return (
            tools.filter(failure_rate__lt=FAILURE_RATE_WARNING)
            if self.value() == "no"
            else tools
        )


class ArchivedFilter(admin.SimpleListFilter):
    """Hides archived tools unless selected."""

    title = _("archive")
    parameter_name = "archived"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return [("yes", _("Archived"))]

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Rename the first choice, “All”: it hides archived tools."""
        for number, choice in enumerate(super().choices(changelist)):
            yield choice if number else {**choice, "display": _("Not archived")}

    def queryset(self, request: HttpRequest, tools: QuerySet[Any]) -> QuerySet[Any]:
        return tools.filter(archived_at__isnull=self.value() != "yes")
