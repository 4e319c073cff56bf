"""Documents of Swagger 2.0, read as if they were OpenAPI 3.0.

https://swagger.io/specification/v2/. References such as `#/definitions/Pet` need no
translation, because they are looked up in the document as it is.
"""

from typing import Any

from tools.kinds.http_config import FORM_TYPE
from tools.openapi.document import OpenApiDocument
from tools.openapi.parameters import MAX_PARAMETERS
from tools.openapi.swagger2_document import list_servers

PARAMETER_KEYWORDS = {
    *("name", "in", "required", "description", "collectionFormat"),
    *("allowEmptyValue", "type"),
}
"""Of a parameter; its other keywords are those of a schema."""

COLLECTION_STYLES: dict[str, tuple[str, bool]] = {
    "csv": ("form", False),
    "multi": ("form", True),
    "ssv": ("spaceDelimited", False),
    "pipes": ("pipeDelimited", False),
}
"""Style and `explode` of 3.0; lists with tabs (tsv) have none."""


def upgrade_operation(
    document: OpenApiDocument, item: dict[str, Any], raw: dict[str, Any]
) -> dict[str, Any]:
    """Return the operation as 3.0 has it, with the parameters of its path."""
    others: list[Any] = []
    form: dict[str, dict[str, Any]] = {}
    body: dict[str, Any] | None = None
    for parameter in list_parameters(document, item, raw):
        if parameter.get("in") == "body":
            body = parameter
        elif parameter.get("in") == "formData":
            form[str(parameter.get("name"))] = parameter
        else:
            others.append(upgrade_parameter(parameter))
    upgraded = {**raw, "parameters": others}
    media_types = get_media_types(document, raw)
    if body is not None:
        media = {"schema": body.get("schema")}
        upgraded["requestBody"] = {
            "required": body.get("required") is True,
            "content": dict.fromkeys(media_types or ["application/json"], media),
        }
    elif form:
        upgraded["requestBody"] = build_form_body(form, media_types)
    schemes = raw.get("schemes")
    if isinstance(schemes, list) and schemes:
        upgraded["servers"] = list_servers({**document.body, "schemes": schemes})
    return upgraded


def list_parameters(
    document: OpenApiDocument, item: dict[str, Any], raw: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return the parameters of a path and its operation, which counts more."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for source in (item, raw):
        listed = source.get("parameters")
        for one in listed[: MAX_PARAMETERS + 1] if isinstance(listed, list) else ():
            parameter = document.resolve(one)
            place = str(parameter.get("in"))
            name = "" if place == "body" else str(parameter.get("name"))
            found[name, place] = parameter
    return list(found.values())


def get_media_types(document: OpenApiDocument, raw: dict[str, Any]) -> list[str]:
    listed = raw.get("consumes", document.body.get("consumes"))
    return [str(one) for one in listed] if isinstance(listed, list) else []


def upgrade_parameter(parameter: dict[str, Any]) -> dict[str, Any]:
    """Return a parameter with its type in a schema, and its style."""
    kept: dict[str, Any] = {
        key: parameter[key]
        for key in ("name", "in", "required", "description")
        if key in parameter
    }
    if "type" not in parameter:
        return kept
    return {**kept, "schema": extract_schema(parameter), **find_style(parameter)}


def extract_schema(parameter: dict[str, Any]) -> dict[str, Any]:
    """Return the schema that a parameter or form field is itself."""
    schema = {k: v for k, v in parameter.items() if k not in PARAMETER_KEYWORDS}
    if parameter.get("type") == "file":
        return {**schema, "type": "string", "format": "binary"}
    items = schema.get("items")
    if isinstance(items, dict):
        schema["items"] = {k: v for k, v in items.items() if k != "collectionFormat"}
    return {**schema, "type": parameter.get("type")}


def find_style(parameter: dict[str, Any]) -> dict[str, Any]:
    """Return `style` and `explode` of a list, empty for other types."""
    if parameter.get("type") != "array":
        return {}
    collection = str(parameter.get("collectionFormat") or "csv")
    if collection == "csv" and parameter.get("in") in ("path", "header"):
        return {"style": "simple", "explode": False}
    style, explode = COLLECTION_STYLES.get(collection, (collection, False))
    return {"style": style, "explode": explode}


def build_form_body(
    form: dict[str, dict[str, Any]], media_types: list[str]
) -> dict[str, Any]:
    """Return a form as a request body; with files it is a multipart form."""
    has_file = any(one.get("type") == "file" for one in form.values())
    is_multipart = has_file or (
        "multipart/form-data" in media_types and FORM_TYPE not in media_types
    )
    properties = {
        name: {**extract_schema(one), **get_description(one)}
        for name, one in form.items()
    }
    required = [name for name, one in form.items() if one.get("required") is True]
    media = {
        "schema": {"type": "object", "properties": properties, "required": required},
        "encoding": {name: find_style(one) for name, one in form.items()},
    }
    return {
        "required": bool(required),
        "content": {"multipart/form-data" if is_multipart else FORM_TYPE: media},
    }


def get_description(parameter: dict[str, Any]) -> dict[str, Any]:
    """Return the description as part of a schema, empty if there is none."""
    return {k: v for k, v in parameter.items() if k == "description"}
