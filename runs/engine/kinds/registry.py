"""All agent kinds, output parsers and parsing-error handlers, by name."""

from collections.abc import Callable
from dataclasses import replace

from runs.engine.kinds import (
    conversational,
    conversational_chat,
    json_chat,
    react,
    react_docstore,
    react_json,
    self_ask,
    structured_chat,
    tool_calling,
    xml,
)
from runs.engine.kinds.kind import AgentKind, Decision
from runs.engine.toolbox import Toolbox
from runs.engine.types import AgentSpec, PromptSpec, Reply

_MODULES = (
    tool_calling,
    react,
    react_json,
    structured_chat,
    json_chat,
    xml,
    conversational,
    conversational_chat,
    self_ask,
    react_docstore,
)

AGENT_KINDS: dict[str, AgentKind] = {
    module.KIND.name: module.KIND for module in _MODULES
}

OutputParser = Callable[[str, Reply, Toolbox], Decision]
"""Like `AgentKind.parse_reply`, which it replaces."""
OUTPUT_PARSERS: dict[str, OutputParser] = {}
"""Of extensions."""

ParsingErrorHandler = Callable[[str, str], str]
"""Returns what is sent to the model, given the error and the model's text."""
PARSING_ERROR_HANDLERS: dict[str, ParsingErrorHandler] = {}
"""Of extensions."""


def get_kind_of_spec(spec: AgentSpec) -> AgentKind:
    """Return the kind of an agent that can run, with the parser it selects."""
    kind, parser = AGENT_KINDS[spec.kind], spec.executor.output_parser
    return replace(kind, parse_reply=OUTPUT_PARSERS[parser]) if parser else kind


def get_prompt_of_spec(spec: AgentSpec) -> PromptSpec:
    """Return the prompt of an agent, or the default one of its kind.

    It is the question alone if the extension that had the kind is no longer there.
    """
    kind = AGENT_KINDS.get(spec.kind)
    return spec.prompt or (kind.prompt if kind else PromptSpec(template="{input}"))


KIND_ALIASES = {
    "zero-shot-react-description": "react",
    "chat-zero-shot-react-description": "react-json",
    "structured-chat-zero-shot-react-description": "structured-chat",
    "conversational-react-description": "conversational",
    "chat-conversational-react-description": "conversational-chat",
    "self-ask-with-search": "self-ask",
    "openai-functions": "tool-calling",
    "openai-multi-functions": "tool-calling",
    "openai-tools": "tool-calling",
}
"""Names that LangChain gave to kinds; agent files may use them."""


def resolve_kind_name(name: str) -> str:
    """Return the name of a kind, given it or its alias; others as they are."""
    return KIND_ALIASES.get(name.lower().replace("_", "-"), name)
