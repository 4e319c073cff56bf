"""What can be wrong with one definition, found without running anything."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from runs.engine.check import name_problem
from runs.engine.json_schema import flaw_of_schema
from runs.engine.kinds.registry import KINDS as AGENT_KINDS
from runs.engine.prompts import flaws_of
from runs.llm.registry import KINDS as PROVIDER_KINDS
from runs.services.agentfile import PromptEntry, ProviderEntry, ToolEntry
from runs.services.errors import FieldError
from runs.services.open_provider import net_policy
from tools.kinds.config_flaws import flaws_of_config
from tools.kinds.registry import KINDS as TOOL_KINDS
from tools.netpolicy import AddressRefused


def provider_mistakes(entry: ProviderEntry) -> Iterator[FieldError]:
    """Yield what is wrong with a provider."""
    yield from kind_mistakes(entry.kind, PROVIDER_KINDS)
    if entry.kind == "demo":
        return
    if not is_web_address(entry.base_url):
        yield FieldError(
            "base_url", "It must be a URL that begins http:// or https://."
        )
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


def is_web_address(url: str) -> bool:
    """Whether `url` names a web server."""
    try:
        parts = urlsplit(url)
        return (
            parts.scheme in {"http", "https"}
            and bool(parts.hostname)
            and parts.port != 0
        )
    except ValueError:
        return False


def names_a_person(url: str) -> bool:
    """Whether a web address carries a name or password."""
    return "@" in urlsplit(url).netloc


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
    for told in flaws_of_config(entry.kind, entry.config):
        yield FieldError("config", told)
    if entry.args_schema is not None:
        flaw = flaw_of_schema(entry.args_schema)
        if flaw is not None:
            yield FieldError("args_schema", str(flaw))


def kind_mistakes(kind: str, known: dict[str, Any]) -> Iterator[FieldError]:
    """Yield the mistake of a kind that this version does not have."""
    if kind not in known:
        yield FieldError(
            "kind", f"There is no kind {kind!r}. It is one of {', '.join(known)}."
        )
