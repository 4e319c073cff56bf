"""What a person changes where a fork parts from its run, and the spec it makes."""

from dataclasses import dataclass, field
from typing import Any

from runs.engine.kinds.registry import KINDS
from runs.engine.prompts import input_variables_of
from runs.engine.types import (
    AgentSpec,
    ExecutorOptions,
    ModelSettings,
    PromptSpec,
    ToolCall,
)
from runs.models import Run
from runs.services.errors import FieldError, SpecRefused
from runs.services.freeze_agent import refuse_flaws, variables_of_spec
from runs.services.start_run import checked_inputs
from tools.models import Tool
from tools.services.tool_spec_of import must_ask
from tools.spec import ToolSpec


@dataclass(frozen=True)
class ForkEdits:
    """Each field that is None stays as it was in the run."""

    inputs: dict[str, str] | None = None
    """Values of variables that are new; the others stay."""
    prompt: PromptSpec | None = None
    model: ModelSettings | None = None
    tools: tuple[ToolSpec, ...] | None = None
    limits: dict[str, Any] = field(default_factory=dict)
    """Fields of `ExecutorOptions` that are new."""
    reply_text: str | None = None
    """With `reply_calls`, the reply in place of the model's."""
    reply_calls: tuple[ToolCall, ...] = ()
    observation: str | None = None
    """What the model is told in place of the tool's result."""
    has_failed: bool = False
    """Whether that observation counts as an error."""
    calls_again: bool = False
    """Whether the tool is called again instead of reusing its result."""

    @property
    def words(self) -> list[str]:
        """What was changed, for the record."""
        changed = {
            "inputs": self.inputs is not None,
            "prompt": self.prompt is not None,
            "model": self.model is not None,
            "tools": self.tools is not None,
            "limits": bool(self.limits),
            "reply": self.reply_text is not None,
            "observation": self.observation is not None,
            "call": self.calls_again,
        }
        return [word for word, is_so in changed.items() if is_so]

    @property
    def need_the_agent(self) -> bool:
        """Whether only who may change the agent may do this."""
        return bool({"prompt", "model", "tools", "reply"} & set(self.words))


def edited_spec(spec: AgentSpec, edits: ForkEdits, *, run: Run) -> AgentSpec:
    """Return `spec` with the edits; raise `SpecRefused`, each flaw at its field."""
    changed: dict[str, Any] = {
        name: value
        for name in ("prompt", "model", "tools")
        if (value := getattr(edits, name)) is not None
    }
    if edits.model is not None and differs(spec.model, edits.model):
        changed["prices"] = None
    if edits.limits:
        changed["executor"] = with_limits(spec.executor, edits.limits)
    new = spec.model_copy(update=changed)
    refuse_flaws(new)
    refuse_lifted_questions(edits)
    prompt = new.prompt or KINDS[new.kind].prompt
    given = {**run.inputs, **(edits.inputs or {})}
    missing = [name for name in input_variables_of(prompt) if name not in given]
    if missing:
        told = f"The run has no value for {{{missing[0]}}}. Give it one as an input."
        raise SpecRefused([FieldError("prompt", told)])
    return new


def refuse_lifted_questions(edits: ForkEdits) -> None:
    """Raise `SpecRefused` for a tool that may run although it insists on a yes."""
    allowed = {
        one.tool_id: one for one in edits.tools or () if one.tool_id and not one.asks
    }
    for tool in Tool.objects.filter(pk__in=allowed):
        one = allowed[tool.pk]
        if must_ask(tool, effect=one.effect):
            told = f"{one.name!r} must ask a person before each call: choose ask."
            raise SpecRefused([FieldError("tools", told)])


def edited_inputs(spec: AgentSpec, edits: ForkEdits, *, run: Run) -> dict[str, Any]:
    """Return the inputs of the fork; raise `InputsRefused`, each flaw at its name."""
    old: dict[str, Any] = run.inputs
    if edits.inputs is None:
        return old
    given = {**old, **edits.inputs}
    names = {*variables_of_spec(spec), *edits.inputs}
    wanted = {name: value for name, value in given.items() if name in names}
    return {**old, **checked_inputs(spec, wanted)}


def differs(one: ModelSettings, other: ModelSettings) -> bool:
    """Whether another model answers, so that other prices count."""
    return (one.model, one.provider_id) != (other.model, other.provider_id)


def with_limits(options: ExecutorOptions, limits: dict[str, Any]) -> ExecutorOptions:
    """Return the options with other limits; raise `SpecRefused`."""
    try:
        return ExecutorOptions.model_validate({**options.model_dump(), **limits})
    except ValueError as error:
        told = f"A limit has a wrong value: {error}"
        raise SpecRefused([FieldError("executor", told)]) from None
