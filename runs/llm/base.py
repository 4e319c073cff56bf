"""`LLM`: one provider connection, whatever its wire format is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from runs.engine.types import ModelRequest, Reply
from tools.watch import Watch


@dataclass(frozen=True)
class ModelCard:
    """One model a provider offers, and what its server tells of it; None is unknown."""

    name: str
    functions: bool | None = None
    """Whether it can call functions."""
    stop_words: bool | None = None
    streaming: bool | None = None
    context_tokens: int | None = None


@dataclass(frozen=True)
class Endpoint:
    """Where and how to reach a provider; the key is already resolved."""

    kind: str
    """`openai`, `demo` …: the module of `runs/llm/` that speaks its format."""
    base_url: str = ""
    key: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    timeout: float = 60.0
    """Seconds without a byte after which a call is given up."""
    slug: str = ""


class LLM(Protocol):
    """One attempt per call: retries are decided above, by `runs.llm.retry`."""

    def ask(
        self,
        request: ModelRequest,
        *,
        watch: Watch,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        """Return the model's reply; raise `ModelFailed` or `tools.errors.Interrupted`.

        With `on_text` (and `request.settings.stream`) the reply is streamed and each
        new piece of answer text is handed over as it arrives.
        """
        ...

    def list_models(self, *, watch: Watch) -> list[ModelCard]:
        """Return the models the server names; raise like `ask`."""
        ...

    def close(self) -> None:
        """Give back the connections."""
        ...
