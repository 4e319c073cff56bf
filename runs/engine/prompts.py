"""Prompt templates: plain placeholders, replaced once, values never expanded again.

`{name}` is a variable, `{{` and `}}` are braces. Every other single brace is a mistake
that `flaws_of` names; rendering leaves it as it is.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from runs.engine.observations import text_of
from runs.engine.types import PromptSpec

FROM_ENGINE = ("tools", "tool_names", "agent_scratchpad", "chat_history")
"""Variables the engine fills in."""

_PIECE = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}|[{}]")
_AROUND = re.compile(r"\{[^{}\n]*\}?|\}")
"""A single brace, with what it encloses."""


class Flaw(NamedTuple):
    """A brace that is neither part of a variable nor doubled."""

    line: int
    excerpt: str

    def __str__(self) -> str:
        return (
            f"Line {self.line}: {self.excerpt!r} is no variable. Write {{name}} for a "
            "variable (letters, digits and underscores), {{ and }} for braces as text."
        )


def render(template: str, values: Mapping[str, Any]) -> str:
    """Return `template` with its variables replaced; an unknown one stays as it is."""

    def piece(match: re.Match[str]) -> str:
        name = match[1]
        if name is not None:
            return text_of(values[name]) if name in values else match[0]
        return match[0][0]

    return _PIECE.sub(piece, template)


def templates_of(prompt: PromptSpec) -> tuple[str, ...]:
    """Return the texts a prompt is made of, in order."""
    if prompt.messages is not None:
        return tuple(message.template for message in prompt.messages)
    return (prompt.template or "",)


def variables_of(prompt: PromptSpec) -> tuple[str, ...]:
    """Return the names of all variables, each once, in order of appearance."""
    names = (
        match[1]
        for text in templates_of(prompt)
        for match in _PIECE.finditer(text)
        if match[1] is not None
    )
    return tuple(dict.fromkeys(names))


def input_variables_of(prompt: PromptSpec) -> tuple[str, ...]:
    """Return the variables that a run's inputs must have."""
    return tuple(
        name
        for name in variables_of(prompt)
        if name not in FROM_ENGINE and name not in prompt.partials
    )


def flaws_of(template: str) -> Iterator[Flaw]:
    """Yield each single brace, or pair of them, that encloses no variable."""
    is_open = False
    for match in _PIECE.finditer(template):
        if is_open and match[0] == "}":
            is_open = False
        elif match[0] in ("{", "}"):
            is_open = match[0] == "{"
            around = next(_AROUND.finditer(template, match.start()))[0]
            line = template.count("\n", 0, match.start()) + 1
            yield Flaw(line, around[:30].rstrip())
