"""Changing the definition of a tool through the API, checked as on its page."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from pydantic import Field

from runs.api.definitions.common import SharingBody, share_definition
from runs.api.problems import ApiProblem, field_problem
from runs.services.agentfile.checks import find_call_errors
from runs.services.agentfile.literal_secrets import find_removed_secrets
from runs.services.errors import FieldError
from tools.credentials import binding_matches, find_usable_hosts, format_origin
from tools.forms.fields import HOST_PATTERN
from tools.forms.function_tool import HOST_LIMIT_UNSUPPORTED, SECRET_UNSUPPORTED
from tools.models import Credential, Tool
from tools.registry import supports_host_limit
from tools.text.storable import is_storable

LINKED_FIELDS = ("credential", "hosts", "mcp_server")
"""Keys of a frozen configuration that are fields of the tool beside it."""
PLAIN_FIELDS = (
    *("name", "description", "effect", "approval", "second_person", "approval_hours"),
    *("at_expiry", "args_schema", "config", "return_direct", "on_error", "timeout"),
    *("retries", "calls_per_run", "output_limit", "enabled"),
)
CALL_FIELDS = ("config", "args_schema", "hosts", "credential")
SERVER_FIELDS = ("config", "args_schema", "credential")
"""Of an MCP tool, these come from its server."""
HostName = Annotated[str, Field(min_length=1, max_length=300)]


class ToolChange(SharingBody):
    """What can be changed of a tool; what is left out stays."""

    name: Annotated[str, Field(min_length=1, max_length=64)] = ""
    description: Annotated[str, Field(max_length=20_000)] = ""
    effect: Literal["read", "idempotent", "side_effect"] = "side_effect"
    approval: Literal["never", "side_effects", "always"] = "side_effects"
    approvers: Annotated[str, Field(max_length=150)] | None = None
    """Name of the group whose members approve; null for the person who started it."""
    second_person: bool = False
    """Nobody approves calls of their own runs."""
    approval_hours: Annotated[float, Field(ge=0.01, le=8760)] | None = None
    """Null for the default of the site."""
    at_expiry: Literal["", "reject", "stop"] = ""
    args_schema: dict[str, Any] | None = None
    """JSON Schema of the arguments; null for a tool that takes one text."""
    config: dict[str, Any] = {}
    """All of it: it is replaced as a whole."""
    return_direct: bool = False
    on_error: Literal["feed_back", "end"] = "feed_back"
    timeout: Annotated[float, Field(ge=0.1, le=3600)] = 60.0
    retries: Annotated[int, Field(ge=0, le=5)] = 0
    calls_per_run: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    output_limit: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    hosts: Annotated[list[HostName], Field(max_length=100)] = []
    """Hosts that a call can reach; empty for all public ones."""
    credential: Annotated[str, Field(max_length=80)] | None = None
    """Slug of a credential that you can use."""


class ToolBody(ToolChange):
    """The body of `PATCH /api/v1/tools/{id}`."""

    enabled: bool = False
    note: Annotated[str, Field(max_length=200)] = ""
    """Stored with the revision."""


def apply_tool_change(tool: Tool, body: ToolChange, user: User) -> None:
    """Set what the body has, and check it; raise a 422. The tool is not saved.

    How the tool is called is checked as a whole, but only if that changes: a tool that
    is broken already can be disabled.
    """
    sent = body.model_fields_set
    if tool.kind == "mcp" and (fixed := sent.intersection(SERVER_FIELDS)):
        message = "This comes from the MCP server of the tool."
        raise field_problem(min(fixed), message)
    for name in sent.intersection(PLAIN_FIELDS):
        setattr(tool, name, getattr(body, name))
    if "config" in sent:
        set_config(tool, body.config)
    if "hosts" in sent:
        tool.hosts = [host.lower() for host in body.hosts]
    if "credential" in sent:
        tool.credential = find_usable_credential(body.credential, user)
    if "approvers" in sent:
        tool.approvers = find_approvers(body.approvers)
    share_definition(tool, body)
    found = [*iter_field_flaws(tool, sent)]
    if sent.intersection(CALL_FIELDS):
        found += iter_tool_flaws(tool, body)
    if found:
        raise ApiProblem(422, found)


def set_config(tool: Tool, config: dict[str, Any]) -> None:
    """Set the configuration; the tables of a free query are not part of the body."""
    stored = Tool.objects.filter(pk=tool.pk).values_list("config", flat=True).first()
    tool.config = dict(config)
    if tool.kind != "sql" or config.get("query") or "tables" in config:
        return
    if not stored or stored.get("connection") != config.get("connection"):
        message = "Enter a `query`. Tools with free queries are saved on their page."
        raise field_problem("config.query", message)
    tool.config["tables"] = stored.get("tables", "")


def find_usable_credential(slug: str | None, user: User) -> Credential | None:
    """Return the credential; raise a 422 for those that `user` may not use."""
    if slug is None:
        return None
    found: Any = Credential.objects.usable_by(user)
    row: Credential | None = found.filter(slug=slug).first()
    if row is None:
        raise field_problem("credential", f"Credential {slug!r} not found.")
    return row


def find_approvers(name: str | None) -> Group | None:
    if name is None:
        return None
    group = Group.objects.filter(name=name).first()
    if group is None:
        raise field_problem("approvers", f"Group {name!r} not found.")
    return group


def iter_field_flaws(tool: Tool, sent: set[str]) -> Iterator[FieldError]:
    """Yield what is wrong with the fields that the body has, such as the name."""
    columns = {field.name for field in Tool._meta.fields}
    try:
        tool.clean_fields(exclude=columns - sent)
    except ValidationError as error:
        for name, messages in error.message_dict.items():
            yield FieldError(name, " ".join(messages))
    for host in tool.hosts:
        if not HOST_PATTERN.fullmatch(host):
            message = f"{host!r} is not a host name. Leave out https:// and port."
            yield FieldError("hosts", message)


def iter_tool_flaws(tool: Tool, body: ToolChange) -> Iterator[FieldError]:
    """Yield what keeps the tool from being called."""
    if "config" in body.model_fields_set:
        yield from iter_config_flaws(tool.config)
    found = [*find_call_errors(tool.kind, tool.config, tool.args_schema)]
    yield from found
    if all(one.field != "config" for one in found):
        yield from iter_reach_flaws(tool)


def iter_config_flaws(config: dict[str, Any]) -> Iterator[FieldError]:
    """Yield keys and values that no configuration sent by a program may have."""
    for name in LINKED_FIELDS:
        if name in config:
            message = f"Send `{name}` beside the configuration."
            yield FieldError(f"config.{name}", message)
    for place in find_removed_secrets(config):
        message = "A secret was masked here. Enter it again, or use a credential."
        yield FieldError(place, message)
    if not is_storable(config):
        message = "It has a number or a character that cannot be stored."
        yield FieldError("config", message)


def iter_reach_flaws(tool: Tool) -> Iterator[FieldError]:
    """Yield a credential or host limit that every call would be refused for."""
    bindings = tool.credential.hosts if tool.credential else []
    where = ", ".join(bindings)
    if tool.kind == "http":
        url = str(tool.config["url"])
        if tool.credential and not any(binding_matches(one, url) for one in bindings):
            message = f"It is bound to {where}, not to {format_origin(url)}."
            yield FieldError("credential", message)
    elif tool.kind == "function":
        if supports_host_limit(str(tool.config["function"])):
            if tool.credential and not find_usable_hosts(bindings, tool.hosts):
                message = f"It is bound to {where}, which `hosts` does not allow."
                yield FieldError("credential", message)
            return
        if tool.hosts:
            yield FieldError("hosts", str(HOST_LIMIT_UNSUPPORTED))
        if tool.credential:
            yield FieldError("credential", str(SECRET_UNSUPPORTED))
    elif tool.credential:
        message = "Tools of this kind do not use a credential."
        yield FieldError("credential", message)
