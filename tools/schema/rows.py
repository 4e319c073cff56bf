"""Converts the JSON Schema of arguments into rows of a form, and back.

Keywords without a field stay in the row as JSON, so that nothing is lost.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

MAX_ARGUMENTS = 100
SCALARS = ("string", "integer", "number", "boolean")
TYPE_CHOICES = {
    "string": gettext_lazy("Text"),
    "integer": gettext_lazy("Integer"),
    "number": gettext_lazy("Number"),
    "boolean": gettext_lazy("Yes or no"),
    "array:string": gettext_lazy("List of texts"),
    "array:integer": gettext_lazy("List of integers"),
    "array:number": gettext_lazy("List of numbers"),
    "array:boolean": gettext_lazy("List of yes and no"),
    "array": gettext_lazy("List"),
    "object": gettext_lazy("Object"),
    "": gettext_lazy("Any value"),
}
LIMIT_KEYWORDS = {
    "string": ("minLength", "maxLength"),
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "array": ("minItems", "maxItems"),
}
TYPE_ERRORS = {
    "integer": gettext_lazy("%(value)s is not an integer."),
    "number": gettext_lazy("%(value)s is not a number."),
    "boolean": gettext_lazy("%(value)s is not true or false."),
}
PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


@dataclass(frozen=True)
class SchemaRow:
    """One argument as entered."""

    name: str = ""
    type: str = "string"
    required: bool = False
    description: str = ""
    choices: str = ""
    """Allowed values, one per line."""
    default: str = ""
    """Text as is, other values as JSON."""
    least: str = ""
    most: str = ""
    rest: str = ""
    """Keywords without a field, as a JSON object."""

    @property
    def is_empty(self) -> bool:
        return self == SchemaRow(type=self.type)

    @property
    def has_more(self) -> bool:
        """Whether fields of the folded part are filled."""
        return any((self.choices, self.default, self.least, self.most, self.rest))


class InvalidRow(ValueError):
    """A row is not valid; the message names the argument."""

    def __init__(self, row: SchemaRow, error: str) -> None:
        if row.name:
            error = _("Argument “%(name)s”: %(error)s") % {
                "name": row.name,
                "error": error,
            }
        super().__init__(error)


class SchemaTable(NamedTuple):
    """All rows, and additional keywords of the schema."""

    rows: tuple[SchemaRow, ...]
    rest: str


class NotTabular(ValueError):
    """A schema cannot be shown as rows; the message says why."""


def table_from_schema(schema: dict[str, Any]) -> SchemaTable:
    """Return the rows of `schema`; raise `NotTabular` if they would lose a part."""
    rest = dict(schema)
    properties, required = rest.pop("properties", {}), rest.pop("required", [])
    if rest.pop("type", "object") != "object" or not isinstance(properties, dict):
        raise NotTabular(
            _("Shown as JSON: the schema does not describe named arguments.")
        )
    if len(properties) > MAX_ARGUMENTS:
        raise NotTabular(
            _("Shown as JSON: there are more than %(limit)d arguments.")
            % {"limit": MAX_ARGUMENTS}
        )
    for name, part in properties.items():
        if name != name.strip() or len(name.splitlines()) != 1:
            raise NotTabular(
                _("Shown as JSON: the name “%(name)s” does not fit on one line.")
                % {"name": name}
            )
        if not isinstance(part, dict):
            raise NotTabular(
                _("Shown as JSON: “%(name)s” is %(value)s instead of an object.")
                % {"name": name, "value": json.dumps(part)}
            )
    names = required if isinstance(required, list) else [required]
    for name in names:
        if not isinstance(name, str) or name not in properties:
            raise NotTabular(
                _("Shown as JSON: “%(name)s” is required but not defined.")
                % {"name": name}
            )
    rows = tuple(
        row_from_property(name, part, required=name in names)
        for name, part in properties.items()
    )
    found = SchemaTable(rows, _format_json(rest) if rest else "")
    if not _round_trips(found, schema):
        raise NotTabular(_("Shown as JSON: rows would change the schema."))
    return found


def schema_from_table(arguments: SchemaTable) -> dict[str, Any]:
    """Return the schema of the rows; raise `InvalidRow` for the first invalid one."""
    properties: dict[str, Any] = {}
    required = list[str]()
    for number, row in enumerate(arguments.rows, 1):
        if row.is_empty:
            continue
        if not row.name:
            raise InvalidRow(
                row,
                _("Enter a name for argument %(number)d.") % {"number": number},
            )
        if row.name in properties:
            raise InvalidRow(row, _("two arguments have this name."))
        properties[row.name] = property_from_row(row)
        if row.required:
            required.append(row.name)
    rest = _parse_object(SchemaRow(), arguments.rest, _("Additional schema keywords"))
    for key in ("type", "properties", "required"):
        if key in rest:
            raise InvalidRow(
                SchemaRow(),
                _("Remove “%(key)s” from the additional schema keywords.")
                % {"key": key},
            )
    found = {"type": "object", "properties": properties}
    return {**found, **({"required": required} if required else {}), **rest}


def are_equivalent_schemas(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two schemas differ only in implied keywords and in order."""
    return _canonicalize(_normalize_schema(one)) == _canonicalize(
        _normalize_schema(other)
    )


