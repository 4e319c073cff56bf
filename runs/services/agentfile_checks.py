"""What can be wrong with one definition, found without running anything."""

from collections.abc import Iterator
from typing import Any

from django.utils.text import capfirst

from runs.engine.check import name_problem
from runs.engine.json_schema import flaw_of_schema
from runs.engine.kinds.registry import KINDS as AGENT_KINDS
from runs.engine.prompts import flaws_of
from runs.llm.registry import KINDS as PROVIDER_KINDS
from runs.services.agentfile import PromptEntry, ProviderEntry, ToolEntry
from runs.services.errors import FieldError
from runs.services.open_provider import net_policy
from tools.kinds.config_flaws import flaws_of_config, flaws_of_names
from tools.kinds.registry import KINDS as TOOL_KINDS
from tools.netpolicy import AddressRefused
from tools.web_address import flaw_of_address, names_a_person


def provider_mistakes(entry: ProviderEntry) -> Iterator[FieldError]:
    """Yield what is wrong with a provider."""
    yield from kind_mistakes(entry.kind, PROVIDER_KINDS)
    if entry.kind == "demo":
        return
    if flaw := flaw_of_address(entry.base_url):
        yield FieldError("base_url", f"{capfirst(flaw)}.")
    elif names_a_person(entry.base_url):
        yield FieldError(
            "base_url",
            "Leave name and password out of the address. A key is typed in on the "
            "provider's page.",
        )
    else:
        try:
            net_policy().check_url(entry.base_url)
        except AddressRefused as refused:
            yield FieldError("base_url", str(refused))


def prompt_mistakes(entry: PromptEntry) -> Iterator[FieldError]:
    """Yield what is wrong with a prompt; whether an agent can use it comes later."""
    yield from kind_mistakes(entry.kind, AGENT_KINDS)
    if entry.template is not None:
        for flaw in flaws_of(entry.template):
            yield FieldError("template", str(flaw))
    for index, message in enumerate(entry.messages or ()):
        for flaw in flaws_of(message.template):
            yield FieldError(f"messages[{index}].template", str(flaw))


def tool_mistakes(entry: ToolEntry, fields: dict[str, Any]) -> Iterator[FieldError]:
    """Yield what is wrong with a tool, given all its fields."""
    yield from kind_mistakes(entry.kind, TOOL_KINDS)
    if (told := name_problem(fields["name"])) is not None:
        yield FieldError("name", told)
    found = flaws_of_config(entry.kind, entry.config)
    schema = entry.args_schema
    flaw = None if schema is None else flaw_of_schema(schema)
    if flaw is not None:
        yield FieldError("args_schema", str(flaw))
    elif not found:
        found = flaws_of_names(entry.kind, entry.config, schema)
    for told in found:
        yield FieldError("config", told)


def kind_mistakes(kind: str, known: dict[str, Any]) -> Iterator[FieldError]:
    """Yield the mistake of a kind that this version does not have."""
    if kind not in known:
        yield FieldError(
            "kind", f"There is no kind {kind!r}. It is one of {', '.join(known)}."
        )
