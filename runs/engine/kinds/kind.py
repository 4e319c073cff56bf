"""An agent kind: its prompt, stop words, and how it parses replies and shows rounds."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from runs.engine.parsing.labels import cut_at_observation
from runs.engine.parsing.reply_text import strip_code_fence, strip_thinking
from runs.engine.toolbox import Toolbox
from runs.engine.types import AgentFinish, AgentStep, Message, PromptSpec, Reply


@dataclass(frozen=True)
class ParsedCall:
    """A call that a reply requests, as the model wrote it."""

    name: str
    """Already stripped (R4)."""
    input: Any
    call_id: str | None = None
    problem: str | None = None
    """Why the input cannot be parsed; an error of this call only (R9)."""


_LABEL = re.compile(
    r"(?i:\b(?:action|final[^\S\n]{1,9}answer|ai)\b[^\n:：]{0,20}[:：])"
)
_OBJECT = re.compile(r"\{|(?i:final[^\S\n]{1,9}answer)")

Decision = tuple[ParsedCall, ...] | AgentFinish


@dataclass(frozen=True)
class ScratchpadStep:
    """A step as shown to the model; the observation may be truncated or annotated."""

    step: AgentStep
    observation: str


@dataclass(frozen=True)
class ScratchpadRound:
    """A round as shown to the model."""

    text: str
    """The model's text after the cut."""
    reply: Reply
    steps: tuple[ScratchpadStep, ...]


@dataclass(frozen=True)
class AgentKind:
    """One format for tool use; `registry.AGENT_KINDS` lists them."""

    name: str
    title: str
    summary: str
    prompt: PromptSpec
    parse_reply: Callable[[str, Reply, Toolbox], Decision]
    """Parse a tidied reply; raise `ParseError`."""
    tidy: Callable[[str], str]
    """Drop reasoning and invented results; the rest is parsed, logged and repeated."""
    as_text: Callable[[ScratchpadRound], str] | None = None
    """A round as text in `{agent_scratchpad}`; None if rounds are messages."""
    as_messages: Callable[[ScratchpadRound], tuple[Message, ...]] | None = None
    stop: tuple[str, ...] = ()
    needs_functions: bool = False
    """Whether the model must support function calling."""
    reserved: tuple[str, ...] = ()
    """Names that no tool may have, because they end the run."""
    tools: int | None = None
    """The exact number of tools, if the format allows only that many."""


def build_finish(value: Any, log: str) -> AgentFinish:
    return AgentFinish(return_values={"output": value}, log=log)


def tidy_before_observation(text: str) -> str:
    """Drop reasoning, an outer code fence, and everything after `Observation:` (R2)."""
    thought_out = strip_code_fence(strip_thinking(text, _LABEL))
    return strip_code_fence(cut_at_observation(thought_out))


def render_observation_lines(shown: ScratchpadRound) -> str:
    """Repeat the model's text with its observations below (R17)."""
    results = "".join(f"\nObservation: {step.observation}" for step in shown.steps)
    return f"{shown.text.rstrip()}{results}\n"


def tidy_json(text: str) -> str:
    """Drop reasoning and everything after `Observation:`; fences may stay."""
    return cut_at_observation(strip_thinking(text, _OBJECT))
