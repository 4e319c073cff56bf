"""n8n: the AI agent nodes of a workflow, with their models and tools."""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from runs.engine.parsing.json_schema import find_schema_problem
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
from runs.services.importers.formats.n8n_http import convert_http_tool
from runs.services.importers.known_tools import find_known_tool
from runs.services.importers.skipped import (
    explain_code,
    explain_disabled,
    explain_expression,
    explain_mcp,
    skip_agent,
    skip_node,
    skip_setting,
    skip_tool,
)
from runs.services.importers.templates import (
    VariableNames,
    build_messages,
    build_variable_name,
    convert_template,
)
from runs.services.importers.values import (
    as_dict,
    as_list,
    as_text,
    iter_dicts,
    parse_nested_json,
    pick_iterations,
    pick_parameters,
)

AGENTS = ("agent", "agenttool")
IGNORED = ("stickynote", "chattrigger", "manualchattrigger", "noop")
"""Notes, and where a chat begins, which each agent has anyway."""
EXPRESSION = re.compile(r"\{\{((?:(?!\{\{|\}\}).){1,2000})\}\}", re.DOTALL)
INPUT_EXPRESSION = re.compile(r"chatInput\s*$|guardrailsInput\s*$|\$fromAI\(")


@dataclass
class N8nFile:
    """The nodes of a workflow by name, and which node each input is connected to."""

    nodes: dict[str, dict[str, Any]]
    sources: dict[tuple[str, str], list[str]]
    """Names of nodes by the name of the node they belong to and the connection."""
    skipped: list[SkippedPart] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    def find_sources(self, name: str, connection: str) -> list[dict[str, Any]]:
        """Return the enabled nodes of a connection, and list the disabled ones."""
        found = []
        for source in self.sources.get((name, connection), []):
            if source not in self.nodes:
                continue
            self.used.add(source)
            node = self.nodes[source]
            if node.get("disabled") is True:
                self.skipped.append(skip_node(source, reason=explain_disabled()))
            else:
                found.append(node)
        return found


def recognize_n8n(document: ForeignDocument) -> bool:
    fields = document.fields
    nodes = list(iter_dicts(fields.get("nodes")))
    return isinstance(fields.get("connections"), dict) and any(
        isinstance(node.get("type"), str) and "parameters" in node for node in nodes
    )


def convert_n8n(document: ForeignDocument) -> Conversion:
    """Convert each agent node; raise `ForeignFileRefused` if there is none."""
    file = read_n8n_graph(document.fields)
    agents = [node for node in file.nodes.values() if get_type(node) in AGENTS]
    if not agents:
        raise ForeignFileRefused(
            _(
                "This is an n8n workflow without an AI Agent node; only AI agents can "
                "be imported."
            )
        )
    converted = [
        convert_n8n_agent(file, node, document.fields)
        for node in agents
        if node.get("disabled") is not True
    ]
    file.skipped += [
        skip_agent(as_text(node.get("name")), reason=explain_disabled())
        for node in agents
        if node.get("disabled") is True
    ]
    file.skipped += [
        skip_node(name, get_type(node))
        for name, node in file.nodes.items()
        if name not in file.used
        and get_type(node) not in AGENTS
        and get_type(node) not in IGNORED
    ]
    return Conversion(agents=tuple(converted), skipped=tuple(file.skipped))


def read_n8n_graph(fields: dict[str, Any]) -> N8nFile:
    """Return nodes and connections; references to missing nodes are left out."""
    nodes = {as_text(node.get("name")): node for node in iter_dicts(fields["nodes"])}
    sources: dict[tuple[str, str], list[str]] = defaultdict(list)
    for source, outputs in as_dict(fields.get("connections")).items():
        for connection, branches in as_dict(outputs).items():
            for branch in as_list(branches):
                for target in iter_dicts(branch):
                    sources[as_text(target.get("node")), connection].append(source)
    return N8nFile(nodes, sources)


def get_type(node: dict[str, Any]) -> str:
    """Return the type without its package, such as `lmchatopenai`."""
    return as_text(node.get("type")).rpartition(".")[2].lower()


def convert_n8n_agent(
    file: N8nFile, node: dict[str, Any], fields: dict[str, Any]
) -> ConvertedAgent:
    name = as_text(node.get("name"))
    given = as_dict(node.get("parameters"))
    options = as_dict(given.get("options"))
    file.used.add(name)
    system = as_text(options.get("systemMessage") or options.get("prefix"))
    variables = VariableNames()
    tools, agents = convert_n8n_tools(file, name)
    executor = pick_iterations(options.get("maxIterations"), MAX_ROUNDS)
    if schema := find_output_schema(file, name):
        executor["output_schema"] = schema
    return ConvertedAgent(
        key=name,
        name=name_agent(name, fields),
        description=as_text(given.get("toolDescription")),
        messages=build_messages(
            convert_n8n_text(file, name, system, variables=variables),
            convert_n8n_text(
                file, name, as_text(given.get("text")), variables=variables
            ),
        ),
        model=convert_n8n_model(file, name),
        tools=tools,
        agents=agents,
        executor=executor,
        memory=bool(file.find_sources(name, "ai_memory")),
    )


