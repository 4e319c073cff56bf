"""What a file of another product becomes, and what it cannot become."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from runs.engine.types import PromptMessage
from tools.spec import Effect


class SkippedPart(NamedTuple):
    """A part of the file that is not imported."""

    part: str
    """As the file names it, for example `Tool “Gmail”`."""
    reason: str
    """A sentence on why, and on what to do instead if something can be done."""


@dataclass(frozen=True)
class ConvertedModel:
    """The model that a file names; empty if it names none."""

    provider: str = ""
    """The other product's word for the model server, such as `langgenius/openai`."""
    model: str = ""
    base_url: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ConvertedTool:
    name: str
    kind: str
    """A key of `tools.kinds.registry.KINDS`: function, http or python."""
    config: dict[str, Any]
    description: str | None = None
    effect: Effect | None = None
    args_schema: dict[str, Any] | None = None


@dataclass(frozen=True)
class ConvertedAgent:
    key: str
    """What `agents` of other agents call it; unique in the file."""
    name: str
    messages: tuple[PromptMessage, ...]
    description: str = ""
    model: ConvertedModel = ConvertedModel()
    tools: tuple[ConvertedTool, ...] = ()
    """An agent gets the first of several with one name that is possible here."""
    agents: tuple[str, ...] = ()
    """Keys of the agents that it calls as tools."""
    executor: dict[str, Any] = field(default_factory=dict)
    suggested_questions: tuple[str, ...] = ()
    memory: bool = False


@dataclass(frozen=True)
class ConvertedPrompt:
    """A prompt that no agent of the file uses."""

    name: str
    messages: tuple[PromptMessage, ...]


@dataclass(frozen=True)
class Conversion:
    agents: tuple[ConvertedAgent, ...] = ()
    prompts: tuple[ConvertedPrompt, ...] = ()
    skipped: tuple[SkippedPart, ...] = ()
