"""AutoGen Studio: the agents of a team."""

from collections.abc import Iterator
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
from runs.services.importers.formats.autogen_tools import convert_function_tool
from runs.services.importers.known_tools import find_known_tool
from runs.services.importers.skipped import (
    explain_mcp,
    explain_separate_agents,
    skip_agent,
    skip_key,
    skip_setting,
    skip_tool,
)
from runs.services.importers.templates import build_messages
from runs.services.importers.values import (
    as_dict,
    as_list,
    as_text,
    get_path,
    iter_dicts,
    pick_iterations,
    pick_parameters,
)

Component = dict[str, Any]


def recognize_autogen(document: ForeignDocument) -> bool:
    """Whether a file is a component, a team of the database, or a gallery."""
    return bool(find_roots(document))


def find_roots(document: ForeignDocument) -> list[Component]:
    fields = document.fields
    found = [fields, fields.get("component"), fields.get("config")]
    gallery = as_dict(fields.get("components")) or as_dict(
        get_path(fields, "config", "components")
    )
    for kind in ("teams", "agents"):
        found += as_list(gallery.get(kind))
    return [one for one in found if isinstance(one, dict) and is_component(one)]


def is_component(value: dict[str, Any]) -> bool:
    return isinstance(value.get("component_type"), str) and isinstance(
        value.get("provider"), str
    )


def get_component_class(component: Component) -> str:
    """Return the name of the class of a component, such as `AssistantAgent`."""
    return as_text(component.get("provider")).rpartition(".")[2]


def convert_autogen(document: ForeignDocument) -> Conversion:
    """Convert each assistant; raise `ForeignFileRefused` if there is none."""
    skipped: list[SkippedPart] = []
    agents: dict[str, ConvertedAgent] = {}
    for root in find_roots(document):
        for component in iter_agents(root, skipped, depth=5):
            agent = convert_autogen_agent(component, skipped)
            if agent is not None:
                agents.setdefault(agent.key, agent)
    if not agents:
        raise ForeignFileRefused(
            _(
                "This is an AutoGen file without an AssistantAgent; only assistants "
                "can be imported."
            )
        )
    unique = dict.fromkeys(skipped)  # teams of a gallery repeat agents
    return Conversion(agents=tuple(agents.values()), skipped=tuple(unique))


def iter_agents(
    component: Component, skipped: list[SkippedPart], depth: int
) -> Iterator[Component]:
    """Yield the agents of a team, of teams within it, or the agent itself."""
    kind, config = component.get("component_type"), as_dict(component.get("config"))
    if kind == "agent" and "participants" not in config and "team" not in config:
        yield component
        return
    if kind not in ("agent", "team") or depth == 0:
        return
    if kind == "team":
        list_team_settings(component, config, skipped)
    for one in [*as_list(config.get("participants")), config.get("team")]:
        if isinstance(one, dict) and is_component(one):
            yield from iter_agents(one, skipped, depth - 1)


def list_team_settings(
    component: Component, config: dict[str, Any], skipped: list[SkippedPart]
) -> None:
    """List how a team decides who speaks, and when it ends."""
    label = as_text(component.get("label")) or get_component_class(component)
    if len(as_list(config.get("participants"))) > 1:
        skipped.append(
            skip_setting(
                f"{label} ({get_component_class(component)})",
                reason=explain_separate_agents(),
            )
        )
    for condition in iter_conditions(config.get("termination_condition"), depth=5):
        reason = _("A run ends with its answer, or at a limit of the agent.")
        skipped.append(skip_setting(f"{label}: {condition}", reason=reason))


def iter_conditions(value: Any, depth: int) -> Iterator[str]:
    """Yield the classes of conditions, also of combined ones."""
    component = as_dict(value)
    inner = list(iter_dicts(get_path(component, "config", "conditions")))
    if not inner and component:
        yield get_component_class(component)
    if depth:
        for one in inner:
            yield from iter_conditions(one, depth - 1)


def convert_autogen_agent(
    component: Component, skipped: list[SkippedPart]
) -> ConvertedAgent | None:
    """Convert an assistant; other agents are listed."""
    config = as_dict(component.get("config"))
    name = as_text(config.get("name")) or as_text(component.get("label"))
    kind = get_component_class(component)
    if kind == "UserProxyAgent":
        reason = _("People answer in the chat, and approve calls of tools.")
        skipped.append(skip_agent(name, kind, reason=reason))
        return None
    if kind != "AssistantAgent":
        reason = _("Only assistants (AssistantAgent) can be imported.")
        skipped.append(skip_agent(name, kind, reason=reason))
        return None
    for handoff in as_list(config.get("handoffs")):
        target = as_text(handoff) or as_text(as_dict(handoff).get("target"))
        reason = _("There are no handoffs. Let one agent call the other instead.")
        skipped.append(skip_setting(f"{name}: handoff {target}", reason=reason))
    return ConvertedAgent(
        key=name,
        name=name.replace("_", " ").strip().capitalize(),
        description=as_text(config.get("description")),
        messages=build_messages(escape_braces(as_text(config.get("system_message")))),
        model=convert_autogen_model(as_dict(config.get("model_client")), skipped),
        tools=convert_autogen_tools(name, config, skipped),
        executor=pick_rounds(config),
    )


def pick_rounds(config: Component) -> dict[str, Any]:
    """Return the limit of rounds; the default of 1 would stop before the answer."""
    found = pick_iterations(config.get("max_tool_iterations"), MAX_ROUNDS)
    return {} if found.get("max_iterations") == 1 else found


def convert_autogen_model(
    client: Component, skipped: list[SkippedPart]
) -> ConvertedModel:
    """Return the model of a client; a key in the file is left out, and listed."""
    config = as_dict(client.get("config"))
    if as_text(config.get("api_key")).strip("*"):
        skipped.append(skip_key("api_key"))
    return ConvertedModel(
        provider=get_component_class(client),
        model=as_text(config.get("model")),
        base_url=as_text(config.get("base_url")),
        parameters=pick_parameters(config),
    )


def convert_autogen_tools(
    name: str, config: dict[str, Any], skipped: list[SkippedPart]
) -> tuple[ConvertedTool, ...]:
    """Return the tools of an assistant, and list those that cannot be imported."""
    found: list[ConvertedTool] = []
    tools = list(iter_dicts(config.get("tools")))
    benches = config.get("workbench")
    for bench in iter_dicts(benches if isinstance(benches, list) else [benches]):
        inner = as_dict(bench.get("config"))
        tools += iter_dicts(inner.get("tools"))
        if "Mcp" in get_component_class(bench):
            server = as_dict(inner.get("server_params"))
            address = as_text(server.get("url")) or as_text(server.get("command"))
            skipped.append(
                skip_tool(get_component_class(bench), name, reason=explain_mcp(address))
            )
    for tool in tools:
        given = as_dict(tool.get("config"))
        label = as_text(given.get("name")) or as_text(tool.get("label"))
        if get_component_class(tool) == "FunctionTool":
            one = find_known_tool(label) or convert_function_tool(label, given, skipped)
        else:
            skipped.append(skip_tool(label, get_component_class(tool)))
            one = None
        if one is not None:
            found.append(one)
    return tuple(found)
