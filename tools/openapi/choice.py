"""Which operations of a document are shown, and which are selected."""

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from django.http import QueryDict

from tools.openapi.operations import Operation


class OperationRow(NamedTuple):
    operation: Operation
    is_selected: bool
    is_shown: bool
    """Whether the filters let it through; others stay on the page, hidden."""
    search_text: str


class OperationChoice:
    """The operations of a document, filtered, with a selection."""

    def __init__(self, operations: list[Operation], given: QueryDict) -> None:
        self.operations = operations
        self.query = given.get("q", "").strip()
        self.tag = given.get("tag", "")
        self.selected = self._apply_mark(
            frozenset(given.getlist("operation")), given.get("mark", "")
        )

    def _apply_mark(self, selected: frozenset[str], mark: str) -> Collection[str]:
        """Return the selection after one of the buttons for all or none."""
        if mark == "all":
            return selected | {
                one.key for one in self.operations if not one.flaw and self.shows(one)
            }
        return frozenset() if mark == "none" else selected

    def shows(self, operation: Operation) -> bool:
        """Whether both filters let an operation through."""
        words = self.query.lower().split()
        text = get_operation_search_text(operation)
        has_tag = not self.tag or self.tag in operation.tags
        return has_tag and all(word in text for word in words)

    @property
    def rows(self) -> list[OperationRow]:
        """All operations, in the order of the document."""
        return [
            OperationRow(
                one,
                not one.flaw and one.key in self.selected,
                self.shows(one),
                get_operation_search_text(one),
            )
            for one in self.operations
        ]

    @property
    def tags(self) -> list[tuple[str, int]]:
        """Tags in the order of the document, with the number of their operations."""
        counted = Counter(tag for one in self.operations for tag in one.tags)
        return list(counted.items())

    @property
    def possible(self) -> int:
        return sum(not one.flaw for one in self.operations)

    @property
    def is_several_files(self) -> bool:
        """Whether the document refers to others, which are not read."""
        return any(one.is_elsewhere for one in self.operations)


def get_operation_search_text(operation: Operation) -> str:
    return f"{operation.key} {operation.name} {operation.description[:300]}".lower()
