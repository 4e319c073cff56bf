"""The first request of a run before it starts: the rendered prompt."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runs.engine.effects import CallModel
from runs.engine.executor import run_agent_loop
from runs.engine.kinds.registry import get_prompt_of_spec
from runs.engine.prompts import input_variables_of_prompt
from runs.engine.types import AgentSpec, ModelRequest
from runs.views.run.prompt import estimate_text_tokens


@dataclass(frozen=True)
class RequestPreview:
    """The preview that a page shows beside a form."""

    mistakes: list[str] = field(default_factory=list)
    input_variables: tuple[str, ...] = ()
    """Variables that a run requires."""
    engine_variables: tuple[str, ...] = ()
    """Variables that the engine fills in."""
    request: ModelRequest | None = None
    """None if a run would end before its first call."""

    @property
    def tokens(self) -> int:
        """Estimated tokens of the request."""
        if self.request is None:
            return 0
        return sum(
            estimate_text_tokens(message.text) for message in self.request.messages
        )


def build_first_request(
    spec: AgentSpec, inputs: Mapping[str, Any] | None = None
) -> ModelRequest | None:
    """Return the first request of the engine; missing inputs stay `{name}`."""
    names = input_variables_of_prompt(get_prompt_of_spec(spec))
    values = {name: f"{{{name}}}" for name in names} | dict(inputs or {})
    effect = next(run_agent_loop(spec, values), None)
    return effect.request if isinstance(effect, CallModel) else None
