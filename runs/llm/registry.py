"""The kinds of provider: their names, usual addresses, and how they are opened."""

from collections.abc import Callable
from dataclasses import dataclass

from runs.llm.anthropic import Anthropic
from runs.llm.base import LLM, Endpoint
from runs.llm.demo import Demo
from runs.llm.errors import ModelFailed
from runs.llm.gemini import open_gemini
from runs.llm.ollama import Ollama
from runs.llm.openai import OpenAI
from runs.llm.responses import Responses
from tools.netguard import NetPolicy


@dataclass(frozen=True)
class Kind:
    """One kind of provider."""

    title: str
    open: Callable[[Endpoint, NetPolicy], LLM]
    base_url: str = ""
    """Where the provider's own service is; empty where there is none."""
    env_key: str = ""
    """The environment variable that usually holds the key."""
    needs_key: bool = False


KINDS: dict[str, Kind] = {
    "openai": Kind(
        title="OpenAI-compatible server",
        open=OpenAI,
        base_url="https://api.openai.com/v1",
        env_key="OPENAI_API_KEY",
    ),
    "responses": Kind(
        title="OpenAI (Responses)",
        open=Responses,
        base_url="https://api.openai.com/v1",
        env_key="OPENAI_API_KEY",
        needs_key=True,
    ),
    "anthropic": Kind(
        title="Anthropic (Messages)",
        open=Anthropic,
        base_url="https://api.anthropic.com/v1",
        env_key="ANTHROPIC_API_KEY",
        needs_key=True,
    ),
    "gemini": Kind(
        title="Google Gemini",
        open=open_gemini,
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        env_key="GEMINI_API_KEY",
        needs_key=True,
    ),
    "ollama": Kind(title="Ollama", open=Ollama, base_url="http://127.0.0.1:11434/api"),
    "demo": Kind(
        title="Demo (scripted, offline)", open=lambda endpoint, _: Demo(endpoint)
    ),
}


def open_llm(endpoint: Endpoint, policy: NetPolicy) -> LLM:
    """Return a connection to `endpoint`; nothing is sent before it is asked.

    Raises `ModelFailed` for an unknown kind.
    """
    kind = KINDS.get(endpoint.kind)
    if kind is None:
        raise ModelFailed(
            "bad_request",
            f"There is no provider kind {endpoint.kind!r}. Use one of"
            f" {', '.join(KINDS)}.",
        )
    return kind.open(endpoint, policy)
