"""The filters of the list of agents, and the agents that match them."""

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest

from runs.models import Agent, Provider
from runs.ui.kind_labels import list_kind_choices
from runs.ui.list_search import get_search_text, search_rows
from runs.whole_number import parse_whole_number
from tools.accounts.person_name import get_person_name
from tools.ownership import Visibility


class FilterChoice(NamedTuple):
    value: int | str
    label: str


@dataclass(frozen=True)
class AgentFilters:
    """The filters of a URL; invalid ones are empty."""

    q: str = ""
    archived: bool = False
    owner: int | None = None
    kind: str = ""
    provider: int | None = None
    sharing: str = ""
    """A visibility."""

    @property
    def is_filtered(self) -> bool:
        """Whether anything but the archive is filtered."""
        return bool(self.q or self.owner or self.kind or self.provider or self.sharing)

    def build_query(self) -> str:
        values = vars(self) | {"archived": int(self.archived)}
        return f"?{urlencode({name: value for name, value in values.items() if value})}"


def read_agent_filters(request: HttpRequest) -> AgentFilters:
    def number(name: str) -> int | None:
        return parse_whole_number(request.GET.get(name, ""))

    def among(name: str, known: list[str]) -> str:
        value = request.GET.get(name, "")
        return value if value in known else ""

    return AgentFilters(
        q=get_search_text(request),
        archived=request.GET.get("archived") == "1",
        owner=number("owner"),
        kind=among("kind", [name for name, _label in list_kind_choices()]),
        provider=number("provider"),
        sharing=among("sharing", Visibility.values),
    )


def filter_agents(agents: QuerySet[Agent], filters: AgentFilters) -> QuerySet[Agent]:
    found = agents.filter(archived_at__isnull=not filters.archived)
    if filters.owner:
        found = found.filter(owner=filters.owner)
    if filters.kind:
        found = found.filter(kind=filters.kind)
    if filters.provider:
        found = found.filter(provider=filters.provider)
    if filters.sharing:
        found = found.filter(visibility=filters.sharing)
    return search_rows(
        found, filters.q, "name", "description", "slug", "model", "owner__username"
    )


class AgentFilterChoices(NamedTuple):
    """The options of each filter: what the visible agents have."""

    owners: list[FilterChoice]
    kinds: list[FilterChoice]
    providers: list[FilterChoice]
    sharing: list[FilterChoice]


def list_agent_filter_choices(agents: QuerySet[Agent]) -> AgentFilterChoices:
    owners = User.objects.filter(pk__in=agents.values("owner"))
    kinds = set(agents.order_by().values_list("kind", flat=True).distinct())
    providers = Provider.objects.filter(pk__in=agents.values("provider"))
    return AgentFilterChoices(
        sorted(
            (FilterChoice(user.pk, get_person_name(user)) for user in owners),
            key=lambda choice: choice.label.casefold(),
        ),
        [
            FilterChoice(name, str(label))
            for name, label in list_kind_choices()
            if name in kinds
        ],
        [FilterChoice(row.pk, row.name) for row in providers.order_by("name")],
        [FilterChoice(value, str(label)) for value, label in Visibility.choices],
    )
