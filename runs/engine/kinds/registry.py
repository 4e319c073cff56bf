"""All agent kinds by name."""

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
from runs.engine.kinds.kind import AgentKind

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
