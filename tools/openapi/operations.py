"""The operations of an OpenAPI document, each as the definition of an HTTP tool."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from django.utils.translation import gettext as _
from pydantic import ValidationError

from tools.forms.http_tool import METHOD_EFFECTS
from tools.kinds.http_config import HttpConfig
from tools.models import Tool
from tools.openapi.bodies import add_request_body
from tools.openapi.document import (
    MAX_OPERATIONS,
    METHODS,
    ExternalReference,
    OpenApiDocument,
    UnresolvedReference,
)
from tools.openapi.draft import MAX_NAME, OperationDraft, UnsupportedOperation
from tools.openapi.parameters import add_parameters
from tools.openapi.schemas import MAX_ALL_NODES, MAX_DESCRIPTION, MAX_NODES
from tools.openapi.swagger2 import upgrade_operation
from tools.schema.check import find_schema_flaws
from tools.text.storable import is_storable, replace_unstorable
from tools.text.validation_message import strip_value_error

PATH_PARAMETER = re.compile(r"\{([^{}/]+)\}")
MAX_TAGS, MAX_TAG = 5, 60
"""Tags of one operation, and characters of one."""

SERVER_VARIABLE = re.compile(r"\{([^{}/]+)\}")


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
    """Why it cannot become a tool; empty if it can."""
    omitted: list[str] = field(default_factory=list)
    """Inputs of the operation that the tool does not send."""
    tags: tuple[str, ...] = ()
    is_elsewhere: bool = False
    """Whether part of it is in another file."""

    @property
    def effect(self) -> str:
        """The effect that its HTTP method implies."""
        return METHOD_EFFECTS.get(self.key.partition(" ")[0], "side_effect")

    @property
    def approval(self) -> str:
        """Which calls require approval: all that write, even if safe to repeat.

        A repeated DELETE changes nothing more, but the first one deletes.
        """
        is_repeatable_write = self.effect == Tool.Effect.IDEMPOTENT
        return (
            Tool.Approval.ALWAYS if is_repeatable_write else Tool.Approval.SIDE_EFFECTS
        )


def list_operations(
    document: OpenApiDocument, *, base: str = "", keys: Collection[str] | None = None
) -> list[Operation]:
    """Return those in `keys`, or all; `base` is the server if the document names none.

    Names do not depend on `keys`.
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
            operation.flaw = _("the document is large; reduce it to the paths you need")
            continue
        left -= build_operation(operation, place, document=document, base=base)
    return found


class OperationSource(NamedTuple):
    """An operation as the document has it, with its path."""

    path: str
    method: str
    """Empty if the path refers to what is not in the document."""
    item: dict[str, Any]
    raw: dict[str, Any]
    flaw: str = ""
    is_elsewhere: bool = False
    """Whether it is in another file."""


def iter_operation_sources(document: OpenApiDocument) -> Iterator[OperationSource]:
    """Yield all operations, and paths that are not in the document."""
    for path, raw in document.body.get("paths", {}).items():
        try:
            item = document.resolve(raw)
        except UnresolvedReference as flaw:
            is_elsewhere = isinstance(flaw, ExternalReference)
            yield OperationSource(str(path), "", {}, {}, str(flaw), is_elsewhere)
            continue
        for method in METHODS:
            if isinstance(item.get(method), dict):
                yield build_operation_source(document, str(path), method, item)


def build_operation_source(
    document: OpenApiDocument, path: str, method: str, item: dict[str, Any]
) -> OperationSource:
    """Return one operation, with a flaw if it is not in the document."""
    try:
        return OperationSource(path, method, item, document.resolve(item[method]))
    except UnresolvedReference as flaw:
        is_elsewhere = isinstance(flaw, ExternalReference)
        return OperationSource(path, method, item, {}, str(flaw), is_elsewhere)


def start_operation(place: OperationSource, taken: set[str]) -> Operation:
    """Return the operation with a unique name, which is added to `taken`."""
    name = pick_free_name(
        make_operation_name(place.raw, place.method, place.path), taken
    )
    taken.add(name)
    key = replace_unstorable(f"{place.method.upper()} {place.path}".strip())
    return Operation(
        key,
        name,
        make_tool_description(place.raw),
        flaw=replace_unstorable(place.flaw),
        tags=get_tags(place.raw),
        is_elsewhere=place.is_elsewhere,
    )


