"""The OpenAPI 3.1 document of the API, made from its routes."""

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from http import HTTPStatus
from itertools import pairwise
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, models_json_schema

from runs.api.bodies import MAX_KEY_LENGTH
from runs.api.problems import Problem
from runs.api.route import PARAMETER_PATTERNS, Route

Json = dict[str, Any]
References = dict[tuple[Any, JsonSchemaMode], Json]

PROBLEM_TYPE = "application/problem+json"
DESCRIPTION = (
    "Send an API token as `Authorization: Bearer TOKEN`. Lists have `data` and `next`; "
    "send `next` as `cursor` for the following page. Errors are problem+json. Times "
    "are ISO 8601 in UTC."
)


class PlainSchema(GenerateJsonSchema):
    """JSON Schema with the docstrings of fields as descriptions.

    It has no titles, which repeat the names of fields. Pydantic can read docstrings,
    but reads them as each class is created: 0.3 s of every start of a process.
    """

    def field_title_should_be_set(self, schema: Any) -> Literal[False]:
        return False

    def model_schema(self, schema: Any) -> Json:
        result = super().model_schema(schema)
        properties = result.get("properties", {})
        for kind in schema["cls"].__mro__:
            for name, text in find_field_docstrings(kind).items():
                if name in properties:
                    properties[name].setdefault("description", text)
        return result


def build_document(routes: Iterable[Route], *, server: str = "") -> Json:
    """Return the document; `server` is the address of the site."""
    routes = list(routes)
    references, definitions = models_json_schema(
        sorted(find_models(routes), key=lambda one: (one[0].__name__, one[1])),
        ref_template="#/components/schemas/{model}",
        schema_generator=PlainSchema,
    )
    paths: dict[str, Json] = {}
    for route in routes:
        operations = paths.setdefault(f"/api/v1/{route.path}", {})
        operations[route.method.lower()] = build_route_operation(route, references)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Agentsite", "version": "1", "description": DESCRIPTION},
        "servers": [{"url": server or "/"}],
        "tags": [{"name": tag} for tag in dict.fromkeys(one.tag for one in routes)],
        "paths": paths,
        "components": {
            "schemas": definitions.get("$defs", {}),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def find_models(
    routes: list[Route],
) -> set[tuple[type[BaseModel], JsonSchemaMode]]:
    """Return every shape with the direction in which it is sent."""
    found: set[tuple[type[BaseModel], JsonSchemaMode]] = {(Problem, "serialization")}
    for route in routes:
        if route.answer is not None:
            found.add((route.answer, "serialization"))
        if route.body is not None:
            found.add((route.body, "validation"))
    return found


def build_route_operation(route: Route, references: References) -> Json:
    operation: Json = {
        "operationId": route.operation_id,
        "summary": route.summary,
        "tags": [route.tag],
        "security": [{"token": [route.needed_scope]}],
        "parameters": [*iter_parameters(route)],
        "responses": build_responses(route, references),
    }
    if doc := (route.do.__doc__ or "").strip():
        operation["description"] = " ".join(doc.split())
    if route.body is not None:
        schema = references[route.body, "validation"]
        is_needed = any(f.is_required() for f in route.body.model_fields.values())
        operation["requestBody"] = {
            "required": is_needed,
            "content": {"application/json": {"schema": schema}},
        }
    return operation


def iter_parameters(route: Route) -> Iterator[Json]:
    """Yield the parameters of the path, the query and the headers."""
    for name in route.parameters:
        schema: Json = {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}
        if name in PARAMETER_PATTERNS:
            schema = {"type": "string", "minLength": 1, "maxLength": 200}
        yield {"name": name, "in": "path", "required": True, "schema": schema}
    if route.query is not None:
        yield from iter_query_parameters(route.query)
    if route.is_idempotent:
        yield build_header(
            "Idempotency-Key",
            "Repeating the request with the same key changes nothing: the response is "
            "what the first one created.",
            maxLength=MAX_KEY_LENGTH,
        )
    if route.has_etag and route.method != "GET":
        yield build_header(
            "If-Match",
            "The `ETag` of what you have read; 412 if it has changed since.",
        )


def build_header(name: str, description: str, **schema: int) -> Json:
    return {
        "name": name,
        "in": "header",
        "description": description,
        "schema": {"type": "string", **schema},
    }


def iter_query_parameters(query: type[BaseModel]) -> Iterator[Json]:
    schema = query.model_json_schema(schema_generator=PlainSchema)
    for name, part in schema.get("properties", {}).items():
        words = part.pop("description", "")
        parameter = {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", []),
            "schema": part,
        }
        yield {**parameter, **({"description": words} if words else {})}


def build_responses(route: Route, references: References) -> Json:
    """Return the responses by status; `default` stands for errors of the server."""
    done: Json = {"description": HTTPStatus(route.status).phrase}
    if route.answer is not None:
        schema = references[route.answer, "serialization"]
        done["content"] = {route.media: {"schema": schema}}
    elif route.status != HTTPStatus.NO_CONTENT:
        # No `type: string`: tools check what YAML and each event of a stream contain.
        done["content"] = {route.media: {"schema": {}}}
    if route.has_etag and route.method != "DELETE":
        done["headers"] = {"ETag": {"schema": {"type": "string"}}}
    responses = {str(route.status): done}
    if route.is_idempotent:
        responses["200"] = {**done, "description": "The key was used before"}
    problem = {PROBLEM_TYPE: {"schema": references[Problem, "serialization"]}}
    for status in sorted(find_problem_statuses(route)):
        responses[str(status)] = {
            "description": HTTPStatus(status).phrase,
            "content": problem,
        }
    responses["default"] = {"description": "Error", "content": problem}
    return responses


def find_problem_statuses(route: Route) -> set[int]:
    """Return the statuses of problems that the route has by what it takes."""
    changes = route.has_etag and route.method != "GET"
    return {
        *(401, 403, *route.errors),
        *((404,) if route.parameters else ()),
        *((400, 413, 422) if route.body is not None else ()),
        *((422,) if route.query is not None else ()),
        *((409,) if route.is_idempotent else ()),
        *((412,) if changes else ()),
    }


def find_field_docstrings(kind: type) -> dict[str, str]:
    """Return the docstrings below the fields of a shape, by the names of the fields.

    Those of the engine's models are for its developers.
    """
    if not kind.__module__.startswith("runs.api."):
        return {}
    return parse_docstrings(kind.__module__).get(kind.__qualname__.split("[")[0], {})


@cache
def parse_docstrings(module: str) -> dict[str, dict[str, str]]:
    """Return the docstrings below annotated names, by class and name."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {
        node.name: {
            field.target.id: inspect.cleandoc(text.value.value)
            for field, text in pairwise(node.body)
            if isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
            and isinstance(text.value.value, str)
        }
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
