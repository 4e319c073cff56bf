"""Request bodies: JSON, forms, and multipart forms with files."""

from typing import Any

from django.utils.translation import gettext as _

from tools.kinds.http_config import FORM_TYPE
from tools.kinds.placeholders import PLACEHOLDER
from tools.openapi.content import JSON_TYPE, get_media_kinds
from tools.openapi.draft import (
    MAX_NAME,
    OperationDraft,
    UnsupportedOperation,
    describe_schema,
    drop_null_alternative,
    get_form_fields,
)
from tools.openapi.parameters import QUERY_STYLES
from tools.openapi.schemas import MAX_DESCRIPTION

MULTIPART_TYPE = "multipart/form-data"
JSON_PREFERENCE = ("application/json", "application/merge-patch+json")
"""Before other JSON types, such as JSON Patch."""

FILE_PROPERTIES = {
    "filename": {"type": "string"},
    "text": {"type": "string", "description": "The content, if it is text."},
    "base64": {
        "type": "string",
        "description": "The content as Base64, if it is not text.",
    },
}
"""What `tools.kinds.multipart.FilePart` takes."""


def add_request_body(draft: OperationDraft, raw: dict[str, Any], method: str) -> None:
    """Add what the body needs; raise `UnsupportedOperation` if it cannot be sent.

    A call without the body that the document describes would mean something else, so
    this does not depend on whether the document calls it required.
    """
    body = draft.document.resolve(raw.get("requestBody"))
    kinds = get_media_kinds(body.get("content"))
    needed = body.get("required") is True
    if method in ("get", "head"):
        if kinds:
            draft.omit(
                _("a body with the method %(method)s") % {"method": method.upper()},
                needed=needed,
            )
        return
    if not kinds:
        if method in ("post", "put", "patch"):
            draft.config["form"] = {}  # arguments are not sent as a body unasked
        return
    json_kinds = [one for one in kinds if JSON_TYPE.fullmatch(one) or one == "*/*"]
    if json_kinds:
        kind = next((one for one in JSON_PREFERENCE if one in kinds), json_kinds[0])
        add_json_body(draft, kinds[kind], kind=kind, needed=needed)
    elif FORM_TYPE in kinds and not has_files(draft, kinds.get(MULTIPART_TYPE, {})):
        add_form_body(draft, kinds[FORM_TYPE])
    elif MULTIPART_TYPE in kinds:
        add_multipart_body(draft, kinds[MULTIPART_TYPE])
    else:
        raise UnsupportedOperation(
            _("its body is %(types)s, not JSON or a form")
            % {"types": ", ".join(kinds)[:MAX_NAME]}
        )


def add_json_body(
    draft: OperationDraft, media: dict[str, Any], *, kind: str, needed: bool
) -> None:
    """Add an argument for each property, or one for the whole body."""
    if kind not in ("application/json", "*/*"):
        draft.config.setdefault("headers", {})["Content-Type"] = kind
    schema = draft.inliner.inline_schema(media.get("schema"))
    parts = get_simple_properties(schema)
    is_clear = parts is not None and not set(parts) & set(draft.properties)
    if parts is None or not is_clear or not all(map(is_placeholder_name, parts)):
        about = describe_schema(schema, "The JSON body.")
        argument = draft.add_argument("body", about, needed=needed)
        draft.config["json"] = f"{{{argument}}}"
        return
    draft.properties.update(parts)
    draft.required += [name for name in schema.get("required", []) if name in parts]
    draft.config["json"] = {name: f"{{{name}}}" for name in parts}


def add_form_body(draft: OperationDraft, media: dict[str, Any]) -> None:
    form = draft.config["form"] = {}
    fields, required = find_body_fields(draft, media)
    for name, part in fields.items():
        needed = name in required
        encoding = get_field_encoding(media, name)
        style = find_field_style(encoding)
        if style is None:
            what = _("the form field “%(name)s” in the style %(style)s")
            values = {"name": name, "style": encoding.get("style")}
            draft.omit(what % values, needed=needed)
            continue
        argument = draft.add_argument(name, part, needed=needed)
        form[name] = f"{{{argument}}}"
        draft.set_style(name, style)


