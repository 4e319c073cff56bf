"""Langflow: the agent components of a flow."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from runs.engine.prompts import escape_braces
from runs.engine.spec_validation import MAX_ROUNDS
from runs.services.importers.conversion import (
    Conversion,
    ConvertedAgent,
    ConvertedModel,
    ConvertedTool,
    SkippedPart,
)
from runs.services.importers.document import ForeignDocument
from runs.services.importers.errors import ForeignFileRefused
from runs.services.importers.known_tools import CLOCK, find_known_tool
from runs.services.importers.skipped import (
    explain_mcp,
    skip_node,
    skip_tool,
    skip_variables,
)
from runs.services.importers.templates import (
    DOUBLE_BRACES,
    SINGLE_BRACES,
    build_messages,
    build_variable_name,
    convert_template,
)
from runs.services.importers.values import (
    as_dict,
    as_text,
    get_path,
    iter_dicts,
    pick_iterations,
    pick_parameters,
)

IGNORED = ("note", "notenode", "chatinput", "chatoutput", "genericnode", "")
PROMPTS = ("Prompt", "Prompt Template", "PromptTemplate")


@dataclass
class LangflowFile:
    """The components of a flow by id, and what each of their fields is given."""

    nodes: dict[str, dict[str, Any]]
    sources: dict[tuple[str, str], list[str]]
    skipped: list[SkippedPart] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    def find_sources(self, key: str, field_name: str) -> list[str]:
        return [
            one for one in self.sources.get((key, field_name), []) if one in self.nodes
        ]

    def get_value(self, key: str, name: str) -> Any:
        return get_path(self.nodes[key], "node", "template", name, "value")


def get_flow(document: ForeignDocument) -> dict[str, Any]:
    """Return what holds the nodes: `data` of an export, or the file itself."""
    return as_dict(document.fields.get("data")) or document.fields


def recognize_langflow(document: ForeignDocument) -> bool:
    nodes = list(iter_dicts(get_flow(document).get("nodes")))
    return any(
        isinstance(get_path(node, "data", "node", "template"), dict) for node in nodes
    )


def convert_langflow(document: ForeignDocument) -> Conversion:
    """Convert each agent component; raise `ForeignFileRefused` if there is none."""
    file = read_langflow_graph(get_flow(document))
    agents = [key for key, node in file.nodes.items() if node.get("type") == "Agent"]
    if not agents:
        raise ForeignFileRefused(
            _(
                "This is a Langflow flow without an Agent component; only agents can "
                "be imported."
            )
        )
    file.used.update(agents)
    title = as_text(document.fields.get("name"))
    converted = tuple(
        convert_langflow_agent(file, key, title if len(agents) == 1 else "")
        for key in agents
    )
    file.skipped += [
        skip_node(name_langflow_node(node), as_text(node.get("type")))
        for key, node in file.nodes.items()
        if key not in file.used and as_text(node.get("type")).lower() not in IGNORED
    ]
    return Conversion(agents=converted, skipped=tuple(file.skipped))


def read_langflow_graph(flow: dict[str, Any]) -> LangflowFile:
    nodes = {
        as_text(one.get("id")): as_dict(one.get("data"))
        for one in iter_dicts(flow.get("nodes"))
    }
    sources: dict[tuple[str, str], list[str]] = defaultdict(list)
    for edge in iter_dicts(flow.get("edges")):
        name = as_text(get_path(edge, "data", "targetHandle", "fieldName"))
        sources[as_text(edge.get("target")), name].append(as_text(edge.get("source")))
    return LangflowFile(nodes, sources)


def name_langflow_node(node: dict[str, Any]) -> str:
    return as_text(get_path(node, "node", "display_name")) or as_text(node.get("type"))


def convert_langflow_agent(file: LangflowFile, key: str, title: str) -> ConvertedAgent:
    """Convert one agent component; `title` names it unless it has its own name."""
    node = file.nodes[key]
    name = name_langflow_node(node)
    system = convert_field(file, key, "system_prompt")
    user = convert_field(file, key, "input_value")
    if user and "{input}" not in user and not file.find_sources(key, "input_value"):
        user = ""  # an example of a question
    tools, agents = convert_langflow_tools(file, key)
    if file.get_value(key, "add_current_date_tool") is True:
        tools = (*tools, ConvertedTool("clock", "function", {"function": CLOCK}))
    return ConvertedAgent(
        key=key,
        name=title if title and name == "Agent" else name,
        description=as_text(file.get_value(key, "agent_description")) if agents else "",
        messages=build_messages(system, user),
        model=convert_langflow_model(file, key),
        tools=tools,
        agents=agents,
        executor=pick_iterations(file.get_value(key, "max_iterations"), MAX_ROUNDS),
        memory=True,
    )


def convert_field(file: LangflowFile, key: str, name: str) -> str:
    """Return the template of a text field, which another component may fill."""
    sources = file.find_sources(key, name)
    if not sources:
        return escape_braces(as_text(file.get_value(key, name)))
    source = file.nodes[sources[0]]
    kind = as_text(source.get("type"))
    if kind == "ChatInput":
        return "{input}"
    file.used.add(sources[0])
    if kind == "TextInput":
        return escape_braces(as_text(file.get_value(sources[0], "input_value")))
    if kind not in PROMPTS:
        reason = _(
            "The output is the input of an agent. Pass it to the agent in each run."
        )
        file.skipped.append(skip_node(name_langflow_node(source), kind, reason=reason))
        return "{input}" if name == "input_value" else ""
    return convert_langflow_prompt(file, sources[0])


def convert_langflow_prompt(file: LangflowFile, key: str) -> str:
    """Return the template of a prompt component, and list its variables."""
    is_double = file.get_value(key, "use_double_brackets") is True
    pattern = DOUBLE_BRACES if is_double else SINGLE_BRACES

    def name_variable(expression: str) -> str:
        for source in file.find_sources(key, expression):
            if file.nodes[source].get("type") == "ChatInput":
                return "input"
        return build_variable_name(expression)

    text = as_text(file.get_value(key, "template"))
    template = convert_template(text, pattern, name_variable)
    file.skipped += skip_variables(
        name_langflow_node(file.nodes[key]), template.expressions
    )
    return template.text


def convert_langflow_model(file: LangflowFile, key: str) -> ConvertedModel:
    """Return the model: a name and a provider, or a selection in newer versions."""
    chosen = next(iter_dicts(file.get_value(key, "model")), {})
    provider = as_text(chosen.get("provider")) or as_text(
        file.get_value(key, "agent_llm")
    )
    for name in ("model", "agent_llm"):
        for source in file.find_sources(key, name):
            file.used.add(source)
            return ConvertedModel(
                provider=as_text(file.nodes[source].get("type")),
                model=as_text(file.get_value(source, "model_name")),
                base_url=as_text(file.get_value(source, "openai_api_base")),
                parameters=pick_field_parameters(file, source),
            )
    return ConvertedModel(
        provider=provider,
        model=as_text(chosen.get("name")) or as_text(file.get_value(key, "model_name")),
        parameters=pick_field_parameters(file, key),
    )


def pick_field_parameters(file: LangflowFile, key: str) -> dict[str, Any]:
    fields = as_dict(get_path(file.nodes[key], "node", "template"))
    return pick_parameters(
        {name: as_dict(one).get("value") for name, one in fields.items()}
    )


def convert_langflow_tools(
    file: LangflowFile, key: str
) -> tuple[tuple[ConvertedTool, ...], tuple[str, ...]]:
    """Return the tools that exist here, and the agents that are called as tools."""
    found: list[ConvertedTool] = []
    agents: list[str] = []
    for source in file.find_sources(key, "tools"):
        node = file.nodes[source]
        kind = as_text(node.get("type"))
        if kind == "Agent":
            agents.append(source)
            continue
        file.used.add(source)
        if known := find_known_tool(kind, name_langflow_node(node)):
            found.append(known)
            continue
        reason = ""
        if "MCP" in kind:
            server = file.get_value(source, "mcp_server")
            reason = explain_mcp(as_text(as_dict(server).get("name")))
        file.skipped.append(skip_tool(name_langflow_node(node), kind, reason=reason))
    return tuple(found), tuple(agents)
