"""Model servers on this machine, offered when a provider is created."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from runs.llm.base import Endpoint
from runs.llm.errors import ModelCallError
from runs.llm.registry import open_llm
from runs.services.providers.client import get_provider_net_policy
from tools.errors import DeadlineExceeded, ToolFailed
from tools.net.deadline import Deadline


class ServerCandidate(NamedTuple):
    """Where a server may be, and its protocol."""

    name: str
    kind: str
    """A key of `runs.llm.registry.PROVIDER_KINDS`."""
    base_url: str


DEFAULT_CANDIDATES = (
    ServerCandidate("Ollama", "ollama", "http://127.0.0.1:11434/api"),
    ServerCandidate("llama.cpp", "openai", "http://127.0.0.1:8080/v1"),
    ServerCandidate("vLLM", "openai", "http://127.0.0.1:8000/v1"),
    ServerCandidate("LM Studio", "openai", "http://127.0.0.1:1234/v1"),
)
"""Where such servers listen by default."""

TIMEOUT_SECONDS = 1.5


class LocalServer(NamedTuple):
    """A server that listed its models."""

    name: str
    kind: str
    base_url: str
    models: tuple[str, ...]


def discover_local_servers(
    usual: Sequence[ServerCandidate] = DEFAULT_CANDIDATES,
) -> list[LocalServer]:
    """Query all default addresses at once; return the servers that respond."""
    with ThreadPoolExecutor(max_workers=len(usual) or 1) as pool:
        found = pool.map(_probe_server, usual)
        return [server for server in found if server is not None]


def _probe_server(place: ServerCandidate) -> LocalServer | None:
    endpoint = Endpoint(
        kind=place.kind, base_url=place.base_url, timeout=TIMEOUT_SECONDS
    )
    llm = open_llm(endpoint, get_provider_net_policy())
    try:
        cards = llm.list_models(deadline=Deadline(seconds=TIMEOUT_SECONDS))
    except (ModelCallError, ToolFailed, DeadlineExceeded):
        return None
    finally:
        llm.close()
    return LocalServer(*place, tuple(card.name for card in cards))
