"""The schema of a tool while it is edited: as rows, as JSON, or none."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from django.utils.translation import gettext as _

from tools.schema.check import find_schema_flaws
from tools.schema.rows import (
    MAX_ARGUMENTS,
    InvalidRow,
    NotTabular,
    SchemaRow,
    SchemaTable,
    property_from_row,
    schema_from_table,
    table_from_schema,
)
from tools.schema.safe_schema import find_first_schema_error
from tools.text.parse_errors import find_json_error

DraftShape = Literal["rows", "json", "text", "function"]

ADD_NAMED_ACTION = re.compile(r"add:([A-Za-z_][\w.-]*(?:,[A-Za-z_][\w.-]*)*)")
"""Adds required text arguments with these names."""

ROW_ACTION = re.compile(r"(up|down|remove)-([0-9]{1,3})")


@dataclass(frozen=True)
class SchemaDraft:
    """The state of the editor."""

    shape: DraftShape = "text"
    """`text` is a tool that takes a single text input and has no schema.

    `function` is the schema of a function in the code, in `json` as it was last read.
    """
    rows: tuple[SchemaRow, ...] = ()
    rest: str = ""
    """Additional keywords of the schema, as a JSON object."""
    json: str = ""
    conversion_error: str = ""
    """Why the schema cannot be shown in the other shape."""
    focus: tuple[int, str] | None = None
    """The row and its field or button that takes the focus."""
    is_changing: bool = False
    """Whether a button of the editor was pressed, so that nothing is saved."""
    has_function: bool = False
    """Whether the code ends with a function, whatever the shape."""


class InvalidSchema(ValueError):
    """The draft is not a valid schema; `flaws` has a sentence per reason."""

    def __init__(self, flaws: list[str]) -> None:
        super().__init__(" ".join(flaws))
        self.flaws = flaws


def follow_function(draft: SchemaDraft, schema: dict[str, Any] | None) -> SchemaDraft:
    """Return the draft with the schema of a function, unless another one is defined."""
    draft = replace(draft, has_function=schema is not None)
    is_defined = draft.shape == "rows" or draft.shape == "json" and draft.json.strip()
    if is_defined:
        return draft
    if schema is None:
        return replace(draft, shape="text") if draft.shape == "function" else draft
    text = json.dumps(schema, ensure_ascii=False)  # one line: browsers change breaks
    return replace(draft, shape="function", json=text)


def format_schema_json(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False)


def draft_from_schema(schema: dict[str, Any] | None) -> SchemaDraft:
    """Return a stored schema as rows, or as JSON if rows cannot hold all of it."""
    if schema is None:
        return SchemaDraft()
    try:
        rows, rest = table_from_schema(schema)
    except NotTabular as why:
        text = format_schema_json(schema)
        return SchemaDraft("json", json=text, conversion_error=str(why))
    return SchemaDraft("rows", rows=rows, rest=rest)


def schema_from_draft(draft: SchemaDraft) -> dict[str, Any] | None:
    """Return the schema, None for a single text input; raise `InvalidSchema`."""
    is_json = draft.shape in ("json", "function")
    if draft.shape == "text" or is_json and not draft.json.strip():
        return None
    schema = _parse_json(draft.json) if is_json else _build_schema(draft)
    if flaws := list(_iter_named_flaws(schema)) or find_schema_flaws(schema):
        raise InvalidSchema(flaws)
    return schema


def iter_draft_hints(draft: SchemaDraft) -> Iterator[str]:
    """Yield hints about valid but unlikely values."""
    for row in draft.rows if draft.shape == "rows" else ():
        try:
            part = property_from_row(row)
        except InvalidRow:
            continue
        if "default" in part and (
            fault := find_first_schema_error(part["default"], part)
        ):
            yield _(
                "Argument “%(name)s”: the default value does not match. %(error)s"
            ) % {"name": row.name, "error": fault}
        if row.least and row.most and float(row.least) > float(row.most):
            yield _(
                "Argument “%(name)s”: the minimum is greater than the maximum, so no "
                "value matches."
            ) % {"name": row.name}


def apply_editor_action(draft: SchemaDraft, action: str) -> SchemaDraft:
    """Return the draft after a button of the editor was pressed."""
    draft = replace(draft, is_changing=True)
    rows = list(draft.rows)
    if action == "add" and len(rows) < MAX_ARGUMENTS:
        return replace(draft, rows=(*rows, SchemaRow()), focus=(len(rows), "name"))
    if named := ADD_NAMED_ACTION.fullmatch(action):
        return _add_arguments(draft, named[1].split(","))
    if move := ROW_ACTION.fullmatch(action):
        return _move_row(draft, move[1], int(move[2]))
    if action == "text":
        return SchemaDraft("text", is_changing=True)
    if action in ("rows", "json"):
        return _convert_draft(draft, action)
    return draft


def _add_arguments(draft: SchemaDraft, names: list[str]) -> SchemaDraft:
    """Return the draft with more arguments; JSON that is not valid stays as it is."""
    if draft.shape == "json" and draft.json.strip():
        try:
            schema = schema_from_draft(draft) or {}
        except InvalidSchema:
            return draft
        added = {name: {"type": "string"} for name in names}
        schema["properties"] = {**added, **schema.get("properties", {})}
        schema["required"] = list(dict.fromkeys([*schema.get("required", []), *names]))
        return replace(draft, json=format_schema_json(schema))
    known = {row.name for row in draft.rows}
    rows = [SchemaRow(name, required=True) for name in names if name not in known]
    return replace(draft, shape="rows", rows=(*draft.rows, *rows)[:MAX_ARGUMENTS])


def _move_row(draft: SchemaDraft, way: str, at: int) -> SchemaDraft:
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


def _convert_draft(draft: SchemaDraft, to: str) -> SchemaDraft:
    """Return the draft as rows or JSON, or unchanged with an error."""
    if draft.shape == "text":
        rows = (SchemaRow(),) if to == "rows" else ()
        blank = '{\n  "type": "object",\n  "properties": {}\n}' if to == "json" else ""
        focus = (0, "name") if rows else None
        return replace(draft, shape=to, rows=rows, json=blank, focus=focus)  # type: ignore[arg-type]  # rows or json
    try:
        schema = schema_from_draft(draft)
    except InvalidSchema as none:
        return replace(draft, conversion_error=str(none))
    if schema is None:
        return SchemaDraft("rows" if to == "rows" else "json", is_changing=True)
    if to == "rows":
        return replace(draft_from_schema(schema), is_changing=True)
    return SchemaDraft("json", json=format_schema_json(schema), is_changing=True)


def _build_schema(draft: SchemaDraft) -> dict[str, Any]:
    try:
        return schema_from_table(SchemaTable(draft.rows, draft.rest))
    except InvalidRow as flaw:
        raise InvalidSchema([str(flaw)]) from None


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidSchema([_("Not valid JSON."), find_json_error(text)]) from None


def _iter_named_flaws(schema: Any) -> Iterator[str]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, part in properties.items() if isinstance(properties, dict) else ():
        one = {"type": "object", "properties": {"it": part}}
        for flaw in find_schema_flaws(one):
            yield _("Argument “%(name)s”: %(error)s") % {
                "name": name,
                "error": flaw.replace("properties/it", "it", 1),
            }
