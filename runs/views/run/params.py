"""What a person has chosen to see of a run's rows; all of it stands in the address."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple
from urllib.parse import urlencode

from runs.whole_number import whole_number

Show = Literal["", "model", "tools", "errors"]
SHOWS: tuple[Show, ...] = ("", "model", "tools", "errors")
WORDS = {"": "All", "model": "Model", "tools": "Tools", "errors": "Errors"}
LONGEST_SEARCH = 200


class Chip(NamedTuple):
    """A filter: its word, how many rows it leaves, and its address."""

    name: str
    word: str
    rows: int
    url: str
    is_on: bool


@dataclass(frozen=True)
class Choice:
    """Filter, search, form, and the row that is open."""

    show: Show = ""
    search: str = ""
    is_timeline: bool = False
    step: int | None = None
    before: int | None = None
    after: int | None = None

    @property
    def is_filtered(self) -> bool:
        """Whether rows are left out."""
        return bool(self.show or self.search)

    @property
    def kept(self) -> str:
        """The query that links to other rows repeat, with `&` after it, or empty."""
        query = self.query(step=None)
        return f"{query}&" if query else ""

    def query(self, **changes: object) -> str:
        """Return the address' query, without `?`, with some of it changed."""
        now: dict[str, object] = {
            "show": self.show,
            "q": self.search,
            "as": "time" if self.is_timeline else "",
            "step": self.step,
        }
        now |= changes
        return urlencode({k: v for k, v in now.items() if v is not None and v != ""})

    def chips(self, counts: "Counts") -> list[Chip]:
        """Return the filters with their counts."""
        return [
            Chip(
                name or "all",
                WORDS[name],
                counts.of(name),
                f"?{self.query(show=name)}",
                name == self.show,
            )
            for name in SHOWS
        ]


class Counts(NamedTuple):
    """How many rows of each kind a run has."""

    model: int
    tools: int
    errors: int

    def of(self, show: str) -> int:
        """Return how many rows a filter leaves."""
        return {
            "model": self.model,
            "tools": self.tools,
            "errors": self.errors,
        }.get(show, self.model + self.tools)


def choice_of(asked: Mapping[str, str]) -> Choice:
    """Read the choice from an address; what it does not know counts as not said."""
    shown: Show = next((one for one in SHOWS if one == asked.get("show")), "")
    return Choice(
        show=shown,
        search=asked.get("q", "").strip()[:LONGEST_SEARCH],
        is_timeline=asked.get("as") == "time",
        step=whole_number(asked.get("step", "")),
        before=whole_number(asked.get("before", "")),
        after=whole_number(asked.get("after", "")),
    )
