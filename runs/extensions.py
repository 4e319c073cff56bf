"""What an operator's module needs to add kinds of agents, providers and evaluators.

`AGENTSITE_EXTENSIONS` names the modules; see docs/extensions.md. Only these names are
meant for other code.

ExtensionBroken        a module cannot be imported, or registers what it must not
"""

import importlib
import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from runs.engine.errors import ParseError
from runs.engine.kinds.kind import (
    AgentKind,
    Decision,
    ParsedCall,
    ScratchpadRound,
    ScratchpadStep,
    build_finish,
    render_observation_lines,
    tidy_before_observation,
)
from runs.engine.kinds.registry import (
    AGENT_KINDS,
    OUTPUT_PARSERS,
    PARSING_ERROR_HANDLERS,
    OutputParser,
    ParsingErrorHandler,
)
from runs.engine.toolbox import Toolbox
from runs.engine.types import (
    AgentFinish,
    Message,
    ModelRequest,
    PromptMessage,
    PromptSpec,
    Reply,
    ToolCall,
    Usage,
)
from runs.evaluation.errors import NotApplicable, NotScored
from runs.evaluation.kind import EvaluationInput, EvaluatorConfig, EvaluatorKind
from runs.evaluation.registry import EVALUATOR_KINDS
from runs.evaluation.types import EvaluationExample, EvaluationRecord, ScoreResult
from runs.llm.base import LLM, Endpoint, ModelCard, WireRequest
from runs.llm.errors import ModelCallError
from runs.llm.openai import OpenAI
from runs.llm.registry import PROVIDER_KINDS, ProviderKind
from tools.net.deadline import Deadline
from tools.net.netguard import NetPolicy

__all__ = [
    "LLM",
    "AgentFinish",
    "AgentKind",
    "Deadline",
    "Decision",
    "Endpoint",
    "EvaluationExample",
    "EvaluationInput",
    "EvaluationRecord",
    "EvaluatorConfig",
    "EvaluatorKind",
    "ExtensionBroken",
    "Message",
    "ModelCallError",
    "ModelCard",
    "ModelRequest",
    "NetPolicy",
    "NotApplicable",
    "NotScored",
    "OpenAI",
    "OutputParser",
    "ParseError",
    "ParsedCall",
    "ParsingErrorHandler",
    "PromptMessage",
    "PromptSpec",
    "ProviderKind",
    "Reply",
    "ScoreResult",
    "ScratchpadRound",
    "ScratchpadStep",
    "ToolCall",
    "Toolbox",
    "Usage",
    "WireRequest",
    "build_finish",
    "register_agent_kind",
    "register_evaluator_kind",
    "register_output_parser",
    "register_parsing_error_handler",
    "register_provider_kind",
    "render_observation_lines",
    "tidy_before_observation",
]

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,19}")

Registered = TypeVar("Registered")


class ExtensionBroken(Exception):
    """A module of the operator cannot be used."""

    def __init__(self, module: str, why: BaseException) -> None:
        super().__init__(
            f"The variable AGENTSITE_EXTENSIONS names {module!r}, which cannot be "
            f"imported: {type(why).__name__}: {why}"
        )


def register_agent_kind(kind: AgentKind) -> None:
    """Add a kind of agent; raise `ValueError` if its name is invalid or taken."""
    _register(AGENT_KINDS, "agent kind", kind.name, kind)


def register_provider_kind(name: str, kind: ProviderKind) -> None:
    """Add a kind of provider; raise `ValueError` if its name is invalid or taken."""
    _register(PROVIDER_KINDS, "provider kind", name, kind)


def register_evaluator_kind(kind: EvaluatorKind) -> None:
    """Add a kind of evaluator; raise `ValueError` if its name is invalid or taken."""
    _register(EVALUATOR_KINDS, "evaluator kind", kind.name, kind)


def register_output_parser(name: str) -> Callable[[OutputParser], OutputParser]:
    """Register the decorated function: it parses replies in place of the kind's parser.

    It gets the tidied text, the whole reply and the tools, returns calls or a finish,
    and raises `ParseError`. Agents select it with the option `output_parser`.
    """
    return _build_decorator(OUTPUT_PARSERS, "output parser", name)


def register_parsing_error_handler(
    name: str,
) -> Callable[[ParsingErrorHandler], ParsingErrorHandler]:
    """Register the decorated function: it writes what the model gets to read.

    It gets the error and the model's text, and returns the observation. Agents select
    it with the option `parsing_error_handler`.
    """
    return _build_decorator(PARSING_ERROR_HANDLERS, "parsing-error handler", name)


def _build_decorator(
    registry: dict[str, Registered], what: str, name: str
) -> Callable[[Registered], Registered]:
    def register(thing: Registered) -> Registered:
        _register(registry, what, name, thing)
        return thing

    return register


def _register(
    registry: dict[str, Registered], what: str, name: str, thing: Registered
) -> None:
    if not NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot name an extension: use 1 to 20 small letters, digits and "
            "hyphens."
        )
    if name in registry:
        raise ValueError(f"There already is one {what} {name!r}.")
    registry[name] = thing


def load_extensions(modules: Iterable[str]) -> None:
    """Import the modules, which register what they add; raise `ExtensionBroken`."""
    for module in modules:
        try:
            importlib.import_module(module)
        except (Exception, SystemExit) as error:  # foreign code
            raise ExtensionBroken(module, error) from error
