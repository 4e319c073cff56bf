"""CrewAI: the agents of an `agents.yaml`."""

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
from runs.services.importers.known_tools import find_known_tool
from runs.services.importers.skipped import skip_setting, skip_tool, skip_variables
from runs.services.importers.templates import (
    PLAIN_NAME,
    build_messages,
    convert_template,
    join_paragraphs,
)
from runs.services.importers.values import as_dict, as_list, as_text, pick_iterations

PROMPT_FIELDS = {"role", "goal", "backstory"}
OTHER_FIELDS = {"llm", "tools", "max_iter", "verbose", "name", "memory"}
"""Fields that are imported, or change nothing about the answers."""


def recognize_crewai(document: ForeignDocument) -> bool:
    agents = list(get_agents(document).values())
    return bool(agents) and all(
        isinstance(agent, dict) and {"role", "goal"} <= set(agent) for agent in agents
    )


def get_agents(document: ForeignDocument) -> dict[str, Any]:
    """Return the agents: the whole file, or its field `agents`."""
    inner = document.fields.get("agents")
    return inner if isinstance(inner, dict) else document.fields


def convert_crewai(document: ForeignDocument) -> Conversion:
    skipped: list[SkippedPart] = []
    agents = tuple(
        convert_crewai_agent(key, as_dict(agent), skipped)
        for key, agent in get_agents(document).items()
    )
    if document.fields.get("tasks"):
        skipped.append(
            skip_setting(
                "tasks", reason=_("Tasks are the inputs of runs. Start a run for each.")
            )
        )
    return Conversion(agents=agents, skipped=tuple(skipped))


def convert_crewai_agent(
    key: str, agent: dict[str, Any], skipped: list[SkippedPart]
) -> ConvertedAgent:
    """Convert one agent: its role, backstory and goal are its instructions."""
    role = " ".join(as_text(agent.get("role")).split())
    goal = as_text(agent.get("goal")).strip()
    text = join_paragraphs(
        [
            f"You are {role}.".replace("..", "."),
            as_text(agent.get("backstory")),
            f"Your goal: {goal}",
        ]
    )
    template = convert_template(text, PLAIN_NAME)
    skipped += skip_variables(key, template.expressions)
    skipped += [
        skip_setting(f"{key}: {name}")
        for name, value in agent.items()
        if name not in PROMPT_FIELDS | OTHER_FIELDS and value not in (None, False, "")
    ]
    return ConvertedAgent(
        key=key,
        name=key.replace("_", " ").strip().capitalize(),
        description=role,
        messages=build_messages(template.text),
        model=convert_crewai_model(as_text(agent.get("llm"))),
        tools=convert_crewai_tools(key, agent, skipped),
        executor=pick_iterations(agent.get("max_iter"), MAX_ROUNDS),
    )


def convert_crewai_model(text: str) -> ConvertedModel:
    """Return the model of `provider/model`; a word alone is the name of a function."""
    provider, slash, model = text.partition("/")
    return (
        ConvertedModel(provider=provider, model=model)
        if slash
        else ConvertedModel(model=text)
    )


def convert_crewai_tools(
    key: str, agent: dict[str, Any], skipped: list[SkippedPart]
) -> tuple[ConvertedTool, ...]:
    """Return the tools that exist here, and list those that do not."""
    found: list[ConvertedTool] = []
    for name in map(as_text, as_list(agent.get("tools"))):
        if known := find_known_tool(name, name.removesuffix("Tool")):
            found.append(known)
        else:
            skipped.append(skip_tool(name, key))
    return tuple(found)
