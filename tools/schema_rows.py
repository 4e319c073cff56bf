"""The arguments of a tool as rows of a form: from a JSON Schema, and back to it.

What a row has no field for stays in it as JSON, so that nothing is lost.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

MOST_ROWS = 100
SCALARS = ("string", "integer", "number", "boolean")
TYPES = {
    "string": "Text",
    "integer": "Whole number",
    "number": "Number",
    "boolean": "Yes or no",
    "array:string": "List of texts",
    "array:integer": "List of whole numbers",
    "array:number": "List of numbers",
    "array:boolean": "List of yes and no",
    "array": "List",
    "object": "Object",
    "": "Anything",
}
LIMITS = {
    "string": ("minLength", "maxLength"),
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "array": ("minItems", "maxItems"),
}
UNITS = {"string": "characters", "array": "entries"}
FITS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


@dataclass(frozen=True)
class Row:
    """One argument as it is typed."""

    name: str = ""
    type: str = "string"
    required: bool = False
    description: str = ""
    choices: str = ""
    """Allowed values, one a line."""
    default: str = ""
    """A text as it is, anything else as JSON."""
    least: str = ""
    most: str = ""
    rest: str = ""
    """What the fields have no place for, as a JSON object."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was typed."""
        return self == Row(type=self.type)

    @property
    def has_more(self) -> bool:
        """Whether there is more than name, type and description."""
        return any((self.choices, self.default, self.least, self.most, self.rest))


class RowFlaw(ValueError):
    """A row that is no argument; the sentence names it."""

    def __init__(self, row: Row, told: str) -> None:
        super().__init__(f"{row.name!r}: {told}" if row.name else told)


class Arguments(NamedTuple):
    """All rows, and what else the schema says."""

    rows: tuple[Row, ...]
    rest: str


class NotInRows(ValueError):
    """Why a schema stays JSON."""


def arguments_of(schema: dict[str, Any]) -> Arguments:
    """Return the rows of `schema`; raise `NotInRows` where they would lose a part."""
    rest = dict(schema)
    properties, required = rest.pop("properties", {}), rest.pop("required", [])
    if rest.pop("type", "object") != "object" or not isinstance(properties, dict):
        raise NotInRows("it does not describe an object with named arguments")
    if len(properties) > MOST_ROWS:
        raise NotInRows(f"it has more than {MOST_ROWS} arguments")
    for name, part in properties.items():
        if name != name.strip() or len(name.splitlines()) != 1:
            raise NotInRows(f"the name {name!r} does not fit into a line")
        if not isinstance(part, dict):
            told = f"{name!r} is described by {json.dumps(part)}, not by an object"
            raise NotInRows(told)
    names = required if isinstance(required, list) else [required]
    for name in names:
        if not isinstance(name, str) or name not in properties:
            raise NotInRows(f"it requires {name!r}, which it does not describe")
    rows = tuple(
        row_of(name, part, required=name in names) for name, part in properties.items()
    )
    found = Arguments(rows, _shown(rest) if rest else "")
    if not _is_same(found, schema):
        raise NotInRows("rows would change it")
    return found


def schema_of(arguments: Arguments) -> dict[str, Any]:
    """Return the schema of rows; raise `RowFlaw` for the first that is no argument."""
    properties: dict[str, Any] = {}
    required = list[str]()
    for number, row in enumerate(arguments.rows, 1):
        if row.is_empty:
            continue
        if not row.name:
            raise RowFlaw(row, f"Argument {number} has no name.")
        if row.name in properties:
            raise RowFlaw(row, "two arguments have this name.")
        properties[row.name] = part_of(row)
        if row.required:
            required.append(row.name)
    rest = _object(Row(), arguments.rest, "What else the schema says")
    for key in ("type", "properties", "required"):
        if key in rest:
            raise RowFlaw(Row(), f"{key!r} is made from the rows; leave it out.")
    found = {"type": "object", "properties": properties}
    return {**found, **({"required": required} if required else {}), **rest}