def _normalize_schema(schema: dict[str, Any]) -> dict[str, Any]:
    required = schema.get("required", [])
    if isinstance(required, list):
        required = sorted(required, key=str)
    return {"type": "object", "properties": {}, **schema, "required": required}


def row_from_property(name: str, part: dict[str, Any], *, required: bool) -> SchemaRow:
    """Return the row of one property; keywords without a field go into `rest`."""
    plain = SchemaRow(name, "", required, rest=_format_json(part) if part else "")
    row = _fill_row(plain, dict(part))
    try:
        return (
            row
            if _canonicalize(property_from_row(row)) == _canonicalize(part)
            else plain
        )
    except InvalidRow:
        return plain


def property_from_row(row: SchemaRow) -> dict[str, Any]:
    """Return the JSON Schema of one row; raise `InvalidRow`."""
    kind, _separator, item = row.type.partition(":")
    if row.type not in TYPE_CHOICES:
        raise InvalidRow(row, _("unknown type “%(type)s”.") % {"type": row.type})
    part: dict[str, Any] = {"type": kind} if kind else {}
    if item:
        part["items"] = {"type": item}
    if row.description:
        part["description"] = row.description
    if row.choices.strip():
        part["enum"] = list(_iter_choices(row, kind))
    if row.default:
        part["default"] = _parse_value(row, kind, row.default, _("default value"))
    for word, text, key in zip(
        (_("minimum"), _("maximum")),
        (row.least, row.most),
        _get_limit_keywords(row, kind),
        strict=True,
    ):
        if text:
            part[key] = _parse_number(row, kind, text, word)
    for key, value in _parse_object(row, row.rest, _("Additional keywords")).items():
        if key in part:
            raise InvalidRow(
                row,
                _("remove “%(key)s” from the additional keywords: it has a field.")
                % {"key": key},
            )
        part[key] = value
    return part


def _fill_row(row: SchemaRow, rest: dict[str, Any]) -> SchemaRow:
    """Move the keywords that fields can hold out of `rest`."""
    typed: dict[str, Any] = {}
    kind = rest.pop("type", "")
    if not isinstance(kind, str) or kind not in (*SCALARS, "array", "object", ""):
        rest, kind = {"type": kind, **rest}, ""
    for item in SCALARS if kind == "array" else ():
        if rest.get("items") == {"type": item}:
            del rest["items"]
            typed["type"] = f"array:{item}"
    about = rest.get("description")
    if isinstance(about, str) and about and "\r" not in about:
        typed["description"] = rest.pop("description")
    if (
        kind in PYTHON_TYPES
        and kind != "boolean"
        and _are_single_lines(rest.get("enum"), kind)
    ):
        typed["choices"] = "\n".join(map(_format_typed_value, rest.pop("enum")))
    if "default" in rest and _is_single_line(rest["default"], kind):
        typed["default"] = _format_typed_value(
            rest.pop("default"), is_text=kind == "string"
        )
    for word, key in zip(("least", "most"), LIMIT_KEYWORDS.get(kind, ()), strict=False):
        if key in rest:
            typed[word] = json.dumps(rest.pop(key))
    more = _format_json(rest) if rest else ""
    return replace(row, **{"type": kind, **typed, "rest": more})


