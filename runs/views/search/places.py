"""What the search finds: pages, actions, agents, tools and runs."""

import re
from typing import NamedTuple, TypeVar

from django.contrib.auth.models import User
from django.db.models import Case, IntegerField, Model, Q, QuerySet, Value, When
from django.urls import reverse
from django.utils.translation import gettext as _

from runs.models import Agent, Run
from runs.ui.list_search import search_rows
from runs.views.search.pages import (
    SearchResult,
    list_actions,
    list_lower_pages,
    list_main_pages,
)
from runs.whole_number import parse_whole_number
from tools.models import Tool

Named = TypeVar("Named", bound=Model)
MAX_RESULTS = 6
"""Of each kind."""
NUMBER_AT_END = re.compile(r"(\D*?)\s*#?([0-9]+)")
MAX_RUNS_SEARCHED = 2_000
"""The newest; the list of runs searches all of them."""


class ResultGroup(NamedTuple):
    name: str
    label: str
    results: list[SearchResult]


def find_places(user: User, text: str) -> list[ResultGroup]:
    """Return what matches, by kind; without a text, pages, actions and newest runs.

    The runs come first if the text is the number of one.
    """
    places = list_main_pages(user) + (list_lower_pages(user) if text else [])
    pages = [result for result in places if _matches(result.label, text)]
    actions = [one for one in list_actions(user) if _matches(one.label, text)]
    groups = [
        ResultGroup("pages", _("Pages"), _put_prefixes_first(pages, text)),
        ResultGroup("actions", _("Actions"), _put_prefixes_first(actions, text)),
        ResultGroup("agents", _("Agents"), _find_agents(user, text) if text else []),
        ResultGroup("tools", _("Tools"), _find_tools(user, text) if text else []),
    ]
    runs = ResultGroup("runs", _("Runs"), find_runs(user, text))
    number = parse_run_number(text)
    url = None if number is None else reverse("run-detail", args=[number])
    is_first = url in [run.url for run in runs.results]
    groups.insert(0 if is_first else len(groups), runs)
    return [group for group in groups if group.results]


def _matches(label: str, text: str) -> bool:
    return all(word in label.lower() for word in text.lower().split())


def _put_prefixes_first(results: list[SearchResult], text: str) -> list[SearchResult]:
    return sorted(
        results, key=lambda one: not one.label.lower().startswith(text.lower())
    )[: MAX_RESULTS if text else len(results)]


def _find_agents(user: User, text: str) -> list[SearchResult]:
    rows = Agent.objects.visible_to(user).filter(archived_at=None, is_playground=False)
    found = search_rows(rows, text, "name", "slug", "description")
    return [
        SearchResult(
            agent.name,
            reverse("agent-detail", args=[agent.pk]),
            "agent",
            detail=agent.description,
        )
        for agent in _order_prefixes_first(found, text)
    ]


def _find_tools(user: User, text: str) -> list[SearchResult]:
    rows = Tool.objects.visible_to(user).filter(archived_at=None)
    found = search_rows(rows, text, "name", "slug", "description")
    return [
        SearchResult(
            tool.name,
            reverse("tool-detail", args=[tool.slug]),
            "tool",
            detail=tool.description,
        )
        for tool in _order_prefixes_first(found.defer("config"), text)
    ]


def _order_prefixes_first(rows: QuerySet[Named], text: str) -> QuerySet[Named]:
    is_prefix = When(Q(name__istartswith=text), then=Value(0))
    place = Case(is_prefix, default=Value(1), output_field=IntegerField())
    return rows.order_by(place, "name", "pk")[:MAX_RESULTS]


def find_runs(user: User, text: str) -> list[SearchResult]:
    """Return the run of a number, then the newest runs with each word in the title."""
    runs = Run.objects.visible_to(user).select_related("agent")
    runs = runs.only("title", "status", "agent__name")
    newest = Run.objects.visible_to(user).order_by("-pk").values("pk")
    recent = runs.filter(pk__in=newest[:MAX_RUNS_SEARCHED], parent_step=None)
    found = list(search_rows(recent, text, "title").order_by("-pk")[:MAX_RESULTS])
    number = parse_run_number(text)
    if number is not None:
        exact = list(runs.filter(pk=number))
        found = [*exact, *(run for run in found if run.pk != number)][:MAX_RESULTS]
    return [
        SearchResult(
            run.title or _("Run %(number)s") % {"number": run.pk},
            reverse("run-detail", args=[run.pk]),
            status=run.status,
            detail=f"{run.agent.name} · {run.pk}",
        )
        for run in found
    ]


def parse_run_number(text: str) -> int | None:
    """Return the number in `9002`, `#9002` or `Run 9002`; None without one.

    The word may be English or in the viewer's language.
    """
    found = NUMBER_AT_END.fullmatch(text)
    if found is None:
        return None
    words = {"", "run", (_("Run %(number)s") % {"number": ""}).strip().lower()}
    return parse_whole_number(found[2]) if found[1].lower() in words else None
