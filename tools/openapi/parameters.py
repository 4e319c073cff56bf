"""Parameters of an operation in the path, query and headers."""

from typing import Any

from django.utils.translation import gettext as _

from tools.net.reserved_headers import is_reserved_header
from tools.openapi.content import JSON_TYPE, get_media_kinds
from tools.openapi.document import MissingReference
from tools.openapi.draft import (
    MAX_NAME,
    OperationDraft,
    UnsupportedOperation,
    describe_schema,
    drop_null_alternative,
    get_form_fields,
    get_schema_types,
)

IGNORED_HEADERS = ("accept", "content-type", "authorization")
"""OpenAPI says that tools ignore these; a credential sends the last."""

MAX_PARAMETERS = 500
"""Of one operation."""

QUERY_STYLES = ("form", "spaceDelimited", "pipeDelimited", "deepObject")


def add_parameters(
    draft: OperationDraft, item: dict[str, Any], raw: dict[str, Any]
) -> dict[str, str]:
    """Add all parameters; return what stands for each of them in the path."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for source in (item, raw):
        listed = source.get("parameters")
        if isinstance(listed, list) and len(listed) > MAX_PARAMETERS:
            raise UnsupportedOperation(
                _("it has more than %(count)d parameters") % {"count": MAX_PARAMETERS}
            )
        for one in listed if isinstance(listed, list) else []:
            if parameter := find_parameter(draft, one):
                found[parameter["name"], parameter["in"]] = parameter
    in_path = {}
    for (name, place), parameter in found.items():
        needed = parameter.get("required") is True
        if place == "path":
            in_path[name] = add_path_parameter(draft, name, parameter)
        elif place == "query":
            add_query_argument(draft, name, parameter, needed=needed)
        elif place == "header":
            add_header(draft, name, parameter, needed=needed)
        else:
            what = _("the cookie “%(name)s”") if place == "cookie" else _("“%(name)s”")
            draft.omit(what % {"name": name[:MAX_NAME]}, needed=needed)
    return in_path


def find_parameter(draft: OperationDraft, raw: Any) -> dict[str, Any] | None:
    """Return a parameter with its name and place; one that has none is left out."""
    try:
        parameter = draft.document.resolve(raw)
    except MissingReference as missing:
        what = _("the parameter “%(reference)s”, which is not in the document")
        reference = missing.reference[:MAX_NAME]
        draft.omit(what % {"reference": reference}, needed=False)
        return None
    if all(isinstance(parameter.get(key), str) for key in ("name", "in")):
        return parameter
    if not is_ignored(raw):
        draft.omit(_("a parameter that is not defined"), needed=False)
    return None


def is_ignored(parameter: Any) -> bool:
    """Whether nothing is lost with what is not a parameter at all."""
    return not isinstance(parameter, dict) or not parameter


def get_parameter_schema(
    draft: OperationDraft, parameter: dict[str, Any]
) -> tuple[dict[str, Any], bool]:
    """Return the schema with its description, and whether the value is sent as JSON."""
    schema, is_json = parameter.get("schema"), False
    if schema is None:  # described by a media type
        for kind, media in get_media_kinds(parameter.get("content")).items():
            schema = media.get("schema")
            is_json = JSON_TYPE.fullmatch(kind) is not None
            break
    inlined = draft.inliner.inline_schema(schema)
    return describe_schema(inlined, parameter.get("description")), is_json


def add_path_parameter(
    draft: OperationDraft, name: str, parameter: dict[str, Any]
) -> str:
    """Add a parameter of the path; return the text that takes its place."""
    schema, is_json = get_parameter_schema(draft, parameter)
    style = str(parameter.get("style") or "simple")
    types = get_schema_types(schema)
    is_exploded_list = parameter.get("explode") is True and "array" in types
    if (
        style not in ("simple", "label", "matrix")
        or ("object" in types and not is_json)
        or (style != "simple" and is_exploded_list)
    ):
        what = _("the path parameter “%(name)s” in the style %(style)s")
        values = {"name": name[:MAX_NAME], "style": style[:MAX_NAME]}
        draft.omit(what % values, needed=True)
    argument = draft.add_argument(name, schema, needed=True)
    before = {"label": ".", "matrix": f";{name}="}.get(style, "")
    return f"{before}{{{argument}}}"


def add_header(
    draft: OperationDraft, name: str, parameter: dict[str, Any], *, needed: bool
) -> None:
    """Add a header, unless it belongs to the connection or to the credential."""
    if name.lower() in IGNORED_HEADERS:
        return
    schema, is_json = get_parameter_schema(draft, parameter)
    is_object = "object" in get_schema_types(schema) and not is_json
    is_styled = parameter.get("style", "simple") != "simple"
    if is_reserved_header(name) or is_object or is_styled:
        what = _("the header “%(name)s”") % {"name": name[:MAX_NAME]}
        draft.omit(what, needed=needed)
        return
    argument = draft.add_argument(name, schema, needed=needed)
    draft.config.setdefault("headers", {})[name] = f"{{{argument}}}"


def add_query_argument(
    draft: OperationDraft, name: str, parameter: dict[str, Any], *, needed: bool
) -> None:
    """Add a query parameter in its style; an exploded object is one per property."""
    schema, is_json = get_parameter_schema(draft, parameter)
    style = str(parameter.get("style") or "form")
    is_exploded = parameter.get("explode", style == "form") is True
    is_object = "object" in get_schema_types(schema)
    if is_json:
        style = "json"
    elif style not in QUERY_STYLES or (
        is_object and is_exploded and style.endswith("Delimited")
    ):
        what = _("the query parameter “%(name)s” in the style %(style)s")
        values = {"name": name[:MAX_NAME], "style": style[:MAX_NAME]}
        draft.omit(what % values, needed=needed)
        return
    elif is_object and is_exploded and style == "form":
        add_exploded_object(draft, name, schema, needed=needed)
        return
    elif is_exploded and style != "deepObject":
        style = ""  # repeated
    argument = draft.add_argument(name, schema, needed=needed)
    draft.config.setdefault("query", {})[name] = f"{{{argument}}}"
    draft.set_style(name, style)


def add_exploded_object(
    draft: OperationDraft, name: str, schema: dict[str, Any], *, needed: bool
) -> None:
    """Add a query parameter for each property of an object."""
    fields = get_form_fields(drop_null_alternative(schema))
    query = draft.config.setdefault("query", {})
    if fields is None or set(fields[0]) & set(query):
        what = _("the query parameter “%(name)s”, an object of any properties")
        draft.omit(what % {"name": name[:MAX_NAME]}, needed=needed)
        return
    for key, part in fields[0].items():
        argument = draft.add_argument(key, part, needed=needed and key in fields[1])
        query[key] = f"{{{argument}}}"
