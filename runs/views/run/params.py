"""Filter, search and selection of a run's rows, all in the URL."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple
from urllib.parse import urlencode

from django.utils.translation import gettext_lazy as _

from runs.ui.list_of_run import (
    LISTED_PARAMETER,
    MAX_LIST_CHARACTERS,
    build_list_query,
)
from runs.whole_number import parse_whole_number

RowFilter = Literal["", "model", "tools", "errors"]
ROW_FILTERS: tuple[RowFilter, ...] = ("", "model", "tools", "errors")
ROW_FILTER_LABELS = {
    "": _("All"),
    "model": _("Model"),
    "tools": _("Tools"),
    "errors": _("Errors"),
}
MAX_SEARCH_CHARACTERS = 200


class StepFilterChip(NamedTuple):
    """A filter: its label, the number of matching rows, and its URL."""

    name: str
    word: str
    rows: int
    url: str
    is_on: bool


@dataclass(frozen=True)
class RunPageParams:
    """Filter, search, list or timeline, and the selected row."""

    show: RowFilter = ""
    search: str = ""
    is_timeline: bool = False
    step: int | None = None
    before: int | None = None
    after: int | None = None
    listed: str | None = None
    """The filters of the list that the viewer came from; None without one."""

    @property
    def is_filtered(self) -> bool:
        return bool(self.show or self.search)

    @property
    def row_query(self) -> str:
        """The query that links to other rows keep, with `&` after it, or empty."""
        query = self.query(step=None)
        return f"{query}&" if query else ""

    @property
    def unfiltered_query(self) -> str:
        """The query that shows all rows, as a list or a timeline."""
        return self.query(show="", q="", step=None)

    @property
    def list_query(self) -> str:
        """The query with the list that the viewer came from, with `?`, or empty."""
        return "" if self.listed is None else build_list_query(self.listed)

    def query(self, **changes: object) -> str:
        """Return the query string, without `?`, with `changes`."""
        now: dict[str, object] = {
            "show": self.show,
            "q": self.search,
            "as": "time" if self.is_timeline else "",
            "step": self.step,
        }
        now |= changes
        kept = {k: v for k, v in now.items() if v is not None and v != ""}
        if self.listed is not None:
            kept[LISTED_PARAMETER] = self.listed
        return urlencode(kept)

    def chips(self, counts: "RowCounts") -> list[StepFilterChip]:
        return [
            StepFilterChip(
                name or "all",
                str(ROW_FILTER_LABELS[name]),
                counts.count_for(name),
                f"?{self.query(show=name)}",
                name == self.show,
            )
            for name in ROW_FILTERS
        ]


class RowCounts(NamedTuple):
    model: int
    tools: int
    errors: int

    def count_for(self, show: str) -> int:
        return {
            "model": self.model,
            "tools": self.tools,
            "errors": self.errors,
        }.get(show, self.model + self.tools)


def parse_run_page_params(asked: Mapping[str, str]) -> RunPageParams:
    """Read the parameters of a URL; unknown values count as not given."""
    shown: RowFilter = next(
        (one for one in ROW_FILTERS if one == asked.get("show")), ""
    )
    return RunPageParams(
        show=shown,
        search=asked.get("q", "").strip()[:MAX_SEARCH_CHARACTERS],
        is_timeline=asked.get("as") == "time",
        step=parse_whole_number(asked.get("step", "")),
        before=parse_whole_number(asked.get("before", "")),
        after=parse_whole_number(asked.get("after", "")),
        listed=asked[LISTED_PARAMETER][:MAX_LIST_CHARACTERS]
        if LISTED_PARAMETER in asked
        else None,
    )
