"""The filters in use, each with a link to the list without it."""

from typing import NamedTuple

from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.models import Schedule
from runs.ui.format import format_clock, format_day
from runs.views.run_list.facets import (
    FACET_LABELS,
    SINGLE_FACETS,
    get_chosen_values,
    label_options,
    list_known_options,
)
from runs.views.run_list.filters import (
    ANY_SCHEDULE,
    RATING_LABELS,
    SINCE_LABELS,
    TEST_LABELS,
    RunFilters,
    parse_time,
)

MORE_LABELS = {
    "version": gettext_lazy("Version"),
    "mine": gettext_lazy("Started by"),
    "children": gettext_lazy("Sub-agent runs"),
    "schedule": gettext_lazy("Schedule"),
    "since": gettext_lazy("Started"),
    "begin": gettext_lazy("From"),
    "end": gettext_lazy("Until"),
    "cost": gettext_lazy("Minimum cost"),
    "seconds": gettext_lazy("Minimum time"),
}


class FilterChip(NamedTuple):
    label: str
    value: str
    url: str
    """The list without it."""


def build_filter_chips(filters: RunFilters, user: User) -> list[FilterChip]:
    """Return the filters in use, except the search, in the order of the page."""
    names = filters.names
    chips = [
        FilterChip(
            str(label),
            describe_value(name, filters, user)
            if name in SINGLE_FACETS
            else describe_choice(name, filters, user),
            filters.without(name).build_query(),
        )
        for name, label in FACET_LABELS.items()
        if name in names
    ]
    if filters.begin and filters.end:  # as the bars above the list set them
        times = [describe_time(one) for one in (filters.begin, filters.end)]
        url = filters.without("begin").without("end").build_query()
        chips.append(FilterChip(_("Started"), " – ".join(times), url))
        names -= {"begin", "end"}
    return chips + [
        FilterChip(
            str(label),
            describe_value(name, filters, user),
            filters.without(name).build_query(),
        )
        for name, label in MORE_LABELS.items()
        if name in names
    ]


def describe_choice(name: str, filters: RunFilters, user: User) -> str:
    """Write the selected value of a facet; of several, how many."""
    if filters.status == ("unfinished",) and name == "status":
        return _("Unfinished")
    if filters.status == ("needs",) and name == "status":
        return _("Needs attention")
    values = [str(value) for value in get_chosen_values(name, filters)]
    if len(values) != 1:
        return str(len(values))
    known = list_known_options(name, user) if name in ("status", "source") else {}
    return (known or label_options(name, values, user)).get(values[0], values[0])


CHOICE_LABELS = {"since": SINCE_LABELS, "tests": TEST_LABELS, "rating": RATING_LABELS}


def describe_value(name: str, filters: RunFilters, user: User) -> str:
    value = getattr(filters, name)
    match name:
        case "version":
            return f"v{value}" if value else _("Draft")
        case "mine":
            return _("me")
        case "children":
            return _("included")
        case "since" | "tests" | "rating":
            return str(CHOICE_LABELS[name][value])
        case "cost":
            return f"${value}"
        case "seconds":
            return _("%(value)s s") % {"value": value}
        case "begin" | "end":
            return describe_time(value)
        case "schedule" if value == ANY_SCHEDULE:
            return _("any")
        case "schedule":
            visible = Schedule.objects.visible_to(user).filter(pk=int(value))
            return visible.values_list("name", flat=True).first() or str(value)
    return str(value)


def describe_time(text: str) -> str:
    """Write a day, or a day and a time, of a filter; without the year if it is ours."""
    at = parse_time(text)
    if at is None:
        return text
    day = format_day(at) if at.year == timezone.localdate().year else text[:10]
    return f"{day} {format_clock(at)}" if "T" in text else day
