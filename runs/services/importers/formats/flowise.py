"""Flowise: agents of chatflows and agentflows."""

import re
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

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
from runs.services.importers.known_tools import find_known_tool
from runs.services.importers.skipped import (
    explain_code,
    explain_mcp,
    explain_openapi,
    skip_knowledge,
    skip_node,
    skip_tool,
    skip_variables,
)
from runs.services.importers.templates import (
    DOUBLE_BRACES,
    PLAIN_NAME,
    build_messages,
    build_variable_name,
    convert_template,
    join_paragraphs,
    strip_html,
)
from runs.services.importers.values import (
    as_dict,
    as_text,
    iter_dicts,
    parse_nested_json,
    pick_iterations,
    pick_parameters,
)

IGNORED = (
    "stickynote",
    "stickynoteagentflow",
    "start",
    "startagentflow",
    "seqstart",
    "seqend",
    "end",
)
CHATFLOW_AGENTS = (
    "toolagent",
    "conversationalagent",
    "conversationaltoolagent",
    "openaitoolagent",
    "openaifunctionagent",
    "reactagentchat",
    "reactagentllm",
    "xmlagent",
    "conversationalretrievaltoolagent",
    "mistralaitoolagent",
)
SYSTEM_FIELDS = (
    "systemMessage",
    "systemMessagePrompt",
    "workerPrompt",
    "supervisorPrompt",
)
REFERENCE = re.compile(r"\{\{\s?([A-Za-z0-9_-]{1,100})\.data\.instance\s?\}\}")


@dataclass
class FlowiseFile:
    """The nodes of a flow by id."""

    nodes: dict[str, dict[str, Any]]
    skipped: list[SkippedPart] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    def find_referenced(self, value: Any) -> list[str]:
        """Return the ids in `{{id.data.instance}}`, of one reference or a list."""
        texts = value if isinstance(value, list) else [value]
        ids = [one for text in texts for one in REFERENCE.findall(as_text(text))]
        return [one for one in ids if one in self.nodes]


def recognize_flowise(document: ForeignDocument) -> bool:
    nodes = list(iter_dicts(document.fields.get("nodes")))
    return any(
        isinstance(as_dict(node.get("data")).get("name"), str)
        and "inputs" in as_dict(node.get("data"))
        for node in nodes
    )


def convert_flowise(document: ForeignDocument) -> Conversion:
    """Convert each agent of a flow; raise `ForeignFileRefused` if there is none."""
    file = FlowiseFile(
        {
            as_text(node.get("id")): as_dict(node.get("data"))
            for node in iter_dicts(document.fields.get("nodes"))
        }
    )
    agents = [key for key, node in file.nodes.items() if is_agent(node)]
    if not agents:
        raise ForeignFileRefused(
            _(
                "This is a Flowise flow without an agent node; only agents can be "
                "imported."
            )
        )
    file.used.update(agents)
    converted = tuple(convert_flowise_agent(file, key) for key in agents)
    file.skipped += [
        skip_node(name_flowise_node(node), get_name(node))
        for key, node in file.nodes.items()
        if key not in file.used and get_name(node) not in IGNORED
    ]
    return Conversion(agents=converted, skipped=tuple(file.skipped))


def is_agent(node: dict[str, Any]) -> bool:
    """Whether a node is an agent: of a chatflow, of a team, or of an agentflow."""
    return get_name(node) in (
        *CHATFLOW_AGENTS,
        "supervisor",
        "worker",
        "seqagent",
        "agentagentflow",
    )


def get_name(node: dict[str, Any]) -> str:
    return as_text(node.get("name")).lower()


def name_flowise_node(node: dict[str, Any]) -> str:
    given = as_dict(node.get("inputs"))
    names = ("agentName", "workerName", "supervisorName")
    own = [as_text(given.get(name)) for name in names if given.get(name)]
    return next(iter(own), as_text(node.get("label")) or as_text(node.get("name")))