def _are_single_lines(values: Any, kind: str) -> bool:
    """Whether each value can be entered on one line."""
    return isinstance(values, list) and all(
        isinstance(value, PYTHON_TYPES[kind])
        and _is_single_line(value, kind)
        and value == (value.strip() if isinstance(value, str) else value)
        for value in values
    )


def _is_single_line(value: Any, kind: str) -> bool:
    """Whether a value survives being entered on one line."""
    if kind == "string":
        return isinstance(value, str) and bool(value) and len(value.splitlines()) == 1
    return True


def _format_typed_value(value: Any, *, is_text: bool = True) -> str:
    if isinstance(value, str) and is_text:
        return value
    return json.dumps(value, ensure_ascii=False)


def _iter_choices(row: SchemaRow, kind: str) -> Iterator[Any]:
    if kind not in ("string", "integer", "number"):
        raise InvalidRow(
            row,
            _("only texts and numbers can have allowed values here; use JSON."),
        )
    for line in filter(None, map(str.strip, row.choices.splitlines())):
        yield _parse_value(row, kind, line, _("allowed value"))


def _parse_value(row: SchemaRow, kind: str, text: str, what: str) -> Any:
    if kind == "string":
        return text
    value = _parse_json(row, text, _quote(what, text))
    wanted = PYTHON_TYPES.get(kind)
    if wanted is not None and (
        not isinstance(value, wanted) or isinstance(value, bool) != (kind == "boolean")
    ):
        raise InvalidRow(row, TYPE_ERRORS[kind] % {"value": _quote(what, text)})
    return value


def _get_limit_keywords(row: SchemaRow, kind: str) -> tuple[str, str]:
    found = LIMIT_KEYWORDS.get(kind)
    if found is None and (row.least or row.most):
        raise InvalidRow(row, _("this type cannot have a minimum or maximum."))
    return found or ("", "")


def _parse_number(row: SchemaRow, kind: str, text: str, word: str) -> float:
    value = _parse_json(row, text, _quote(word, text))
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise InvalidRow(row, TYPE_ERRORS["number"] % {"value": _quote(word, text)})
    if kind in ("string", "array") and (not isinstance(value, int) or value < 0):
        raise InvalidRow(
            row, _("%(value)s is not a length.") % {"value": _quote(word, text)}
        )
    return value


def _parse_object(row: SchemaRow, text: str, what: str) -> dict[str, Any]:
    """Parse additional keywords; an empty text is an empty object."""
    if not text.strip():
        return {}
    value = _parse_json(row, text, what)
    if not isinstance(value, dict):
        raise InvalidRow(
            row, _("%(field)s: enter a JSON object such as {}.") % {"field": what}
        )
    return value


def _parse_json(row: SchemaRow, text: str, what: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidRow(
            row,
            _("%(value)s is not valid JSON (%(error)s).")
            % {"value": what, "error": error},
        ) from None


def _quote(label: str, text: str) -> str:
    return _("%(label)s “%(text)s”") % {"label": label, "text": text}


def _refuse_constant(word: str) -> Any:
    raise ValueError(_("%(word)s is not allowed") % {"word": word})


def _format_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _canonicalize(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _round_trips(arguments: SchemaTable, schema: dict[str, Any]) -> bool:
    """Whether rows convert back into the same schema."""
    try:
        return are_equivalent_schemas(schema_from_table(arguments), schema)
    except InvalidRow:
        return False
