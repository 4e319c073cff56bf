"""OpenAI Agent Builder: the agents in exported code, Python or TypeScript.

The code is parsed, never run.
"""

from typing import Any

from django.utils.translation import gettext as _

from runs.engine.prompts import escape_braces
from runs.services.importers.conversion import (
    Conversion,
    ConvertedAgent,
    ConvertedModel,
    ConvertedTool,
    SkippedPart,
)
from runs.services.importers.document import ForeignDocument
from runs.services.importers.errors import ForeignFileRefused
from runs.services.importers.formats.code_python import parse_python_calls
from runs.services.importers.formats.code_typescript import parse_typescript_calls
from runs.services.importers.formats.code_values import Call, Name, Template
from runs.services.importers.known_tools import find_known_tool
from runs.services.importers.skipped import (
    explain_expression,
    explain_mcp,
    skip_knowledge,
    skip_setting,
    skip_tool,
)
from runs.services.importers.templates import build_messages, build_variable_name
from runs.services.importers.values import as_dict, as_list, as_text, pick_parameters

MARKS = ("@openai/agents", "from agents import", "openai-agents")


def recognize_agent_builder(document: ForeignDocument) -> bool:
    return document.is_code and any(mark in document.text for mark in MARKS)


def convert_agent_builder(document: ForeignDocument) -> Conversion:
    """Convert each agent in the code; raise `ForeignFileRefused` if there is none."""
    text = document.text
    is_python = "from agents import" in text
    calls = parse_python_calls(text) if is_python else parse_typescript_calls(text)
    skipped: list[SkippedPart] = []
    agents: dict[str, ConvertedAgent] = {}
    for name, call in calls.items():
        if call.function in ("Agent", "new Agent"):
            agent = convert_sdk_agent(name, call, calls, skipped)
            agents[agent.key] = agent
    if not agents:
        raise ForeignFileRefused(
            _(
                "This code of the OpenAI Agents SDK assigns no agent to a name; only "
                "such agents can be imported."
            )
        )
    if len(agents) > 1:
        reason = _("Only the agents are imported, not the code that connects them.")
        skipped.append(
            skip_setting("run_workflow" if is_python else "runWorkflow", reason=reason)
        )
    return Conversion(agents=tuple(agents.values()), skipped=tuple(skipped))


def convert_sdk_agent(
    variable: str, call: Call, calls: dict[str, Call], skipped: list[SkippedPart]
) -> ConvertedAgent:
    given = call.arguments
    name = as_text(given.get("name")) or variable
    settings = given.get("model_settings", given.get("modelSettings"))
    options = settings.arguments if isinstance(settings, Call) else as_dict(settings)
    for field in ("output_type", "outputType"):
        if isinstance(given.get(field), Name | Call):
            reason = _("Enter the JSON Schema as the output of the agent.")
            skipped.append(skip_setting(f"{name}: {field}", reason=reason))
    for field in (
        "handoffs",
        "input_guardrails",
        "inputGuardrails",
        "output_guardrails",
        "outputGuardrails",
    ):
        if as_list(given.get(field)):
            skipped.append(skip_setting(f"{name}: {field}"))
    if options.get("reasoning"):
        reason = _("Set it in the parameters of the agent.")
        skipped.append(skip_setting(f"{name}: reasoning", reason=reason))
    model = given.get("model")
    if not isinstance(model, str):
        skipped.append(
            skip_setting(
                f"{name}: model",
                reason=_("The file has an expression here. Select a model."),
            )
        )
    return ConvertedAgent(
        key=variable,
        name=name,
        messages=build_messages(
            convert_instructions(name, given.get("instructions"), skipped)
        ),
        model=ConvertedModel(
            "openai", as_text(model), parameters=pick_parameters(options)
        ),
        tools=convert_sdk_tools(name, given.get("tools"), calls, skipped),
    )


def convert_instructions(name: str, value: Any, skipped: list[SkippedPart]) -> str:
    """Return the template of the instructions; values of code become variables."""
    if isinstance(value, str):
        return escape_braces(value)
    if not isinstance(value, Template):
        skipped.append(
            skip_setting(
                f"{name}: instructions",
                reason=_("The instructions are not a text in this file."),
            )
        )
        return ""
    parts: list[str] = []
    for part in value.parts:
        if isinstance(part, str):
            parts.append(escape_braces(part))
            continue
        variable = (
            "input"
            if part.path.endswith("input_as_text")
            else build_variable_name(part.path)
        )
        skipped.append(
            skip_setting(f"{name}: {part.path}", reason=explain_expression(variable))
        )
        parts.append(f"{{{variable}}}")
    return "".join(parts)


def convert_sdk_tools(
    name: str, value: Any, calls: dict[str, Call], skipped: list[SkippedPart]
) -> tuple[ConvertedTool, ...]:
    """Return the tools that exist here, and list those that do not."""
    found: list[ConvertedTool] = []
    for one in as_list(value):
        call = calls.get(one.path) if isinstance(one, Name) else one
        if not isinstance(call, Call):
            label = one.path if isinstance(one, Name) else "?"
            reason = _("A function of the code. Register it as a tool of this site.")
            skipped.append(skip_tool(label, name, reason=reason))
            continue
        kind = call.function.rpartition(".")[2]
        word = kind.lower().removesuffix("tool")
        if known := find_known_tool(kind, word):
            found.append(known)
        elif word == "filesearch":
            skipped += [skip_knowledge(store) for store in find_texts(call)] or [
                skip_knowledge(kind)
            ]
        elif "mcp" in word:
            config = as_dict(call.arguments.get("tool_config")) or call.arguments
            address = config.get("server_url") or config.get("serverUrl")
            skipped.append(skip_tool(kind, name, reason=explain_mcp(as_text(address))))
        else:
            skipped.append(skip_tool(as_text(call.arguments.get("name")) or kind, name))
    return tuple(found)


def find_texts(call: Call) -> list[str]:
    """Return the ids of vector stores in the arguments of a call."""
    given = [*call.positional, call.arguments.get("vector_store_ids")]
    return [text for value in given for text in map(as_text, as_list(value)) if text]
