"""The output schema: a final answer that must be JSON of a given shape."""

import json
from typing import Any, NamedTuple

from runs.engine.errors import ParseError
from runs.engine.json_schema import Fault, faults_of
from runs.engine.reading import decode_whole, unfenced


class _Reading(NamedTuple):
    value: Any
    faults: list[Fault]


def schema_note(schema: dict[str, Any]) -> str:
    """Return what the model is told about its final answer."""
    text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return f"Your final answer must be JSON, nothing else, of this JSON Schema: {text}"


def shaped(output: Any, schema: dict[str, Any]) -> Any:
    """Return `output` as a value of `schema`; raise `ParseError` if it is none."""
    reading = _read(output, schema)
    if reading.faults:
        told = "; ".join(str(fault) for fault in reading.faults[:5])
        raise ParseError(f"The final answer is not of the shape asked for: {told}.")
    return reading.value


def _read(output: Any, schema: dict[str, Any]) -> _Reading:
    if not isinstance(output, str):
        return _Reading(output, faults_of(output, schema))
    try:
        value = decode_whole(unfenced(output))
    except ValueError:
        faults = faults_of(output, schema)
        return _Reading(output, faults and [Fault("", "it is no JSON"), *faults])
    return _Reading(value, faults_of(value, schema))
