"""The kinds of provider: their titles, default addresses, and how to open them."""

from collections.abc import Callable
from dataclasses import dataclass

from runs.llm.anthropic import Anthropic
from runs.llm.base import LLM, Endpoint
from runs.llm.demo.client import Demo
from runs.llm.errors import ModelCallError
from runs.llm.ollama import Ollama
from runs.llm.openai import OpenAI
from runs.llm.responses import Responses
from tools.net.netguard import NetPolicy


@dataclass(frozen=True)
class ProviderKind:
    title: str
    open: Callable[[Endpoint, NetPolicy], LLM]
    base_url: str = ""
    """The address of the provider's own service; empty if there is none."""
    env_key: str = ""
    """The environment variable that usually holds the key."""
    needs_key: bool = False
    needs_server: bool = True
    """Whether a provider of this kind has an address."""
    takes_audio: bool = False
    """Whether sounds can be sent to it, as in Chat Completions."""


PROVIDER_KINDS: dict[str, ProviderKind] = {
    "openai": ProviderKind(
        title="OpenAI-compatible server",
        open=OpenAI,
        base_url="https://api.openai.com/v1",
        env_key="OPENAI_API_KEY",
        takes_audio=True,
    ),
    "responses": ProviderKind(
        title="OpenAI (Responses)",
        open=Responses,
        base_url="https://api.openai.com/v1",
        env_key="OPENAI_API_KEY",
        needs_key=True,
    ),
    "anthropic": ProviderKind(
        title="Anthropic (Messages)",
        open=Anthropic,
        base_url="https://api.anthropic.com/v1",
        env_key="ANTHROPIC_API_KEY",
        needs_key=True,
    ),
    "gemini": ProviderKind(
        title="Google Gemini",
        open=OpenAI,
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        env_key="GEMINI_API_KEY",
        needs_key=True,
        takes_audio=True,
    ),
    "ollama": ProviderKind(
        title="Ollama", open=Ollama, base_url="http://127.0.0.1:11434/api"
    ),
    "demo": ProviderKind(
        title="Demo (scripted, offline)",
        open=lambda endpoint, _: Demo(endpoint),
        needs_server=False,
    ),
}


def list_offline_kinds() -> list[str]:
    """Return the kinds of provider without a server: the demo, and those like it."""
    return [name for name, kind in PROVIDER_KINDS.items() if not kind.needs_server]


def open_llm(endpoint: Endpoint, policy: NetPolicy) -> LLM:
    """Return a connection to `endpoint`; nothing is sent until it is used.

    Raise `ModelCallError` for an unknown kind.
    """
    kind = PROVIDER_KINDS.get(endpoint.kind)
    if kind is None:
        raise ModelCallError(
            "bad_request",
            f"Provider kind {endpoint.kind!r} not found. Use one of"
            f" {', '.join(PROVIDER_KINDS)}.",
        )
    return kind.open(endpoint, policy)
