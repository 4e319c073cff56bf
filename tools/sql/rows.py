"""The answer to a query, within limits."""

import json
from collections.abc import Iterable
from typing import Any

from tools.errors import ToolFailed

MAX_BYTES = 1 << 20
"""JSON of all rows together."""


class QueryFailed(ToolFailed):
    """The database refused the query."""

    def __init__(self, why: str) -> None:
        super().__init__(f"The query failed: {' '.join(why.split())[:600]}")


class RowTooLarge(ToolFailed):
    """One row alone is too much."""

    def __init__(self) -> None:
        super().__init__(
            f"A row is larger than {MAX_BYTES >> 20} MB. Ask for fewer columns, or for "
            "parts of them."
        )


def build_query_result(
    columns: list[str],
    rows: Iterable[list[Any]],
    *,
    limit: int,
    is_cut: bool = False,
) -> Any:
    """Return columns and rows, and whether there were more."""
    kept: list[list[Any]] = []
    size = 0
    for row in rows:
        size += len(json.dumps(row, ensure_ascii=False, default=str))
        if size > MAX_BYTES and not kept:
            raise RowTooLarge
        if len(kept) == limit or size > MAX_BYTES:
            is_cut = True
            break
        kept.append(row)
    answer: dict[str, Any] = {"columns": columns, "rows": kept}
    if is_cut:
        answer["note"] = f"There are more rows; these are the first {len(kept)}."
    return answer
