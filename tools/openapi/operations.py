"""The operations of an OpenAPI document, each as the definition of an HTTP tool."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from pydantic import ValidationError

from tools.forms.http_tool import EFFECTS
from tools.kinds.http_config import FORM_TYPE, PLACEHOLDER, HttpConfig
from tools.openapi.document import (
    MAX_OPERATIONS,
    METHODS,
    Document,
    InAnotherFile,
)
from tools.openapi.schemas import (
    MAX_ALL_NODES,
    MAX_DESCRIPTION,
    MAX_NODES,
    Inliner,
)
from tools.schema_check import flaws_of_schema
from tools.storable import is_storable, storable

UNUSUAL_STYLES = ("deepObject", "pipeDelimited", "spaceDelimited", "matrix", "label")
"""Ways to write a value that HTTP tools do not have."""

IN_PATH = re.compile(r"\{([^{}/]+)\}")
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
        return EFFECTS.get(self.key.partition(" ")[0], "side_effect")


class CannotImport(Exception):
    """One operation needs something that HTTP tools do not have."""


def operations_of(
    document: Document, *, base: str = "", keys: Collection[str] | None = None
) -> list[Operation]:
    """Return those in `keys`, or all; `base` is the server if the document names none.

    Names are the same whichever are asked for.
    """
    found: list[Operation] = []
    taken: set[str] = set()
    left = MAX_ALL_NODES
    for place in islice(walk(document), MAX_OPERATIONS):
        operation = begun(place, taken)
        if keys is not None and operation.key not in keys:
            continue
        found.append(operation)
        if operation.flaw:
            continue
        if left <= 0:
            operation.flaw = "the document is large; cut it to the paths you need"
            continue
        left -= built(operation, place, document=document, base=base)
    return found


class Place(NamedTuple):
    """Where a document has an operation, and what it says there."""

    path: str
    method: str
    """Empty where the whole path cannot be read."""
    item: dict[str, Any]
    raw: dict[str, Any]
    flaw: str = ""


def walk(document: Document) -> Iterator[Place]:
    """Yield all operations, and paths that are in another file."""
    for path, raw in document.body.get("paths", {}).items():
        try:
            item = document.resolved(raw)
        except InAnotherFile as flaw:
            yield Place(str(path), "", {}, {}, str(flaw))
            continue
        for method in METHODS:
            if isinstance(item.get(method), dict):
                yield place_of(document, str(path), method, item)


def place_of(document: Document, path: str, method: str, item: dict[str, Any]) -> Place:
    """Return one operation; some documents that are many files refer to it."""
    try:
        return Place(path, method, item, document.resolved(item[method]))
    except InAnotherFile as flaw:
        return Place(path, method, item, {}, str(flaw))


def begun(place: Place, taken: set[str]) -> Operation:
    """Return the operation with a name that is not among `taken`, which gets it."""
    name = free_name(name_of(place.raw, place.method, place.path), taken)
    taken.add(name)
    key = storable(f"{place.method.upper()} {place.path}".strip())
    return Operation(key, name, description_of(place.raw), flaw=storable(place.flaw))


def built(operation: Operation, place: Place, *, document: Document, base: str) -> int:
    """Fill in config and schema, or the flaw; return how many schemas that took."""
    builder = Builder(document, operation)
    try:
        builder.build(place.path, place.method, place.item, place.raw, base)
    except (CannotImport, InAnotherFile) as flaw:
        operation.flaw = storable(str(flaw))
    return MAX_NODES - builder.inliner.left


def name_of(raw: dict[str, Any], method: str, path: str) -> str:
    """Return a tool name: the operation's id, or method and path."""
    named = raw.get("operationId") or f"{method}_{path}"
    return re.sub(r"[^A-Za-z0-9_-]+", "_", str(named)).strip("_")[:64] or method


def free_name(name: str, taken: set[str]) -> str:
    """Return `name`, numbered where it is taken."""
    number, free = 2, name
    while free in taken:
        free = f"{name[:60]}_{number}"
        number += 1
    return free


