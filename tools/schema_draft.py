"""The schema of a tool while it is being edited: as rows, as JSON, or none at all."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from tools.safe_schema import first_fault
from tools.schema_check import flaws_of_schema
from tools.schema_rows import (
    MOST_ROWS,
    Arguments,
    NotInRows,
    Row,
    RowFlaw,
    arguments_of,
    part_of,
    schema_of,
)
from tools.text_flaw import NO_JSON, json_flaw

Shape = Literal["rows", "json", "text"]

MOVE = re.compile(r"(up|down|remove)-([0-9]{1,3})")


@dataclass(frozen=True)
class Draft:
    """What is on the page."""

    shape: Shape = "text"
    """`text` is a tool that takes one text, and has no schema."""
    rows: tuple[Row, ...] = ()
    rest: str = ""
    """What the schema says besides its properties, as a JSON object."""
    json: str = ""
    why: str = ""
    """Why it is not shown in the other shape."""
    focus: tuple[int, str] | None = None
    """The row and its field or button where the person goes on."""
    is_changing: bool = False
    """A button of the editor was pressed: this is not yet for saving."""


class NoSchema(ValueError):
    """What was typed is no schema; `flaws` has a sentence for each reason."""

    def __init__(self, flaws: list[str]) -> None:
        super().__init__(" ".join(flaws))
        self.flaws = flaws


def draft_of(schema: dict[str, Any] | None) -> Draft:
    """Return what is stored, as rows where they can hold all of it."""
    if schema is None:
        return Draft()
    try:
        rows, rest = arguments_of(schema)
    except NotInRows as why:
        text = json.dumps(schema, indent=2, ensure_ascii=False)
        return Draft("json", json=text, why=f"It stays JSON: {why}.")
    return Draft("rows", rows=rows, rest=rest)


def schema_in(draft: Draft) -> dict[str, Any] | None:
    """Return the schema, None for a tool that takes one text; raise `NoSchema`."""
    if draft.shape == "text" or draft.shape == "json" and not draft.json.strip():
        return None
    schema = _json_in(draft.json) if draft.shape == "json" else _schema_of(draft)
    if flaws := list(_flaws_by_name(schema)) or flaws_of_schema(schema):
        raise NoSchema(flaws)
    return schema


def hints_for(draft: Draft) -> Iterator[str]:
    """Yield what is allowed and yet hardly meant."""
    for row in draft.rows if draft.shape == "rows" else ():
        try:
            part = part_of(row)
        except RowFlaw:
            continue
        if "default" in part and (fault := first_fault(part["default"], part)):
            yield f"{row.name!r}: its default does not fit. {fault}"
        if row.least and row.most and float(row.least) > float(row.most):
            yield f"{row.name!r}: its least is more than its most, so nothing fits."


def changed(draft: Draft, action: str) -> Draft:
    """Return the draft after one press of a button of the editor."""
    draft = replace(draft, is_changing=True)
    rows = list(draft.rows)
    if action == "add" and len(rows) < MOST_ROWS:
        return replace(draft, rows=(*rows, Row()), focus=(len(rows), "name"))
    if move := MOVE.fullmatch(action):
        return _moved(draft, move[1], int(move[2]))
    if action == "text":
        return Draft("text", is_changing=True)
    if action in ("rows", "json"):
        return _reshaped(draft, action)
    return draft


def _moved(draft: Draft, way: str, at: int) -> Draft:
    rows = list(draft.rows)
    if at >= len(rows):
        return draft
    row = rows.pop(at)
    if way == "remove":
        focus = (min(at, len(rows) - 1), "name") if rows else None
        return replace(draft, rows=tuple(rows), focus=focus)
    to = max(at - 1, 0) if way == "up" else min(at + 1, len(rows))
    rows.insert(to, row)
    return replace(draft, rows=tuple(rows), focus=(to, way))


def _reshaped(draft: Draft, to: str) -> Draft:
    """Return the draft as rows or as JSON; as it is, with a sentence, if that fails."""
    if draft.shape == "text":
        rows = (Row(),) if to == "rows" else ()
        blank = '{\n  "type": "object",\n  "properties": {}\n}' if to == "json" else ""
        focus = (0, "name") if rows else None
        return replace(draft, shape=to, rows=rows, json=blank, focus=focus)  # type: ignore[arg-type]  # rows or json
    try:
        schema = schema_in(draft)
    except NoSchema as none:
        return replace(draft, why=f"It stays as it is: {none}")
    if schema is None:
        return Draft("rows" if to == "rows" else "json", is_changing=True)
    if to == "rows":
        return replace(draft_of(schema), is_changing=True)
    text = json.dumps(schema, indent=2, ensure_ascii=False)
    return Draft("json", json=text, is_changing=True)


def _schema_of(draft: Draft) -> dict[str, Any]:
    try:
        return schema_of(Arguments(draft.rows, draft.rest))
    except RowFlaw as flaw:
        raise NoSchema([str(flaw)]) from None


def _json_in(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise NoSchema([f"{NO_JSON} {json_flaw(text)}"]) from None


def _flaws_by_name(schema: Any) -> Iterator[str]:
    """Yield what is wrong with single arguments, by their names."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, part in properties.items() if isinstance(properties, dict) else ():
        one = {"type": "object", "properties": {"it": part}}
        for flaw in flaws_of_schema(one):
            told = flaw.removeprefix("This is no JSON Schema. At ")
            yield f"{name!r}: {told.replace('properties/it', 'it', 1)}"
