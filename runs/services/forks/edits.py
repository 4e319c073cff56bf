"""What a fork changes of its run, and the spec that results."""

from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from runs.engine.kinds.registry import get_prompt_of_spec
from runs.engine.prompts import input_variables_of_prompt
from runs.engine.types import (
    AgentSpec,
    ExecutorOptions,
    ModelSettings,
    PromptSpec,
    ToolCall,
)
from runs.models import Run
from runs.services.errors import FieldError, SpecRefused
from runs.services.runs.start import validate_inputs
from runs.services.spec.freeze import validate_spec, variables_of_spec
from tools.definition.freeze import list_lifted_approvals
from tools.spec import ToolSpec


@dataclass(frozen=True)
class ForkEdits:
    """Each field that is None stays as it was in the run."""

    inputs: dict[str, str] | None = None
    """New values of variables; the others stay."""
    prompt: PromptSpec | None = None
    model: ModelSettings | None = None
    tools: tuple[ToolSpec, ...] | None = None
    limits: dict[str, Any] = field(default_factory=dict)
    """New values of fields of `ExecutorOptions`."""
    reply_text: str | None = None
    """With `reply_calls`, the reply in place of the model's."""
    reply_calls: tuple[ToolCall, ...] = ()
    observation: str | None = None
    """What the model reads in place of the tool's result."""
    has_failed: bool = False
    """Whether that observation counts as an error."""
    calls_again: bool = False
    """Whether the tool is called again instead of reusing its result."""

    @property
    def changed_fields(self) -> list[str]:
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
    def needs_edit_permission(self) -> bool:
        return bool({"prompt", "model", "tools", "reply"} & set(self.changed_fields))


def build_edited_spec(spec: AgentSpec, edits: ForkEdits, *, run: Run) -> AgentSpec:
    """Return `spec` with the edits; raise `SpecRefused`, each problem at its field."""
    changed: dict[str, Any] = {
        name: value
        for name in ("prompt", "model", "tools")
        if (value := getattr(edits, name)) is not None
    }
    if edits.model is not None and is_different_model(spec.model, edits.model):
        changed["prices"] = None
    if edits.limits:
        changed["executor"] = with_limits(spec.executor, edits.limits)
    new = spec.model_copy(update=changed)
    validate_spec(new)
    refuse_removed_approvals(edits)
    prompt = get_prompt_of_spec(new)
    given = {**run.inputs, **(edits.inputs or {})}
    missing = [name for name in input_variables_of_prompt(prompt) if name not in given]
    if missing:
        message = _("The run has no value for {%(name)s}. Enter one under Inputs.") % {
            "name": missing[0]
        }
        raise SpecRefused([FieldError("prompt", message)])
    return new


def refuse_removed_approvals(edits: ForkEdits) -> None:
    """Raise `SpecRefused` if a tool that requires approval would run without."""
    for name in list_lifted_approvals(edits.tools or ()):
        message = _(
            '"%(tool)s" requires approval. Select "Always ask" for this tool.'
        ) % {"tool": name}
        raise SpecRefused([FieldError("tools", message)])


def build_edited_inputs(
    spec: AgentSpec, edits: ForkEdits, *, run: Run
) -> dict[str, Any]:
    """Return the inputs of the fork; raise `InputsRefused`, each problem by name."""
    old: dict[str, Any] = run.inputs
    if edits.inputs is None:
        return old
    given = {**old, **edits.inputs}
    names = {*variables_of_spec(spec), *edits.inputs}
    wanted = {name: value for name, value in given.items() if name in names}
    return {**old, **validate_inputs(spec, wanted)}


def is_different_model(one: ModelSettings, other: ModelSettings) -> bool:
    """Whether another model is used, so that other prices apply."""
    return (one.model, one.provider_id) != (other.model, other.provider_id)


def with_limits(options: ExecutorOptions, limits: dict[str, Any]) -> ExecutorOptions:
    """Return the options with other limits; raise `SpecRefused`."""
    try:
        return ExecutorOptions.model_validate({**options.model_dump(), **limits})
    except ValueError as error:
        message = _("A limit is not valid: %(error)s") % {"error": error}
        raise SpecRefused([FieldError("executor", message)]) from None
