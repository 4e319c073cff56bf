"""Whether arguments that a person has changed still fit the tool."""

from typing import Any

from runs.engine.json_schema import faults_of
from runs.models import AgentStep
from runs.services.errors import ArgumentsRefused, FieldError
from runs.services.freeze_agent import spec_of
from tools.spec import ToolSpec


def tool_of_step(step: AgentStep) -> ToolSpec | None:
    """Return the tool as the run froze it; None where the run has no such tool."""
    tools = spec_of(step.run.spec).tools
    return next((tool for tool in tools if tool.name == step.tool), None)


def refuse_misfit(arguments: Any, spec: ToolSpec | None) -> None:
    """Raise `ArgumentsRefused` where the tool could not be called with `arguments`."""
    if spec is None:
        return
    schema = spec.args_schema
    if schema is None:
        if not isinstance(arguments, str):
            raise ArgumentsRefused([FieldError("", "This tool takes one text.")])
        return
    if not isinstance(arguments, dict):
        raise ArgumentsRefused([FieldError("", "Write one JSON object.")])
    unknown = unknown_in(arguments, schema)
    rest = {name: v for name, v in arguments.items() if name not in unknown}
    wrong = [FieldError(f.field, f"{f.problem}.") for f in faults_of(rest, schema)]
    wrong += [FieldError(name, "The tool has no such argument.") for name in unknown]
    if wrong:
        raise ArgumentsRefused(wrong)


def unknown_in(arguments: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    """Return the names the tool does not take, unless its schema leaves them open."""
    if schema.get("additionalProperties") or schema.get("patternProperties"):
        return []
    known = schema.get("properties") or {}
    return [name for name in arguments if name not in known]