def find_field_style(encoding: dict[str, Any]) -> str | None:
    """Return the style of a field for `OperationDraft.set_style`, None if unknown."""
    style = str(encoding.get("style") or "form")
    if style not in QUERY_STYLES:
        return None
    is_exploded = encoding.get("explode", style == "form") is True
    return "" if is_exploded and style != "deepObject" else style


def add_multipart_body(draft: OperationDraft, media: dict[str, Any]) -> None:
    """Add an argument for each field and file of a multipart form."""
    parts = draft.config["multipart"] = {}
    fields, required = find_body_fields(draft, media)
    raw_fields = get_raw_fields(draft, media)
    for name, schema in fields.items():
        needed = name in required
        encoding = get_field_encoding(media, name)
        if encoding.get("headers"):
            what = _("the headers of the part “%(name)s”") % {"name": name[:MAX_NAME]}
            draft.omit(what, needed=False)
        if not is_file_field(draft, raw_fields.get(name, schema)):
            argument = draft.add_argument(name, schema, needed=needed)
            parts[name] = f"{{{argument}}}"
            if "style" in encoding:
                draft.set_style(name, find_field_style(encoding) or "")
            continue
        argument = draft.add_argument(name, describe_file(schema), needed=needed)
        file = parts[name] = {"content": f"{{{argument}}}"}
        kind = str(encoding.get("contentType") or "")
        if "/" in kind and not set(kind) & set(",*;"):  # one type, not a choice
            file["content_type"] = kind


def find_body_fields(
    draft: OperationDraft, media: dict[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return the fields of a form and the required ones; raise if none are listed."""
    fields = get_form_fields(draft.inliner.inline_schema(media.get("schema")))
    if fields is None:
        raise UnsupportedOperation(_("the fields of its form are not listed"))
    return fields


def get_raw_fields(draft: OperationDraft, media: dict[str, Any]) -> dict[str, Any]:
    """Return the fields as the document has them: inlining drops `contentEncoding`."""
    found: dict[str, Any] = {}
    todo = [media.get("schema")]
    for _hop in range(20):
        if not todo:
            break
        schema = draft.document.resolve(todo.pop())
        parts = schema.get("allOf")
        todo += parts if isinstance(parts, list) else []
        if isinstance(schema.get("properties"), dict):
            found = {**schema["properties"], **found}
    return found


def has_files(draft: OperationDraft, media: dict[str, Any]) -> bool:
    fields = get_raw_fields(draft, media).values()
    return any(is_file_field(draft, one) for one in fields)


def is_file_field(draft: OperationDraft, schema: Any) -> bool:
    """Whether a field of a multipart form, or each item of it, is a file.

    It is `format: binary` in 3.0, and in 3.1 also a media type without an encoding.
    """
    found = drop_null_alternative(draft.document.resolve(schema))
    if found.get("type") == "array" or "items" in found:
        found = drop_null_alternative(draft.document.resolve(found.get("items")))
    if found.get("format") == "binary":
        return True
    return "contentMediaType" in found and "contentEncoding" not in found


def describe_file(schema: Any) -> dict[str, Any]:
    """Return the schema of a file argument, or of a list of them."""
    found = drop_null_alternative(schema)
    file = {"type": "object", "properties": FILE_PROPERTIES}
    if isinstance(found, dict) and (found.get("type") == "array" or "items" in found):
        file = {"type": "array", "items": file}
    about = found.get("description") if isinstance(found, dict) else None
    return {**file, "description": str(about or "A file.")[:MAX_DESCRIPTION]}


def get_field_encoding(media: dict[str, Any], name: str) -> dict[str, Any]:
    """Return how the document encodes a field, empty if it does not say."""
    encoding = media.get("encoding")
    own = encoding.get(name) if isinstance(encoding, dict) else None
    return own if isinstance(own, dict) else {}


def get_simple_properties(schema: Any) -> dict[str, Any] | None:
    """Return the properties of an object schema, None if it is not that simple."""
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict):
        return None
    if any(key in schema for key in ("allOf", "anyOf", "oneOf", "not", "if")):
        return None
    return schema["properties"] or None


def is_placeholder_name(name: str) -> bool:
    """Whether a property can be a placeholder under its own name."""
    return PLACEHOLDER.fullmatch(f"{{{name}}}") is not None