def convert_flowise_agent(file: FlowiseFile, key: str) -> ConvertedAgent:
    node = file.nodes[key]
    given = as_dict(node.get("inputs"))
    is_supervisor = get_name(node) == "supervisor"
    if get_name(node) == "agentagentflow":
        return convert_agentflow_node(file, key, node, given)
    workers = find_workers(file, key) if is_supervisor else ()
    values = read_prompt_values(given)
    if is_supervisor:
        values["team_members"] = ", ".join(
            name_flowise_node(file.nodes[one]) for one in workers
        )
    texts = [as_text(given.get(name)) for name in SYSTEM_FIELDS]
    system = fill_values(join_paragraphs(texts), values)
    prompt = fill_values(as_text(given.get("humanMessagePrompt")), values)
    is_team = is_supervisor or get_name(node) == "worker"
    model = find_model(file, given)
    list_prompt_nodes(file, given)
    return ConvertedAgent(
        key=key,
        name=name_flowise_node(node),
        messages=build_messages(
            convert_flowise_text(file, key, system, is_team=is_team),
            convert_flowise_text(file, key, prompt, is_team=True),
        ),
        model=read_model_node(as_text(model.get("name")), as_dict(model.get("inputs"))),
        tools=convert_tool_nodes(file, given.get("tools")),
        agents=workers,
        executor=pick_iterations(
            given.get("recursionLimit" if is_supervisor else "maxIterations"),
            MAX_ROUNDS,
        ),
        memory=has_memory(file, given),
    )


def read_prompt_values(given: dict[str, Any]) -> dict[str, str]:
    """Return the values that the agent gives to variables of its prompt."""
    values = as_dict(parse_nested_json(given.get("promptValues")))
    texts = {name: as_text(value) for name, value in values.items()}
    return {name: text for name, text in texts.items() if text and "{{" not in text}


def fill_values(text: str, values: dict[str, str]) -> str:
    return PLAIN_NAME.sub(lambda match: values.get(match[1], match[0]), text)


def find_workers(file: FlowiseFile, supervisor: str) -> tuple[str, ...]:
    """Return the workers of a supervisor, which it calls as agents."""
    return tuple(
        key
        for key, node in file.nodes.items()
        if get_name(node) == "worker"
        and supervisor
        in file.find_referenced(as_dict(node.get("inputs")).get("supervisor"))
    )


def find_model(file: FlowiseFile, given: dict[str, Any]) -> dict[str, Any]:
    """Return the model node of an agent, of its supervisor, or of the start."""
    keys = file.find_referenced(given.get("model"))
    if not keys:
        supervisors = file.find_referenced(given.get("supervisor"))
        starts = [
            key for key, node in file.nodes.items() if get_name(node) == "seqstart"
        ]
        keys = [
            model
            for key in supervisors or starts
            for model in file.find_referenced(
                as_dict(file.nodes[key].get("inputs")).get("model")
            )
        ]
    file.used.update(keys)
    return file.nodes[keys[0]] if keys else {}


def read_model_node(name: str, given: dict[str, Any]) -> ConvertedModel:
    """Return the model of a model node, or of the settings in an agent node."""
    model = as_text(given.get("customModelName")) or as_text(given.get("modelName"))
    return ConvertedModel(
        provider=name,
        model=model or as_text(given.get("model")),
        base_url=as_text(given.get("basepath") or given.get("baseUrl")),
        parameters=pick_parameters(given),
    )


def has_memory(file: FlowiseFile, given: dict[str, Any]) -> bool:
    keys = file.find_referenced(given.get("memory") or given.get("agentMemory"))
    file.used.update(keys)
    return bool(keys)


def list_prompt_nodes(file: FlowiseFile, given: dict[str, Any]) -> None:
    """List prompt templates and moderation that hang on an agent."""
    for name in ("chatPromptTemplate", "inputModeration"):
        for one in file.find_referenced(given.get(name)):
            file.used.add(one)
            node = file.nodes[one]
            file.skipped.append(skip_node(name_flowise_node(node), get_name(node)))


