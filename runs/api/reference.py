"""The page that describes every route, made from the OpenAPI document."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.views.decorators.http import require_GET

from runs.api.documentation import get_document
from runs.api.openapi import Json

MAX_DEPTH = 3
"""Objects within objects that are listed."""


class FieldRow(NamedTuple):
    """A parameter, or a field of a body or response."""

    name: str
    kind: str
    is_required: bool
    description: SafeString
    where: str = ""


class OperationEntry(NamedTuple):
    """One method of one path."""

    id: str
    method: str
    path: str
    summary: str
    description: SafeString
    scope: str
    parameters: list[FieldRow]
    body: list[FieldRow]
    response: list[FieldRow]
    status: str
    command: str
    """An example for curl."""
    can_open: bool
    """Whether a form can send it: a GET without parameters in the path."""


class OperationGroup(NamedTuple):
    """The operations of one resource."""

    tag: str
    operations: list[OperationEntry]


@require_GET
def reference(request: HttpRequest) -> HttpResponse:
    """Show the routes; GET of lists can be tried in the browser."""
    return render(request, "reference/detail.html", {"groups": list_operation_groups()})


@cache
def list_operation_groups() -> list[OperationGroup]:
    document = get_document()
    found: dict[str, list[OperationEntry]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            entry = build_entry(document, path, method, operation)
            found.setdefault(operation["tags"][0], []).append(entry)
    return [OperationGroup(tag, entries) for tag, entries in found.items()]


def build_entry(
    document: Json, path: str, method: str, operation: Json
) -> OperationEntry:
    status, done = next(iter(operation["responses"].items()))
    contents: list[Json] = [*done.get("content", {}).values()]
    answer: Json = contents[0]["schema"] if contents else {}
    sent = operation.get("requestBody", {}).get("content", {})
    body = sent.get("application/json", {}).get("schema", {})
    return OperationEntry(
        id=operation["operationId"],
        method=method.upper(),
        path=path,
        summary=operation["summary"],
        description=mark_code(operation.get("description", "")),
        scope=operation["security"][0]["token"][0],
        parameters=[build_parameter(document, one) for one in operation["parameters"]],
        body=[*iter_fields(document, body)],
        response=[*iter_fields(document, answer)],
        status=status,
        command=build_command(document, path, method, body),
        can_open=method == "get" and "{" not in path,
    )


def build_parameter(document: Json, parameter: Json) -> FieldRow:
    return FieldRow(
        parameter["name"],
        describe_schema_type(document, parameter["schema"]),
        parameter.get("required", False),
        mark_code(parameter.get("description", "")),
        parameter["in"],
    )


def iter_fields(
    document: Json, schema: Json, above: str = "", depth: int = 1
) -> Iterator[FieldRow]:
    """Yield the fields of an object, and those of objects in it."""
    schema = resolve(document, schema)
    if schema.get("type") == "array":
        yield from iter_fields(document, schema.get("items", {}), above, depth)
    for name, part in schema.get("properties", {}).items():
        full = f"{above}{name}"
        yield FieldRow(
            full,
            describe_schema_type(document, part),
            name in schema.get("required", []),
            mark_code(part.get("description", "")),
        )
        if depth < MAX_DEPTH:
            inner = find_properties_schema(document, part)
            yield from iter_fields(document, inner, f"{full}.", depth + 1)


def find_properties_schema(document: Json, schema: Json) -> Json:
    """Return the object that a schema allows, alone, in a list, or besides null."""
    schema = resolve(document, schema)
    for one in schema.get("anyOf", []):
        if found := find_properties_schema(document, one):
            return found
    if schema.get("type") == "array":
        return find_properties_schema(document, schema.get("items", {}))
    return schema if "properties" in schema else {}


def mark_code(text: str) -> SafeString:
    """Return a text as HTML, with what is between backticks as code."""
    parts = enumerate(text.split("`"))
    return format_html_join(
        "",
        "{}",
        (
            (format_html("<code>{}</code>", one) if place % 2 else one,)
            for place, one in parts
        ),
    )


def resolve(document: Json, schema: Json) -> Json:
    reference = schema.get("$ref")
    if reference is None:
        return schema
    found: Json = document["components"]["schemas"][reference.split("/")[-1]]
    return found


def describe_schema_type(document: Json, schema: Json) -> str:
    """Return a type in a few words: `text`, `list of whole numbers`, `a, b or null`."""
    schema = resolve(document, schema)
    if "anyOf" in schema:
        return " or ".join(
            describe_schema_type(document, one) for one in schema["anyOf"]
        )
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return ", ".join(json.dumps(one) for one in schema["enum"])
    kind = schema.get("type")
    if kind == "array":
        return f"list: {describe_schema_type(document, schema.get('items', {}))}"
    return TYPE_NAMES.get(str(kind), "any")


TYPE_NAMES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "object",
    "null": "null",
}


def build_command(document: Json, path: str, method: str, body: Json) -> str:
    """Return a curl command; values in capitals are to be replaced."""
    lines = ['curl -H "Authorization: Bearer $TOKEN"']
    if method != "get":
        lines[0] += f" -X {method.upper()}"
    if body:
        example = build_example(document, body)
        lines.append('  -H "Content-Type: application/json"')
        lines.append(f"  -d '{json.dumps(example, ensure_ascii=False)}'")
    url = path.replace("{", "").replace("}", "")
    for name in ("id", "number"):
        url = url.replace(f"/{name}", f"/{name.upper()}")
    return " \\\n".join([*lines, f"  {settings.PUBLIC_URL}{url}"])


def build_example(document: Json, schema: Json) -> Any:
    """Return a value of a schema: of an object, the required fields."""
    schema = resolve(document, schema)
    if "anyOf" in schema:
        return build_example(document, schema["anyOf"][0])
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            needed = schema.get("required", [])
            parts = schema.get("properties", {})
            return {name: build_example(document, parts[name]) for name in needed}
        case "array":
            return [build_example(document, schema.get("items", {}))]
        case "integer" | "number":
            return 1
        case "boolean":
            return True
        case _:
            return "…"
