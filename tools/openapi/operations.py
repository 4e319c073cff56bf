"""The operations of an OpenAPI document, each as the definition of an HTTP tool."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from pydantic import ValidationError

from tools.forms.http_tool import METHOD_EFFECTS
from tools.kinds.http_config import FORM_TYPE, HttpConfig
from tools.kinds.placeholders import PLACEHOLDER
from tools.models import Tool
from tools.openapi.document import (
    MAX_OPERATIONS,
    METHODS,
    ExternalReference,
    OpenApiDocument,
)
from tools.openapi.schemas import (
    MAX_ALL_NODES,
    MAX_DESCRIPTION,
    MAX_NODES,
    ReferenceInliner,
)
from tools.schema.check import find_schema_flaws
from tools.text.storable import is_storable, replace_unstorable

UNUSUAL_STYLES = ("deepObject", "pipeDelimited", "spaceDelimited", "matrix", "label")
"""Ways to write a value that HTTP tools do not have."""

PATH_PARAMETER = re.compile(r"\{([^{}/]+)\}")
JSON_TYPE = re.compile(r"application/([\w.+-]*\+)?json")


@dataclass
class Operation:
    """One operation, ready to be a tool, or with the reason why it cannot be."""

    key: str
    """Method and path."""
    name: str
    description: str
    config: dict[str, Any] = field(default_factory=dict)
    args_schema: dict[str, Any] = field(default_factory=dict)
    flaw: str = ""
    """Why no tool can be made of it; empty for most."""

    @property
    def effect(self) -> str:
        """What its method promises."""
        return METHOD_EFFECTS.get(self.key.partition(" ")[0], "side_effect")

    @property
    def approval(self) -> str:
        """Which calls a person approves: all that write, though some can be repeated.

        A repeated DELETE changes nothing more, but the first one deletes.
        """
        is_repeatable_write = self.effect == Tool.Effect.IDEMPOTENT
        return (
            Tool.Approval.ALWAYS if is_repeatable_write else Tool.Approval.SIDE_EFFECTS
        )


class UnsupportedOperation(Exception):
    """One operation needs something that HTTP tools do not have."""


def list_operations(
    document: OpenApiDocument, *, base: str = "", keys: Collection[str] | None = None
) -> list[Operation]:
    """Return those in `keys`, or all; `base` is the server if the document names none.

    Names are the same whichever are asked for.
    """
    found: list[Operation] = []
    taken: set[str] = set()
    left = MAX_ALL_NODES
    for place in islice(iter_operation_sources(document), MAX_OPERATIONS):
        operation = start_operation(place, taken)
        if keys is not None and operation.key not in keys:
            continue
        found.append(operation)
        if operation.flaw:
            continue
        if left <= 0:
            operation.flaw = "the document is large; cut it to the paths you need"
            continue
        left -= build_operation(operation, place, document=document, base=base)
    return found


class OperationSource(NamedTuple):
    """Where a document has an operation, and what it says there."""

    path: str
    method: str
    """Empty where the whole path cannot be read."""
    item: dict[str, Any]
    raw: dict[str, Any]
    flaw: str = ""


def iter_operation_sources(document: OpenApiDocument) -> Iterator[OperationSource]:
    """Yield all operations, and paths that are in another file."""
    for path, raw in document.body.get("paths", {}).items():
        try:
            item = document.resolve(raw)
        except ExternalReference as flaw:
            yield OperationSource(str(path), "", {}, {}, str(flaw))
            continue
        for method in METHODS:
            if isinstance(item.get(method), dict):
                yield build_operation_source(document, str(path), method, item)


def build_operation_source(
    document: OpenApiDocument, path: str, method: str, item: dict[str, Any]
) -> OperationSource:
    """Return one operation; some documents that are many files refer to it."""
    try:
        return OperationSource(path, method, item, document.resolve(item[method]))
    except ExternalReference as flaw:
        return OperationSource(path, method, item, {}, str(flaw))


def start_operation(place: OperationSource, taken: set[str]) -> Operation:
    """Return the operation with a name that is not among `taken`, which gets it."""
    name = pick_free_name(make_tool_name(place.raw, place.method, place.path), taken)
    taken.add(name)
    key = replace_unstorable(f"{place.method.upper()} {place.path}".strip())
    return Operation(
        key, name, make_tool_description(place.raw), flaw=replace_unstorable(place.flaw)
    )


def build_operation(
    operation: Operation,
    place: OperationSource,
    *,
    document: OpenApiDocument,
    base: str,
) -> int:
    """Fill in config and schema, or the flaw; return how many schemas that took."""
    builder = OperationBuilder(document, operation)
    try:
        builder.build(place.path, place.method, place.item, place.raw, base)
    except (UnsupportedOperation, ExternalReference) as flaw:
        operation.flaw = replace_unstorable(str(flaw))
    return MAX_NODES - builder.inliner.left


def make_tool_name(raw: dict[str, Any], method: str, path: str) -> str:
    """Return a tool name: the operation's id, or method and path."""
    named = raw.get("operationId") or f"{method}_{path}"
    return re.sub(r"[^A-Za-z0-9_-]+", "_", str(named)).strip("_")[:64] or method


