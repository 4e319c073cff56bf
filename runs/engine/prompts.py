"""Prompt templates: plain placeholders, replaced once, values never expanded again.

`{name}` is a variable, `{{` and `}}` are literal braces. `find_template_problems`
reports every other brace; rendering leaves it as it is.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from runs.engine.observations import stringify_value
from runs.engine.types import PromptSpec

ENGINE_VARIABLES = ("tools", "tool_names", "agent_scratchpad", "chat_history")
"""Filled in by the engine."""

_PIECE = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}|[{}]")
_AROUND = re.compile(r"\{[^{}\n]*\}?|\}")
"""A single brace, with the text that it encloses."""


class TemplateProblem(NamedTuple):
    """A brace that is neither part of a variable nor doubled."""

    line: int
    excerpt: str

    def __str__(self) -> str:
        return (
            f"Line {self.line}: {self.excerpt!r} is not a variable. Write {{name}} for "
            "a variable (letters, digits and underscores), {{ and }} for braces as "
            "text."
        )


def render_template(template: str, values: Mapping[str, Any]) -> str:
    """Replace the variables of `template`; unknown ones stay as they are."""

    def piece(match: re.Match[str]) -> str:
        name = match[1]
        if name is not None:
            return stringify_value(values[name]) if name in values else match[0]
        return match[0][0]

    return _PIECE.sub(piece, template)


def escape_braces(text: str) -> str:
    """Return `text` as a template without variables."""
    return text.replace("{", "{{").replace("}", "}}")


def templates_of_prompt(prompt: PromptSpec) -> tuple[str, ...]:
    """Return the texts of a prompt, in order."""
    if prompt.messages is not None:
        return tuple(message.template for message in prompt.messages)
    return (prompt.template or "",)


def variables_of_prompt(prompt: PromptSpec) -> tuple[str, ...]:
    """Return the names of all variables, each once, in order of appearance."""
    names = (
        match[1]
        for text in templates_of_prompt(prompt)
        for match in _PIECE.finditer(text)
        if match[1] is not None
    )
    return tuple(dict.fromkeys(names))


def input_variables_of_prompt(prompt: PromptSpec) -> tuple[str, ...]:
    """Return the variables that the inputs of a run must contain."""
    return tuple(
        name
        for name in variables_of_prompt(prompt)
        if name not in ENGINE_VARIABLES and name not in prompt.partials
    )


def find_template_problems(template: str) -> Iterator[TemplateProblem]:
    """Yield each single brace, or pair of braces, that does not enclose a variable."""
    is_open = False
    for match in _PIECE.finditer(template):
        if is_open and match[0] == "}":
            is_open = False
        elif match[0] in ("{", "}"):
            is_open = match[0] == "{"
            around = next(_AROUND.finditer(template, match.start()))[0]
            line = template.count("\n", 0, match.start()) + 1
            yield TemplateProblem(line, around[:30].rstrip())