def convert_flowise_text(
    file: FlowiseFile, key: str, text: str, *, is_team: bool = False
) -> str:
    """Return a template; variables that a flow fills in are listed.

    Prompts of teams write `{name}`, and those of agents `{{name}}`.
    """
    pattern = PLAIN_NAME if is_team else DOUBLE_BRACES
    template = convert_template(strip_html(text), pattern, name_variable)
    file.skipped += skip_variables(
        name_flowise_node(file.nodes[key]), template.expressions
    )
    return template.text


def name_variable(expression: str) -> str:
    if expression in ("question", "input", "$flow.input"):
        return "input"
    return build_variable_name(expression)


def convert_tool_nodes(file: FlowiseFile, value: Any) -> tuple[ConvertedTool, ...]:
    """Return the tools that exist here, and list those that do not."""
    found: list[ConvertedTool] = []
    for key in file.find_referenced(value):
        node = file.nodes[key]
        file.used.add(key)
        known = convert_flowise_tool(
            file, name_flowise_node(node), get_name(node), as_dict(node.get("inputs"))
        )
        if known:
            found.append(known)
    return tuple(found)


def convert_flowise_tool(
    file: FlowiseFile, label: str, kind: str, given: dict[str, Any]
) -> ConvertedTool | None:
    if known := find_known_tool(kind):
        return known
    if kind == "retrievertool":
        file.skipped.append(skip_knowledge(given.get("name") or label))
        return None
    reason = ""
    if kind == "customtool":
        reason = explain_code()
    elif "mcp" in kind:
        reason = explain_mcp(find_mcp_address(given))
    elif kind == "openapitoolkit":
        reason = explain_openapi()
    elif kind in ("chatflowtool", "agentastool"):
        reason = _("Calls another flow. Import that flow, and select its agent.")
    file.skipped.append(skip_tool(label, kind, reason=reason))
    return None


def find_mcp_address(given: dict[str, Any]) -> str:
    config = as_dict(parse_nested_json(given.get("mcpServerConfig")))
    return as_text(config.get("url")) or as_text(config.get("command"))


def convert_agentflow_node(
    file: FlowiseFile, key: str, node: dict[str, Any], given: dict[str, Any]
) -> ConvertedAgent:
    """Convert an agent of the second generation, which has everything in its inputs."""
    messages = list(iter_dicts(given.get("agentMessages")))
    system = [
        strip_html(as_text(one.get("content")))
        for one in messages
        if one.get("role") in ("system", "developer")
    ]
    asked = [
        strip_html(as_text(one.get("content")))
        for one in messages
        if one.get("role") == "user"
    ]
    asked.append(strip_html(as_text(given.get("agentUserMessage"))))
    found: list[ConvertedTool] = []
    for one in iter_dicts(given.get("agentTools")):
        kind = as_text(one.get("agentSelectedTool"))
        config = as_dict(one.get("agentSelectedToolConfig"))
        if known := convert_flowise_tool(file, kind, kind.lower(), config):
            found.append(known)
    for one in iter_dicts(given.get("agentKnowledgeDocumentStores")):
        file.skipped.append(
            skip_knowledge(as_text(one.get("documentStore")).rpartition(":")[2])
        )
    for one in iter_dicts(given.get("agentKnowledgeVSEmbeddings")):
        file.skipped.append(
            skip_knowledge(one.get("knowledgeName") or one.get("vectorStore"))
        )
    user = convert_flowise_text(file, key, join_paragraphs(asked))
    if user and "{input}" not in user:
        user = f"{user}\n\n{{input}}"
    return ConvertedAgent(
        key=key,
        name=name_flowise_node(node),
        messages=build_messages(
            convert_flowise_text(file, key, join_paragraphs(system)), user
        ),
        model=read_model_node(
            as_text(given.get("agentModel")), as_dict(given.get("agentModelConfig"))
        ),
        tools=tuple(found),
        memory=given.get("agentEnableMemory") is True,
    )
