"""Titles and summaries of agent and provider kinds, in the active language."""

from typing import NamedTuple

from django.utils.translation import gettext_lazy

from runs.engine.kinds.registry import AGENT_KINDS
from runs.llm.registry import PROVIDER_KINDS

KIND_TITLES = {
    "tool-calling": gettext_lazy("Tool calling"),
    "react": gettext_lazy("ReAct"),
    "react-json": gettext_lazy("ReAct with JSON actions"),
    "structured-chat": gettext_lazy("Structured chat"),
    "json-chat": gettext_lazy("JSON chat"),
    "xml": gettext_lazy("XML"),
    "conversational": gettext_lazy("Conversational"),
    "conversational-chat": gettext_lazy("Conversational chat"),
    "self-ask": gettext_lazy("Self-ask"),
    "react-docstore": gettext_lazy("ReAct over documents"),
}
KIND_SUMMARIES = {
    "tool-calling": gettext_lazy(
        "Uses the model's native function calling, several calls at once. Best for "
        "models that support it."
    ),
    "react": gettext_lazy(
        "Thinks, acts and observes in labeled lines. Works with every text model."
    ),
    "react-json": gettext_lazy(
        "Thinks in text and acts in JSON objects. For chat models that write JSON well."
    ),
    "structured-chat": gettext_lazy(
        "Writes every step as a JSON object. Tools can have several arguments."
    ),
    "json-chat": gettext_lazy(
        "Chats in JSON objects. Tool results are sent as separate messages."
    ),
    "xml": gettext_lazy(
        "Writes calls and answers in XML tags. For models trained on them."
    ),
    "conversational": gettext_lazy(
        "Holds a conversation in labeled lines, with tools."
    ),
    "conversational-chat": gettext_lazy(
        "Holds a conversation in JSON objects, with tools."
    ),
    "self-ask": gettext_lazy(
        "Splits a question into smaller ones that its single tool answers."
    ),
    "react-docstore": gettext_lazy(
        "Looks up pages and terms with actions such as Search[page], then answers."
    ),
}
PROVIDER_KIND_TITLES = {
    "openai": gettext_lazy("OpenAI-compatible server"),
    "responses": gettext_lazy("OpenAI (Responses)"),
    "anthropic": gettext_lazy("Anthropic (Messages)"),
    "demo": gettext_lazy("Demo (scripted, offline)"),
}
"""Titles that are not only a brand name."""


class KindLabel(NamedTuple):
    """How an agent kind is shown on pages."""

    name: str
    title: str
    summary: str


def get_kind_label(name: str) -> KindLabel:
    """Return the label of a kind; a kind added by an extension has its own texts."""
    kind = AGENT_KINDS.get(name)
    title = KIND_TITLES.get(name, kind.title if kind else name)
    summary = KIND_SUMMARIES.get(name, kind.summary if kind else "")
    return KindLabel(name, str(title), str(summary))


def list_kind_choices() -> list[tuple[str, str]]:
    return [(name, get_kind_label(name).title) for name in AGENT_KINDS]


def get_provider_kind_title(name: str) -> str:
    """Return the title of a provider kind, or its name if it is unknown."""
    kind = PROVIDER_KINDS.get(name)
    return str(PROVIDER_KIND_TITLES.get(name, kind.title if kind else name))


def list_provider_kind_choices() -> list[tuple[str, str]]:
    return [(name, get_provider_kind_title(name)) for name in PROVIDER_KINDS]
