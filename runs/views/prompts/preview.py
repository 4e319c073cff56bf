"""The first request of a run that has not been started: the prompt, rendered."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runs.engine.effects import CallModel
from runs.engine.executor import execute
from runs.engine.kinds.registry import KINDS
from runs.engine.prompts import input_variables_of
from runs.engine.types import AgentSpec, ModelRequest
from runs.views.run_prompt import tokens_in


@dataclass(frozen=True)
class Preview:
    """What a page shows beside a form."""

    mistakes: list[str] = field(default_factory=list)
    asked: tuple[str, ...] = ()
    """Variables a run is asked for."""
    filled: tuple[str, ...] = ()
    """Variables the engine fills in."""
    request: ModelRequest | None = None
    """None where a run would end before its first call."""

    @property
    def tokens(self) -> int:
        """Estimated tokens of the request."""
        if self.request is None:
            return 0
        return sum(tokens_in(message.text) for message in self.request.messages)


def first_request(
    spec: AgentSpec, inputs: Mapping[str, Any] | None = None
) -> ModelRequest | None:
    """Return what the engine itself would send first; missing inputs stay `{name}`."""
    names = input_variables_of(spec.prompt or KINDS[spec.kind].prompt)
    values = {name: f"{{{name}}}" for name in names} | dict(inputs or {})
    effect = next(execute(spec, values), None)
    return effect.request if isinstance(effect, CallModel) else None
