"""The JSON Schema of agent files, for editors and other programs."""

from typing import Any

from pydantic.json_schema import models_json_schema

from runs.engine.kinds.registry import AGENT_KINDS
from runs.llm.registry import PROVIDER_KINDS
from runs.services.agentfile.schema import AgentFile
from tools.definition.overrides import ToolOverrides
from tools.kinds.registry import KINDS as TOOL_KINDS

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
KIND_NAMES = {
    "AgentEntry": sorted(AGENT_KINDS),
    "PromptEntry": sorted(AGENT_KINDS),
    "ProviderEntry": sorted(PROVIDER_KINDS),
    "ToolEntry": sorted(TOOL_KINDS),
}
CHILD_MAPS = ("properties", "$defs")
"""Keywords whose values map names to schemas."""


def build_agentfile_schema() -> Schema:
    """Return the schema; imports check more, such as names that must exist."""
    _, found = models_json_schema(
        [(AgentFile, "validation"), (ToolOverrides, "validation")]
    )
    schema = remove_annotations(found)
    definitions = schema["$defs"]
    for name, kinds in KIND_NAMES.items():
        definitions[name]["properties"]["kind"]["enum"] = kinds
    use = definitions["ToolUseEntry"]["properties"]
    use["overrides"] = {"$ref": "#/$defs/ToolOverrides", "default": {}}
    slug = definitions["AgentEntry"]["properties"]["slug"]
    definitions["AgentEntry"]["properties"]["tools"]["items"] = {
        "anyOf": [slug, {"$ref": "#/$defs/ToolUseEntry"}]
    }
    whole = definitions.pop("AgentFile")
    return {"$schema": DIALECT, "title": "Agent file", **whole, "$defs": definitions}


def remove_annotations(schema: Any) -> Any:
    """Return the schema without pydantic's titles and our docstrings.

    Docstrings are for developers, and rewording one would change the file.
    """
    if isinstance(schema, list):
        return [remove_annotations(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: remove_annotations(child) for name, child in value.items()}
        if key in CHILD_MAPS
        else value
        if key == "default"
        else remove_annotations(value)
        for key, value in schema.items()
        if key not in ("title", "description")
    }
