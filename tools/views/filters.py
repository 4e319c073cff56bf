"""The filters of the list of tools, and the tools that match them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import F, Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from tools.accounts.person_name import get_person_name
from tools.admin.filters import FAILURE_RATE_WARNING, parse_row_number
from tools.models import Credential, Tool
from tools.ownership import Visibility
from tools.typed_generics import StrOrPromise
from tools.ui.labels import KIND_LABELS
from tools.usage import USAGE_WINDOW, UsageTotals, filter_by_failure_rate

MAX_SEARCH_CHARS = 200
NO_CREDENTIAL = "none"
USAGES: dict[str, StrOrPromise] = {
    "used": _("Used in the last 30 days"),
    "unused": _("Not used in the last 30 days"),
    "failing": _("Failing (at least 10%)"),
    "agentless": _("In no agent"),
}
STATES: dict[str, StrOrPromise] = {
    "enabled": _("Enabled"),
    "disabled": _("Disabled"),
    "archived": _("Archived"),
}
SORTS = {
    "name": ("name", "pk"),
    "calls": ("name", "pk"),
    "failed": ("name", "pk"),
    "last": (F("last_used_at").desc(nulls_last=True), "name", "pk"),
}
"""The columns by which the list is sorted, among equal usage."""
USAGE_SORTS: dict[str, Callable[[UsageTotals], float]] = {
    "calls": lambda usage: usage.calls,
    "failed": lambda usage: -1 if usage.failure_rate is None else usage.failure_rate,
}
"""Those by usage: the largest come first."""


class ToolFilterChoice(NamedTuple):
    value: str
    label: str


@dataclass(frozen=True)
class ToolFilters:
    """The filters of a URL; invalid ones are empty."""

    q: str = ""
    kind: str = ""
    owner: str = ""
    """The number of a user."""
    sharing: str = ""
    credential: str = ""
    """The number of a credential, or `none`."""
    usage: str = ""
    state: str = ""
    sort: str = ""

    @property
    def is_filtered(self) -> bool:
        """Whether anything is filtered; sorting does not count."""
        return any(value for name, value in vars(self).items() if name != "sort")

    def build_query(self, **changes: str) -> str:
        values = vars(self) | changes
        return f"?{urlencode({name: value for name, value in values.items() if value})}"


def read_tool_filters(request: HttpRequest) -> ToolFilters:
    given = request.GET

    def among(name: str, known: Any) -> str:
        value = given.get(name, "")
        return value if value in known else ""

    def number(name: str) -> str:
        value = given.get(name, "")[:18]
        return value if parse_row_number(value) is not None else ""

    credential = given.get("credential", "")
    return ToolFilters(
        q=given.get("q", "").replace("\0", "").strip()[:MAX_SEARCH_CHARS],
        kind=among("kind", KIND_LABELS),
        owner=number("owner"),
        sharing=among("sharing", Visibility.values),
        credential=credential if credential == NO_CREDENTIAL else number("credential"),
        usage=among("usage", USAGES),
        state=among("state", STATES),
        sort=among("sort", SORTS),
    )


def filter_tools(tools: QuerySet[Any], filters: ToolFilters) -> QuerySet[Any]:
    """Return the tools that match, which have the totals of their usage."""
    found = tools.filter(archived_at__isnull=filters.state != "archived")
    if filters.state in ("enabled", "disabled"):
        found = found.filter(enabled=filters.state == "enabled")
    if filters.kind:
        found = found.filter(kind=filters.kind)
    if filters.owner:
        found = found.filter(owner=int(filters.owner))
    if filters.sharing:
        found = found.filter(visibility=filters.sharing)
    if filters.credential:
        is_none = filters.credential == NO_CREDENTIAL
        found = found.filter(credential=None if is_none else int(filters.credential))
    for word in filters.q.split():
        found = found.filter(
            Q(name__icontains=word)
            | Q(description__icontains=word)
            | Q(slug__icontains=word)
        )
    return filter_by_usage(found, filters.usage)


def list_sorted_keys(
    tools: QuerySet[Any], sort: str, totals: Mapping[int, UsageTotals]
) -> list[int]:
    """Return the keys of the tools in the order of the list.

    `totals` are those of all tools with calls, if `sort` is one of `USAGE_SORTS`.
    """
    keys = list(tools.order_by(*SORTS[sort]).values_list("pk", flat=True))
    if (amount := USAGE_SORTS.get(sort)) is not None:
        none = UsageTotals()
        keys.sort(key=lambda key: -amount(totals.get(key, none)))
    return keys


def filter_by_usage(tools: QuerySet[Any], usage: str) -> QuerySet[Any]:
    recent = Q(last_used_at__gte=timezone.now() - USAGE_WINDOW)
    match usage:
        case "used":
            return tools.filter(recent)
        case "unused":
            return tools.filter(Q(last_used_at=None) | ~recent)
        case "failing":
            return filter_by_failure_rate(tools, FAILURE_RATE_WARNING)
        case "agentless":
            return tools.filter(used_by=None)
    return tools


class ToolFilterChoices(NamedTuple):
    """The options of each filter: what the visible tools have."""

    owners: list[ToolFilterChoice]
    kinds: list[ToolFilterChoice]
    credentials: list[ToolFilterChoice]
    sharing: list[ToolFilterChoice]
    usages: list[ToolFilterChoice]
    states: list[ToolFilterChoice]


def list_tool_filter_choices(tools: QuerySet[Tool], user: User) -> ToolFilterChoices:
    owners = User.objects.filter(pk__in=tools.order_by().values("owner"))
    kinds = set(tools.order_by().values_list("kind", flat=True).distinct())
    credentials = Credential.objects.visible_to(user).filter(
        pk__in=tools.order_by().exclude(credential=None).values("credential")
    )
    return ToolFilterChoices(
        sorted(
            (ToolFilterChoice(str(one.pk), get_person_name(one)) for one in owners),
            key=lambda choice: choice.label.casefold(),
        ),
        list_choices({k: label for k, label in KIND_LABELS.items() if k in kinds}),
        [ToolFilterChoice(str(r.pk), r.name) for r in credentials.order_by("name")],
        list_choices(dict(Visibility.choices)),
        list_choices(USAGES),
        list_choices(STATES),
    )


def list_choices(labels: dict[str, Any]) -> list[ToolFilterChoice]:
    return [ToolFilterChoice(value, str(label)) for value, label in labels.items()]