def pick_free_name(name: str, taken: set[str]) -> str:
    """Return `name`, numbered where it is taken."""
    number, free = 2, name
    while free in taken:
        free = f"{name[:60]}_{number}"
        number += 1
    return free


def make_tool_description(raw: dict[str, Any]) -> str:
    """Return summary and description, without control characters."""
    parts = [str(raw.get(key) or "").strip() for key in ("summary", "description")]
    text = "\n\n".join(dict.fromkeys(filter(None, parts)))
    return "".join(c for c in text if c.isprintable() or c == "\n")[
        :MAX_DESCRIPTION
    ].strip()


class OperationBuilder:
    """Fills in one operation."""

    def __init__(self, document: OpenApiDocument, operation: Operation) -> None:
        self.document = document
        self.operation = operation
        self.inliner = ReferenceInliner(document)
        self.properties: dict[str, Any] = {}
        self.required: list[str] = []
        self.config: dict[str, Any] = {}

    def build(
        self,
        path: str,
        method: str,
        item: dict[str, Any],
        raw: dict[str, Any],
        base: str,
    ) -> None:
        """Set config and schema; raise `CannotImport` with the reason."""
        renamed = self.add_parameters(item, raw)
        self.add_body(raw, method)
        address = PATH_PARAMETER.sub(lambda m: f"{{{renamed.get(m[1], m[1])}}}", path)
        server = find_server_url(self.document, item, raw, base)
        self.config = {
            "method": method.upper(),
            "url": server.rstrip("/") + "/" + address.lstrip("/"),
            **self.config,
        }
        schema: dict[str, Any] = {"type": "object", "properties": self.properties}
        if self.required:
            schema["required"] = list(dict.fromkeys(self.required))
        self.check_schema(schema)
        self.operation.config, self.operation.args_schema = self.config, schema

    def check_schema(self, schema: dict[str, Any]) -> None:
        """Refuse what the tool's own form would refuse."""
        if flaws := find_schema_flaws(schema):
            raise UnsupportedOperation(flaws[0])
        try:
            config = HttpConfig.model_validate(self.config)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            raise UnsupportedOperation(
                first["msg"].removeprefix("Value error, ")
            ) from None
        if not is_storable(self.config):
            raise UnsupportedOperation(
                "it has a character or number that cannot be stored"
            )
        if missing := config.placeholders - set(self.properties):
            raise UnsupportedOperation(
                f"its path needs {sorted(missing)[0]!r}, undeclared"
            )

    def add_parameters(
        self, item: dict[str, Any], raw: dict[str, Any]
    ) -> dict[str, str]:
        """Add path, query and header parameters; return their argument names."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for source in (item, raw):
            listed = source.get("parameters")
            for one in listed if isinstance(listed, list) else []:
                parameter = self.document.resolve(one)
                name, place = parameter.get("name"), parameter.get("in")
                if isinstance(name, str) and isinstance(place, str):
                    found[name, place] = parameter
        renamed = {}
        for (name, place), parameter in found.items():
            argument = self.add_parameter(name, place, parameter)
            if place == "path" and argument:
                renamed[name] = argument
        return renamed

    def add_parameter(self, name: str, place: str, parameter: dict[str, Any]) -> str:
        """Add one parameter; return its argument name, empty where it is left out."""
        needed = parameter.get("required") is True or place == "path"
        if place == "cookie" or name.lower() in ("authorization", "content-type"):
            if needed and place == "cookie":
                raise UnsupportedOperation(f"it needs the cookie {name!r}")
            return ""
        if place == "header" and name.lower() == "accept":
            return ""
        if parameter.get("style") in UNUSUAL_STYLES:
            if needed:
                raise UnsupportedOperation(
                    f"its parameter {name!r} is written as {parameter['style']}"
                )
            return ""
        argument = self.add_argument(name, parameter, needed=needed)
        if place in ("query", "header"):
            part = "query" if place == "query" else "headers"
            self.config.setdefault(part, {})[name] = f"{{{argument}}}"
        if place == "query" and parameter.get("explode") is False:
            self.config.setdefault("joined", []).append(name)
        return argument

    def add_argument(
        self, name: str, parameter: dict[str, Any], *, needed: bool
    ) -> str:
        """Add an argument of the tool and return its name."""
        argument = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "value"
        if argument[0].isdigit():
            argument = f"_{argument}"
        while argument in self.properties:
            argument += "_"
        schema = parameter.get("schema")
        if schema is None:  # described by a media type
            schema = get_first_schema(parameter.get("content"))
        inlined = self.inliner.inline_schema(schema)
        part = inlined if isinstance(inlined, dict) else {}
        if isinstance(parameter.get("description"), str):
            part = {**part, "description": parameter["description"][:MAX_DESCRIPTION]}
        self.properties[argument] = part
        if needed:
            self.required.append(argument)
        return argument

    def add_body(self, raw: dict[str, Any], method: str) -> None:
        """Add what the request body needs."""
        body = self.document.resolve(raw.get("requestBody"))
        content = body.get("content")
        if not isinstance(content, dict) or not content or method in ("get", "head"):
            if method in ("post", "put", "patch"):
                self.config["form"] = {}  # arguments are not sent as a body unasked
            return
        kinds = {
            str(kind).partition(";")[0].strip(): one for kind, one in content.items()
        }
        is_needed = body.get("required") is True
        for kind, media in kinds.items():
            if JSON_TYPE.fullmatch(kind) or kind == "*/*":
                return self.add_json_body(media, is_needed=is_needed)
        if FORM_TYPE in kinds:
            return self.add_form_body(kinds[FORM_TYPE])
        if is_needed:
            raise UnsupportedOperation(
                f"its body is {', '.join(kinds)[:100]}, not JSON or a form"
            )
        self.config["form"] = {}

    def add_json_body(self, media: Any, *, is_needed: bool) -> None:
        """Make an argument of each property, or one of the whole body."""
        schema = self.inliner.inline_schema(
            media.get("schema") if isinstance(media, dict) else {}
        )
        parts = get_simple_properties(schema)
        clash = parts is None or set(parts) & set(self.properties)
        if (
            parts is None
            or clash
            or not all(is_placeholder_name(name) for name in parts)
        ):
            argument = self.add_argument(
                "body", {"schema": schema, "description": "The JSON body."},
                needed=is_needed,
            )  # fmt: skip
            self.config["json"] = f"{{{argument}}}"
            return
        self.properties.update(parts)
        self.required += [name for name in schema.get("required", []) if name in parts]
        self.config["json"] = {name: f"{{{name}}}" for name in parts}

    def add_form_body(self, media: Any) -> None:
        """Make an argument of each field that a form can hold as it is asked for."""
        given = media if isinstance(media, dict) else {}
        schema = self.inliner.inline_schema(given.get("schema", {}))
        needed = schema.get("required", []) if isinstance(schema, dict) else []
        form = self.config["form"] = {}
        for name, part in (get_simple_properties(schema) or {}).items():
            if style := find_unusual_style(given.get("encoding"), name):
                if name in needed:
                    raise UnsupportedOperation(
                        f"its field {name!r} is written as {style}"
                    )
                continue
            argument = self.add_argument(name, {"schema": part}, needed=name in needed)
            form[name] = f"{{{argument}}}"


def find_unusual_style(encoding: Any, name: str) -> str:
    """Return how a field is to be written, where HTTP tools cannot; else nothing."""
    own = encoding.get(name) if isinstance(encoding, dict) else None
    style = own.get("style") if isinstance(own, dict) else None
    return str(style) if style in UNUSUAL_STYLES else ""


def get_simple_properties(schema: Any) -> dict[str, Any] | None:
    """Return the properties of an object schema, None where it is not that simple."""
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict):
        return None
    if any(key in schema for key in ("allOf", "anyOf", "oneOf", "not", "if")):
        return None
    return schema["properties"] or None


def is_placeholder_name(name: str) -> bool:
    """Whether a property can be a placeholder under its own name."""
    return PLACEHOLDER.fullmatch(f"{{{name}}}") is not None


def get_first_schema(content: Any) -> Any:
    """Return the schema of the first media type."""
    if isinstance(content, dict):
        for media in content.values():
            if isinstance(media, dict):
                return media.get("schema")
    return None


def find_server_url(
    document: OpenApiDocument, item: dict[str, Any], raw: dict[str, Any], base: str
) -> str:
    """Return the address of the server, variables filled with their defaults."""
    for source in (raw, item, document.body):
        servers = source.get("servers")
        if isinstance(servers, list) and servers and isinstance(servers[0], dict):
            address = fill_server_variables(servers[0])
            if base and urlsplit(address).netloc:
                return base  # what a person typed counts before the document
            whole = urljoin(base, address) if base else address
            if urlsplit(whole).scheme in ("http", "https"):
                return whole
    if base:
        return base
    raise UnsupportedOperation("the document names no server; type in its address")


def fill_server_variables(server: dict[str, Any]) -> str:
    """Return a server's address with the defaults of its variables."""
    variables = server.get("variables")
    known = variables if isinstance(variables, dict) else {}

    def default(match: re.Match[str]) -> str:
        one = known.get(match[1])
        return str(one.get("default", "")) if isinstance(one, dict) else match[0]

    return PATH_PARAMETER.sub(default, str(server.get("url", "")))
