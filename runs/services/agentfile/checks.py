"""Problems of one definition, found without running anything."""

from collections.abc import Iterator
from typing import Any

from django.utils.text import capfirst
from django.utils.translation import gettext as _

from runs.engine.kinds.registry import AGENT_KINDS
from runs.engine.parsing.json_schema import find_schema_problem
from runs.engine.prompts import find_template_problems
from runs.engine.spec_validation import find_tool_name_problem
from runs.llm.registry import PROVIDER_KINDS
from runs.services.agentfile.schema import PromptEntry, ProviderEntry, ToolEntry
from runs.services.errors import FieldError
from runs.services.providers.client import get_provider_net_policy
from tools.kinds.config_checks import find_config_flaws, find_name_flaws
from tools.kinds.registry import KINDS as TOOL_KINDS
from tools.net.address_flaw import find_address_flaw
from tools.net.netpolicy import AddressRefused
from tools.net.web_address import has_userinfo


def find_provider_entry_errors(entry: ProviderEntry) -> Iterator[FieldError]:
    yield from find_entry_kind_errors(entry.kind, PROVIDER_KINDS)
    kind = PROVIDER_KINDS.get(entry.kind)
    if kind is not None and not kind.needs_server:
        return
    if flaw := find_address_flaw(entry.base_url):
        yield FieldError("base_url", f"{capfirst(flaw)}.")
    elif has_userinfo(entry.base_url):
        yield FieldError(
            "base_url",
            _(
                "Remove the user name and password from the URL. Enter the key on the "
                "provider page."
            ),
        )
    else:
        try:
            get_provider_net_policy().check_url(entry.base_url)
        except AddressRefused as refused:
            yield FieldError("base_url", str(refused))


def find_prompt_entry_errors(entry: PromptEntry) -> Iterator[FieldError]:
    """Yield the problems of a prompt; whether an agent can use it is checked later."""
    yield from find_entry_kind_errors(entry.kind, AGENT_KINDS)
    if entry.template is not None:
        for flaw in find_template_problems(entry.template):
            yield FieldError("template", str(flaw))
    for index, message in enumerate(entry.messages or ()):
        for flaw in find_template_problems(message.template):
            yield FieldError(f"messages[{index}].template", str(flaw))


def find_tool_entry_errors(
    entry: ToolEntry, fields: dict[str, Any]
) -> Iterator[FieldError]:
    """Yield the problems of a tool, given all its fields."""
    yield from find_entry_kind_errors(entry.kind, TOOL_KINDS)
    if (message := find_tool_name_problem(fields["name"])) is not None:
        yield FieldError("name", message)
    yield from find_call_errors(entry.kind, entry.config, entry.args_schema)


def find_call_errors(
    kind: str, config: dict[str, Any], schema: dict[str, Any] | None
) -> Iterator[FieldError]:
    """Yield why a tool cannot be called: its configuration, or its `args_schema`."""
    found = find_config_flaws(kind, config)
    flaw = None if schema is None else find_schema_problem(schema)
    if flaw is not None:
        yield FieldError("args_schema", str(flaw))
    elif not found:
        found = find_name_flaws(kind, config, schema)
    for message in found:
        yield FieldError("config", message)


def find_entry_kind_errors(kind: str, known: dict[str, Any]) -> Iterator[FieldError]:
    """Yield an error for a kind that this version does not have."""
    if kind not in known:
        text = _("Unknown kind %(kind)r. Use one of: %(known)s.")
        yield FieldError("kind", text % {"kind": kind, "known": ", ".join(known)})