def get_tags(raw: dict[str, Any]) -> tuple[str, ...]:
    listed = raw.get("tags")
    named = (
        [one for one in listed if isinstance(one, str)]
        if isinstance(listed, list)
        else []
    )
    return tuple(replace_unstorable(one[:MAX_TAG]) for one in named[:MAX_TAGS])


def build_operation(
    operation: Operation,
    place: OperationSource,
    *,
    document: OpenApiDocument,
    base: str,
) -> int:
    """Set config and schema, or the flaw; return the number of schema objects."""
    draft = OperationDraft(document)
    try:
        config, schema = build_request(draft, place, base)
        check_definition(config, schema)
        operation.config, operation.args_schema = config, schema
        operation.omitted = draft.omitted
    except (UnsupportedOperation, UnresolvedReference) as flaw:
        operation.flaw = replace_unstorable(str(flaw))
        operation.is_elsewhere = isinstance(flaw, ExternalReference)
    return MAX_NODES - draft.inliner.left


def build_request(
    draft: OperationDraft, place: OperationSource, base: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return config and schema; raise `UnsupportedOperation` with the reason."""
    item, raw = place.item, place.raw
    if draft.document.is_swagger2:
        item, raw = {}, upgrade_operation(draft.document, item, raw)
    in_path = add_parameters(draft, item, raw)
    add_request_body(draft, raw, place.method)
    path = PATH_PARAMETER.sub(lambda m: in_path.get(m[1], m[0]), place.path)
    server = find_server_url(draft.document, item, raw, base)
    config = {
        "method": place.method.upper(),
        "url": server.rstrip("/") + "/" + path.lstrip("/"),
        **draft.config,
    }
    schema: dict[str, Any] = {"type": "object", "properties": draft.properties}
    if draft.required:
        schema["required"] = list(dict.fromkeys(draft.required))
    return config, schema


def check_definition(config: dict[str, Any], schema: dict[str, Any]) -> None:
    """Raise `UnsupportedOperation` for what the form of the tool would refuse."""
    if flaws := find_schema_flaws(schema):
        raise UnsupportedOperation(flaws[0])
    try:
        found = HttpConfig.model_validate(config)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        raise UnsupportedOperation(strip_value_error(first["msg"])) from None
    if not is_storable(config):
        raise UnsupportedOperation(
            _("it has a character or number that cannot be stored")
        )
    if missing := sorted(found.placeholders - set(schema["properties"])):
        raise UnsupportedOperation(
            _("its path has “%(name)s”, which is not a parameter")
            % {"name": missing[0][:MAX_NAME]}
        )


def make_operation_name(raw: dict[str, Any], method: str, path: str) -> str:
    """Return a tool name: the operation's id, or method and path."""
    named = raw.get("operationId") or f"{method}_{path}"
    return re.sub(r"[^A-Za-z0-9_-]+", "_", str(named)).strip("_")[:64] or method


def pick_free_name(name: str, taken: set[str]) -> str:
    """Return `name`, with a number if it is taken."""
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


def find_server_url(
    document: OpenApiDocument, item: dict[str, Any], raw: dict[str, Any], base: str
) -> str:
    """Return the address of the server, variables filled with their defaults."""
    for source in (raw, item, document.body):
        servers = source.get("servers")
        first = servers[0] if isinstance(servers, list) and servers else None
        if not isinstance(first, dict):
            continue
        if url := resolve_server(fill_server_variables(first), base):
            return url
    if base:
        return base
    raise UnsupportedOperation(_("the document has no server; enter the server URL"))


def resolve_server(address: str, base: str) -> str:
    """Return the URL of a server, empty if it has no host or cannot be parsed."""
    try:
        if base and urlsplit(address).netloc:
            return base  # what a person entered replaces the server of the document
        url = urljoin(base, address) if base else address
        return url if urlsplit(url).scheme in ("http", "https") else ""
    except ValueError:  # such as https://[x
        return ""


def fill_server_variables(server: dict[str, Any]) -> str:
    variables = server.get("variables")
    known = variables if isinstance(variables, dict) else {}

    def default(match: re.Match[str]) -> str:
        one = known.get(match[1])
        return str(one.get("default", "")) if isinstance(one, dict) else match[0]

    return SERVER_VARIABLE.sub(default, str(server.get("url", "")))