def name_agent(name: str, fields: dict[str, Any]) -> str:
    """Return the name of the workflow if the node still has its first name."""
    workflow = as_text(fields.get("name"))
    if workflow and re.fullmatch(r"AI Agent\d*", name):
        return f"{workflow} {name[8:]}".rstrip()
    return name


def convert_n8n_text(
    file: N8nFile, owner: str, text: str, *, variables: VariableNames
) -> str:
    """Return a template; expressions become variables, which are listed.

    Only a text that begins with `=` has expressions; in `{input}` of the older nodes
    the question stood, and the agent's own placeholders are left to the engine.
    """
    if not text.startswith("="):
        return escape_braces(text).replace("{{input}}", "{input}")
    template = convert_template(
        text[1:], EXPRESSION, name_expression, variables=variables
    )
    names = template.expressions
    if len(names) == 1 and template.text.strip() == f"{{{next(iter(names))}}}":
        return "{input}"  # whatever another node hands over is the question
    file.skipped += [
        skip_setting(f"{owner}: {{{{ {said} }}}}", reason=explain_expression(variable))
        for variable, said in names.items()
    ]
    return template.text


def name_expression(expression: str) -> str:
    if INPUT_EXPRESSION.search(expression):
        return "input"
    short = re.sub(r"^\$\(.*?\)\.(first\(\)|last\(\)|item)?\.?", "", expression)
    return build_variable_name(short.removeprefix("$json").removeprefix("json"))


def convert_n8n_model(file: N8nFile, name: str) -> ConvertedModel:
    """Return the model of an agent; a second one is a fallback, which is listed."""
    models = file.find_sources(name, "ai_languageModel")
    file.skipped += [
        skip_node(
            as_text(one.get("name")),
            get_type(one),
            reason=_("An agent has one model here."),
        )
        for one in models[1:]
    ]
    if not models:
        return ConvertedModel()
    given = as_dict(models[0].get("parameters"))
    options = as_dict(given.get("options"))
    chosen = given.get("model") or given.get("modelName") or given.get("modelId")
    if isinstance(chosen, dict):  # a list with a selection
        chosen = chosen.get("value")
    model = as_text(chosen).removeprefix("models/")
    if model.startswith("="):
        file.skipped.append(
            skip_setting(
                f"{name}: model",
                reason=_("The file has an expression here. Select a model."),
            )
        )
        model = ""
    return ConvertedModel(
        provider=get_type(models[0]),
        model=model,
        base_url=as_text(options.get("baseURL")),
        parameters=pick_parameters(options),
    )


def convert_n8n_tools(
    file: N8nFile, name: str
) -> tuple[tuple[ConvertedTool, ...], tuple[str, ...]]:
    tools: list[ConvertedTool] = []
    agents: list[str] = []
    for node in file.find_sources(name, "ai_tool"):
        if get_type(node) == "agenttool":
            agents.append(as_text(node.get("name")))
            continue
        found = convert_n8n_tool(node, file.skipped)
        if found is not None:
            tools.append(found)
    return tuple(tools), tuple(agents)


def convert_n8n_tool(
    node: dict[str, Any], skipped: list[SkippedPart]
) -> ConvertedTool | None:
    """Return a tool that exists here, or list it."""
    kind, name = get_type(node), as_text(node.get("name"))
    given = as_dict(node.get("parameters"))
    if known := find_known_tool(kind):
        return known
    if kind in ("toolhttprequest", "httprequesttool"):
        return convert_http_tool(name, given, skipped)
    reason = ""
    if kind == "toolcode":
        reason = explain_code()
        if given.get("language") == "python":
            reason = _("Needs the Python of n8n. Rewrite the code as a Python tool.")
    elif kind == "toolworkflow":
        reason = _("Calls another n8n workflow. Call its webhook by an HTTP tool.")
    elif "mcp" in kind:
        address = given.get("endpointUrl") or given.get("sseEndpoint")
        reason = explain_mcp(as_text(address))
    skipped.append(skip_tool(name, kind, reason=reason))
    return None


def find_output_schema(file: N8nFile, name: str) -> dict[str, Any] | None:
    """Return the schema of a structured output parser; anything else is listed."""
    for node in file.find_sources(name, "ai_outputParser"):
        given = as_dict(node.get("parameters"))
        text = as_text(given.get("inputSchema") or given.get("jsonSchema"))
        schema = parse_nested_json(text)
        if isinstance(schema, dict) and find_schema_problem(schema) is None:
            return schema
        file.skipped.append(
            skip_node(
                as_text(node.get("name")),
                get_type(node),
                reason=_("Has no JSON Schema. Enter one as the output of the agent."),
            )
        )
    return None
