"""The output schema: a final answer that must be JSON of a given shape."""

import json
from typing import Any, NamedTuple

from runs.engine.errors import ParseError
from runs.engine.parsing.json_schema import SchemaViolation, find_schema_violations
from runs.engine.parsing.reply_text import decode_json, strip_code_fence


class _ParsedOutput(NamedTuple):
    value: Any
    faults: list[SchemaViolation]


def format_schema_instruction(schema: dict[str, Any]) -> str:
    text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return f"Your final answer must be JSON, nothing else, of this JSON Schema: {text}"


def parse_output(output: Any, schema: dict[str, Any]) -> Any:
    """Return `output` as a value of `schema`; raise `ParseError` if it is invalid."""
    reading = _parse_against_schema(output, schema)
    if reading.faults:
        message = "; ".join(str(fault) for fault in reading.faults[:5])
        raise ParseError(f"The final answer does not match the JSON Schema: {message}.")
    return reading.value


def _parse_against_schema(output: Any, schema: dict[str, Any]) -> _ParsedOutput:
    if not isinstance(output, str):
        return _ParsedOutput(output, find_schema_violations(output, schema))
    try:
        value = decode_json(strip_code_fence(output))
    except ValueError:
        faults = find_schema_violations(output, schema)
        return _ParsedOutput(
            output, faults and [SchemaViolation("", "it is not JSON"), *faults]
        )
    return _ParsedOutput(value, find_schema_violations(value, schema))
