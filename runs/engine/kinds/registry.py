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
from runs.engine.kinds.kind import Kind

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

KINDS: dict[str, Kind] = {module.KIND.name: module.KIND for module in _MODULES}