def description_of(raw: dict[str, Any]) -> str:
    """Return summary and description, without control characters."""
    parts = [str(raw.get(key) or "").strip() for key in ("summary", "description")]
    text = "\n\n".join(dict.fromkeys(filter(None, parts)))
    return "".join(c for c in text if c.isprintable() or c == "\n")[
        :MAX_DESCRIPTION
    ].strip()


class Builder:
    """Fills in one operation."""

    def __init__(self, document: Document, operation: Operation) -> None:
        self.document = document
        self.operation = operation
        self.inliner = Inliner(document)
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
        renamed = self.parameters(item, raw)
        self.body(raw, method)
        address = IN_PATH.sub(lambda m: f"{{{renamed.get(m[1], m[1])}}}", path)
        server = server_of(self.document, item, raw, base)
        self.config = {
            "method": method.upper(),
            "url": server.rstrip("/") + "/" + address.lstrip("/"),
            **self.config,
        }
        schema: dict[str, Any] = {"type": "object", "properties": self.properties}
        if self.required:
            schema["required"] = list(dict.fromkeys(self.required))
        self.check(schema)
        self.operation.config, self.operation.args_schema = self.config, schema

    def check(self, schema: dict[str, Any]) -> None:
        """Refuse what the tool's own form would refuse."""
        if flaws := flaws_of_schema(schema):
            raise CannotImport(flaws[0])
        try:
            config = HttpConfig.model_validate(self.config)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            raise CannotImport(first["msg"].removeprefix("Value error, ")) from None
        if not is_storable(self.config):
            raise CannotImport("it has a character or number that cannot be stored")
        if missing := config.placeholders - set(self.properties):
            raise CannotImport(f"its path needs {sorted(missing)[0]!r}, undeclared")

    def parameters(self, item: dict[str, Any], raw: dict[str, Any]) -> dict[str, str]:
        """Add path, query and header parameters; return their argument names."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for source in (item, raw):
            listed = source.get("parameters")
            for one in listed if isinstance(listed, list) else []:
                parameter = self.document.resolved(one)
                name, place = parameter.get("name"), parameter.get("in")
                if isinstance(name, str) and isinstance(place, str):
                    found[name, place] = parameter
        renamed = {}
        for (name, place), parameter in found.items():
            argument = self.parameter(name, place, parameter)
            if place == "path" and argument:
                renamed[name] = argument
        return renamed

    def parameter(self, name: str, place: str, parameter: dict[str, Any]) -> str:
        """Add one parameter; return its argument name, empty where it is left out."""
        needed = parameter.get("required") is True or place == "path"
        if place == "cookie" or name.lower() in ("authorization", "content-type"):
            if needed and place == "cookie":
                raise CannotImport(f"it needs the cookie {name!r}")
            return ""
        if place == "header" and name.lower() == "accept":
            return ""
        if parameter.get("style") in UNUSUAL_STYLES:
            if needed:
                raise CannotImport(
                    f"its parameter {name!r} is written as {parameter['style']}"
                )
            return ""
        argument = self.argument(name, parameter, needed=needed)
        if place in ("query", "header"):
            part = "query" if place == "query" else "headers"
            self.config.setdefault(part, {})[name] = f"{{{argument}}}"
        if place == "query" and parameter.get("explode") is False:
            self.config.setdefault("joined", []).append(name)
        return argument

    def argument(self, name: str, parameter: dict[str, Any], *, needed: bool) -> str:
        """Add an argument of the tool and return its name."""
        argument = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "value"
        if argument[0].isdigit():
            argument = f"_{argument}"
        while argument in self.properties:
            argument += "_"
        schema = parameter.get("schema")
        if schema is None:  # described by a media type
            schema = first_schema(parameter.get("content"))
        inlined = self.inliner.schema(schema)
        part = inlined if isinstance(inlined, dict) else {}
        if isinstance(parameter.get("description"), str):
            part = {**part, "description": parameter["description"][:MAX_DESCRIPTION]}
        self.properties[argument] = part
        if needed:
            self.required.append(argument)
        return argument

    def body(self, raw: dict[str, Any], method: str) -> None:
        """Add what the request body needs."""
        body = self.document.resolved(raw.get("requestBody"))
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
                return self.json_body(media, is_needed=is_needed)
        if FORM_TYPE in kinds:
            return self.form_body(kinds[FORM_TYPE])
        if is_needed:
            raise CannotImport(
                f"its body is {', '.join(kinds)[:100]}, not JSON or a form"
            )
        self.config["form"] = {}

    def json_body(self, media: Any, *, is_needed: bool) -> None:
        """Make an argument of each property, or one of the whole body."""
        schema = self.inliner.schema(
            media.get("schema") if isinstance(media, dict) else {}
        )
        parts = plain_properties(schema)
        clash = parts is None or set(parts) & set(self.properties)
        if parts is None or clash or not all(is_plain_name(name) for name in parts):
            argument = self.argument(
                "body", {"schema": schema, "description": "The JSON body."},
                needed=is_needed,
            )  # fmt: skip
            self.config["json"] = f"{{{argument}}}"
            return
        self.properties.update(parts)
        self.required += [name for name in schema.get("required", []) if name in parts]
        self.config["json"] = {name: f"{{{name}}}" for name in parts}

    def form_body(self, media: Any) -> None:
        """Make an argument of each field that a form can hold as it is asked for."""
        given = media if isinstance(media, dict) else {}
        schema = self.inliner.schema(given.get("schema", {}))
        needed = schema.get("required", []) if isinstance(schema, dict) else []
        form = self.config["form"] = {}
        for name, part in (plain_properties(schema) or {}).items():
            if style := unusual_style(given.get("encoding"), name):
                if name in needed:
                    raise CannotImport(f"its field {name!r} is written as {style}")
                continue
            argument = self.argument(name, {"schema": part}, needed=name in needed)
            form[name] = f"{{{argument}}}"


def unusual_style(encoding: Any, name: str) -> str:
    """Return how a field is to be written, where HTTP tools cannot; else nothing."""
    own = encoding.get(name) if isinstance(encoding, dict) else None
    style = own.get("style") if isinstance(own, dict) else None
    return str(style) if style in UNUSUAL_STYLES else ""


def plain_properties(schema: Any) -> dict[str, Any] | None:
    """Return the properties of an object schema, None where it is not that simple."""
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict):
        return None
    if any(key in schema for key in ("allOf", "anyOf", "oneOf", "not", "if")):
        return None
    return schema["properties"] or None


def is_plain_name(name: str) -> bool:
    """Whether a property can be a placeholder under its own name."""
    return PLACEHOLDER.fullmatch(f"{{{name}}}") is not None


def first_schema(content: Any) -> Any:
    """Return the schema of the first media type."""
    if isinstance(content, dict):
        for media in content.values():
            if isinstance(media, dict):
                return media.get("schema")
    return None


def server_of(
    document: Document, item: dict[str, Any], raw: dict[str, Any], base: str
) -> str:
    """Return the address of the server, variables filled with their defaults."""
    for source in (raw, item, document.body):
        servers = source.get("servers")
        if isinstance(servers, list) and servers and isinstance(servers[0], dict):
            address = with_defaults(servers[0])
            if base and urlsplit(address).netloc:
                return base  # what a person typed counts before the document
            whole = urljoin(base, address) if base else address
            if urlsplit(whole).scheme in ("http", "https"):
                return whole
    if base:
        return base
    raise CannotImport("the document names no server; type in its address")


def with_defaults(server: dict[str, Any]) -> str:
    """Return a server's address with the defaults of its variables."""
    variables = server.get("variables")
    known = variables if isinstance(variables, dict) else {}

    def default(match: re.Match[str]) -> str:
        one = known.get(match[1])
        return str(one.get("default", "")) if isinstance(one, dict) else match[0]

    return IN_PATH.sub(default, str(server.get("url", "")))
