"""`LLM`: the connection to a provider, independent of the wire format."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from runs.engine.types import ModelRequest, Reply
from tools.net.deadline import Deadline


@dataclass(frozen=True)
class ModelCard:
    """A model of a provider, with what the server says about it; None if unknown."""

    name: str
    functions: bool | None = None
    """Whether it supports function calling."""
    images: bool | None = None
    """Whether it reads images."""
    audio: bool | None = None
    """Whether it takes sounds."""
    stop_words: bool | None = None
    streaming: bool | None = None
    context_tokens: int | None = None
    input_price: Decimal | None = None
    """Dollars per million tokens, as all prices."""
    cached_price: Decimal | None = None
    output_price: Decimal | None = None


@dataclass(frozen=True)
class Endpoint:
    """How to reach a provider; the key is already resolved."""

    kind: str
    """`openai`, `demo` …: the module of `runs/llm/` that speaks its format."""
    base_url: str = ""
    key: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    timeout: float = 60.0
    """Seconds without a byte after which a call is given up."""
    slug: str = ""


@dataclass(frozen=True)
class WireRequest:
    """A request as it is sent to a model server."""

    url: str
    """Empty if the model needs no server."""
    headers: Mapping[str, str]
    body: bytes
    """JSON."""
    method: str = "POST"


class LLM(Protocol):
    """One attempt per call: retries are decided above, by `runs.llm.retry`."""

    def complete(
        self,
        request: ModelRequest,
        *,
        deadline: Deadline,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        """Return the reply; raise `ModelCallError` or `tools.errors.Interrupted`.

        With `on_text` (and `request.settings.stream`) the reply is streamed, and each
        new piece of answer text is passed on as it arrives.
        """
        ...

    def build_wire_request(self, request: ModelRequest) -> WireRequest:
        """Return what `complete` sends for `request`, with the endpoint's key.

        Without fields that the server has refused since the connection was opened.
        Raise `ModelCallError` like `complete`.
        """
        ...

    def list_models(self, *, deadline: Deadline) -> list[ModelCard]:
        """Return the models that the server lists; raise like `complete`."""
        ...

    def close(self) -> None: ...
