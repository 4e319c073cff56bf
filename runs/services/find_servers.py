"""Model servers that answer on this machine, offered where a provider is made."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from runs.llm.base import Endpoint
from runs.llm.errors import ModelFailed
from runs.llm.registry import open_llm
from runs.services.open_provider import net_policy
from tools.errors import DeadlinePassed, ToolFailed
from tools.watch import Watch


class Place(NamedTuple):
    """Where a server may be, and what it speaks."""

    name: str
    kind: str
    """A key of `runs.llm.registry.KINDS`."""
    base_url: str


USUAL = (
    Place("Ollama", "ollama", "http://127.0.0.1:11434/api"),
    Place("llama.cpp", "openai", "http://127.0.0.1:8080/v1"),
    Place("vLLM", "openai", "http://127.0.0.1:8000/v1"),
    Place("LM Studio", "openai", "http://127.0.0.1:1234/v1"),
)
"""Where such servers listen unless told otherwise."""

SECONDS = 1.5


class FoundServer(NamedTuple):
    """A server that named its models."""

    name: str
    kind: str
    base_url: str
    models: tuple[str, ...]


def find_servers(usual: Sequence[Place] = USUAL) -> list[FoundServer]:
    """Ask all usual addresses at once, as a run would; return those that answer."""
    with ThreadPoolExecutor(max_workers=len(usual) or 1) as pool:
        found = pool.map(_ask, usual)
        return [server for server in found if server is not None]


def _ask(place: Place) -> FoundServer | None:
    endpoint = Endpoint(kind=place.kind, base_url=place.base_url, timeout=SECONDS)
    llm = open_llm(endpoint, net_policy())
    try:
        cards = llm.list_models(watch=Watch(seconds=SECONDS))
    except (ModelFailed, ToolFailed, DeadlinePassed):
        return None
    finally:
        llm.close()
    return FoundServer(*place, tuple(card.name for card in cards))
