"""What a candidate changes of its version or draft: model, prompt, parameters."""

import json
from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from runs.engine.types import AgentSpec, FrozenModel, PromptSpec
from runs.llm.chat_completions import RESERVED_FIELDS
from runs.models import PromptTemplate
from runs.services.errors import FieldError, SpecRefused
from runs.services.spec.freeze import build_prompt_spec, use_model, validate_spec
from runs.services.spec.inline_prompt import build_prompt_for_kind

MAX_TEMPERATURE = 2


class CandidateChanges(FrozenModel):
    """What differs from the version or draft; what is empty stays."""

    model: str = ""
    """Of the same provider."""
    instructions: str = ""
    """In place of its prompt, as on the page of an agent."""
    prompt: str = ""
    """Slug of a prompt of the library that is used in place of its own."""
    prompt_text: PromptSpec | None = None
    """That prompt, as it was when the experiment was created."""
    parameters: dict[str, Any] = {}
    """Added to its own and replacing those of the same name; null removes one."""

    def __bool__(self) -> bool:
        return self != CandidateChanges()

    @property
    def prompt_field(self) -> str:
        """The field that replaces the prompt; empty if none does."""
        if self.prompt_text is not None:
            return "prompt"
        return "instructions" if self.instructions else ""

    def dump_changed(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_defaults=True)


def use_library_prompt(
    changes: CandidateChanges, prompt: PromptTemplate
) -> CandidateChanges:
    """Return the changes with a prompt of the library as it is now."""
    text = build_prompt_spec(prompt)
    return changes.model_copy(update={"prompt": prompt.slug, "prompt_text": text})


def apply_candidate_changes(spec: AgentSpec, changes: CandidateChanges) -> AgentSpec:
    """Return `spec` with the changes; raise `SpecRefused`, each error at its field."""
    if problems := list(find_parameter_problems(changes.parameters)):
        raise SpecRefused(problems)
    removed = {name for name, value in changes.parameters.items() if value is None}
    parameters = {
        name: value
        for name, value in {**spec.model.parameters, **changes.parameters}.items()
        if name not in removed
    }
    model = spec.model.model_copy(update={"parameters": parameters})
    spec = spec.model_copy(update={"model": model})
    if changes.model:
        spec = use_model(spec, model.model_copy(update={"model": changes.model}))
    if field := changes.prompt_field:
        prompt = changes.prompt_text or build_prompt_for_kind(
            spec.kind, changes.instructions
        )
        spec = spec.model_copy(update={"prompt": prompt})
    try:
        validate_spec(spec)
    except SpecRefused as refused:
        raise SpecRefused(
            one._replace(field=field)
            if field and one.field.startswith("prompt")
            else one
            for one in refused.errors
        ) from None
    return spec


def find_parameter_problems(parameters: dict[str, Any]) -> Iterator[FieldError]:
    for name in sorted(RESERVED_FIELDS & parameters.keys()):
        text = _('A candidate cannot set the parameter "%(name)s". Remove it.')
        yield FieldError("parameters", text % {"name": name})
    temperature = parameters.get("temperature")
    if temperature is not None and not is_number(temperature, 0, MAX_TEMPERATURE):
        text = _("Enter a number from 0 to %(limit)d for temperature.")
        yield FieldError("parameters.temperature", text % {"limit": MAX_TEMPERATURE})
    most = parameters.get("max_tokens")
    if most is not None and (not isinstance(most, int) or not is_number(most, 1)):
        text = _("Enter a whole number from 1 for max_tokens.")
        yield FieldError("parameters.max_tokens", text)


def is_number(value: object, least: float, most: float = float("inf")) -> bool:
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    return is_one and least <= value <= most  # type: ignore[operator]  # a number


def list_change_labels(changes: CandidateChanges) -> list[str]:
    labels = [changes.model] if changes.model else []
    if changes.prompt_text is not None:
        labels.append(_('prompt "%(name)s"') % {"name": changes.prompt})
    elif changes.instructions:
        labels.append(_("other instructions"))
    for name, value in changes.parameters.items():
        text = (
            value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        )
        labels.append(
            _("without %(name)s") % {"name": name}
            if value is None
            else f"{name} {text}"
        )
    return labels