def say_the_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two schemas differ at most in what is understood, and in order."""
    return _canonical(_written_out(one)) == _canonical(_written_out(other))


def _written_out(schema: dict[str, Any]) -> dict[str, Any]:
    required = schema.get("required", [])
    if isinstance(required, list):
        required = sorted(required, key=str)
    return {"type": "object", "properties": {}, **schema, "required": required}


def row_of(name: str, part: dict[str, Any], *, required: bool) -> Row:
    """Return the row of one property; what has no field goes into its rest."""
    plain = Row(name, "", required, rest=_shown(part) if part else "")
    row = _filled(plain, dict(part))
    try:
        return row if _canonical(part_of(row)) == _canonical(part) else plain
    except RowFlaw:
        return plain


def part_of(row: Row) -> dict[str, Any]:
    """Return what a row says of its argument, as JSON Schema; raise `RowFlaw`."""
    kind, _, item = row.type.partition(":")
    if row.type not in TYPES:
        raise RowFlaw(row, f"there is no type {row.type!r}.")
    part: dict[str, Any] = {"type": kind} if kind else {}
    if item:
        part["items"] = {"type": item}
    if row.description:
        part["description"] = row.description
    if row.choices.strip():
        part["enum"] = list(_choices(row, kind))
    if row.default:
        part["default"] = _value(row, kind, row.default, "default")
    for word, text, key in zip(
        ("least", "most"), (row.least, row.most), _limits(row, kind), strict=True
    ):
        if text:
            part[key] = _number(row, kind, text, word)
    for key, value in _object(row, row.rest, "more").items():
        if key in part:
            raise RowFlaw(row, f"{key!r} is there twice, in its field and in More.")
        part[key] = value
    return part


def _filled(row: Row, rest: dict[str, Any]) -> Row:
    """Move what a field can hold out of `rest`, as far as it is of a usual shape."""
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
    if kind in FITS and kind != "boolean" and _are_lines(rest.get("enum"), kind):
        typed["choices"] = "\n".join(map(_typed, rest.pop("enum")))
    if "default" in rest and _is_line(rest["default"], kind):
        typed["default"] = _typed(rest.pop("default"), is_text=kind == "string")
    for word, key in zip(("least", "most"), LIMITS.get(kind, ()), strict=False):
        if key in rest:
            typed[word] = json.dumps(rest.pop(key))
    more = _shown(rest) if rest else ""
    return replace(row, **{"type": kind, **typed, "rest": more})


def _are_lines(values: Any, kind: str) -> bool:
    """Whether each value can stand on a line of its own."""
    return isinstance(values, list) and all(
        isinstance(value, FITS[kind])
        and _is_line(value, kind)
        and value == (value.strip() if isinstance(value, str) else value)
        for value in values
    )


def _is_line(value: Any, kind: str) -> bool:
    """Whether a value can be typed in one line and is read back as it was."""
    if kind == "string":
        return isinstance(value, str) and bool(value) and len(value.splitlines()) == 1
    return True


def _typed(value: Any, *, is_text: bool = True) -> str:
    if isinstance(value, str) and is_text:
        return value
    return json.dumps(value, ensure_ascii=False)


def _choices(row: Row, kind: str) -> Iterator[Any]:
    if kind not in ("string", "integer", "number"):
        raise RowFlaw(row, "only texts and numbers have allowed values; use More.")
    for line in filter(None, map(str.strip, row.choices.splitlines())):
        yield _value(row, kind, line, "allowed value")


def _value(row: Row, kind: str, text: str, what: str) -> Any:
    """Read a typed value as its type says."""
    if kind == "string":
        return text
    value = _json(row, text, f"the {what} {text!r}")
    wanted = FITS.get(kind)
    if wanted is not None and (
        not isinstance(value, wanted) or isinstance(value, bool) != (kind == "boolean")
    ):
        word = "true or false" if kind == "boolean" else f"a {TYPES[kind].lower()}"
        raise RowFlaw(row, f"the {what} {text!r} is not {word}.")
    return value


def _limits(row: Row, kind: str) -> tuple[str, str]:
    found = LIMITS.get(kind)
    if found is None and (row.least or row.most):
        told = f"{TYPES[row.type].lower()!r} has no least and most; use More."
        raise RowFlaw(row, told)
    return found or ("", "")


def _number(row: Row, kind: str, text: str, word: str) -> float:
    value = _json(row, text, f"the {word} {text!r}")
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise RowFlaw(row, f"the {word} {text!r} is not a number.")
    if kind in ("string", "array") and (not isinstance(value, int) or value < 0):
        raise RowFlaw(row, f"the {word} {text!r} is not a number of {UNITS[kind]}.")
    return value


def _object(row: Row, text: str, what: str) -> dict[str, Any]:
    """Read an object of further keywords; nothing is an empty one."""
    if not text.strip():
        return {}
    value = _json(row, text, what)
    if not isinstance(value, dict):
        raise RowFlaw(row, f"{what} is a JSON object, such as {{}}.")
    return value


def _json(row: Row, text: str, what: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_json)
    except (ValueError, RecursionError) as error:
        raise RowFlaw(row, f"{what} is not JSON ({error}).") from None


def _no_json(word: str) -> Any:
    raise ValueError(f"{word} is none")


def _shown(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _is_same(arguments: Arguments, schema: dict[str, Any]) -> bool:
    """Whether rows give back the schema."""
    try:
        return say_the_same(schema_of(arguments), schema)
    except RowFlaw:
        return False
