"""What makes an agent kind: its prompt, its stop words, and how it reads and shows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from runs.engine.labels import cut_at_observation
from runs.engine.reading import unfenced, without_thinking
from runs.engine.toolbox import Toolbox
from runs.engine.types import AgentFinish, AgentStep, Message, PromptSpec, Reply


@dataclass(frozen=True)
class Call:
    """One call a reply asks for, as the model wrote it."""

    name: str
    """Already stripped (R4)."""
    input: Any
    call_id: str | None = None
    problem: str | None = None
    """Why the input cannot be read; an error of this call only (R9)."""


Decision = tuple[Call, ...] | AgentFinish


@dataclass(frozen=True)
class ShownStep:
    """One step as the model is shown it: the observation may be cut or annotated."""

    step: AgentStep
    observation: str


@dataclass(frozen=True)
class ShownRound:
    """One round as the model is shown it."""

    text: str
    """The model's text after the cut."""
    reply: Reply
    steps: tuple[ShownStep, ...]


@dataclass(frozen=True)
class Kind:
    """One way to talk with a model about tools; `registry.KINDS` lists them."""

    name: str
    title: str
    summary: str
    prompt: PromptSpec
    read: Callable[[str, Reply, Toolbox], Decision]
    """Understand a tidied reply, or raise `ParseError`."""
    tidy: Callable[[str], str]
    """Drop thinking and invented results; the rest is parsed, logged and repeated."""
    as_text: Callable[[ShownRound], str] | None = None
    """How a round reads in `{agent_scratchpad}`; None where rounds are messages."""
    as_messages: Callable[[ShownRound], tuple[Message, ...]] | None = None
    stop: tuple[str, ...] = ()
    needs_functions: bool = False
    """Whether the model must be able to call functions."""
    reserved: tuple[str, ...] = ()
    """Names no tool may have, because they end the run."""
    tools: int | None = None
    """How many tools there must be, where the format knows only so many."""


def finish(value: Any, log: str) -> AgentFinish:
    """Return the end of a run with `value` as its output."""
    return AgentFinish(return_values={"output": value}, log=log)


def tidy_before_observation(text: str) -> str:
    """Drop thinking, a fence around all, and what follows `Observation:` (R2)."""
    return unfenced(cut_at_observation(unfenced(without_thinking(text))))


def observation_lines(shown: ShownRound) -> str:
    """Repeat the model's text with its observations below (R17)."""
    results = "".join(f"\nObservation: {step.observation}" for step in shown.steps)
    return f"{shown.text.rstrip()}{results}\n"


def tidy_json(text: str) -> str:
    """Drop thinking and what follows `Observation:`; JSON is found inside fences."""
    return cut_at_observation(without_thinking(text))
