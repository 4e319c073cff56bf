"""Prompts of other products as templates: `{name}` is a variable, `{{` a brace."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from html import unescape
from typing import NamedTuple

from runs.engine.prompts import ENGINE_VARIABLES, escape_braces
from runs.engine.types import PromptMessage

INPUT_MESSAGE = PromptMessage(role="user", template="{input}")
DOUBLE_BRACES = re.compile(r"\{\{([^{}]{1,500})\}\}")
"""`{{name}}`, as Dify, Flowise and mustache write variables."""
SINGLE_BRACES = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""`{name}` with doubled braces as text, as Python's f-strings."""
PLAIN_NAME = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""`{name}` if a doubled brace is not an escape."""
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_]+")
MAX_VARIABLE = 60


class ConvertedTemplate(NamedTuple):
    text: str
    expressions: dict[str, str]
    """The variables of the text, each with what the file had in its place.

    `input` is left out: it is the question of every run.
    """


@dataclass
class VariableNames:
    """Names of the variables in the prompts of one agent."""

    by_expression: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    numbers: Counter[str] = field(default_factory=Counter)

    def choose_name(self, expression: str, name: str) -> str:
        """Return `name`, with a number if another expression has it."""
        if expression not in self.by_expression:
            chosen = name
            while chosen in self.taken:
                self.numbers[name] += 1
                chosen = f"{name}_{self.numbers[name] + 1}"
            self.taken.add(chosen)
            self.by_expression[expression] = chosen
        return self.by_expression[expression]


def convert_template(
    text: str,
    pattern: re.Pattern[str],
    name_variable: Callable[[str], str] | None = None,
    *,
    variables: VariableNames | None = None,
) -> ConvertedTemplate:
    """Replace each match of `pattern`, whose first group is an expression.

    `name_variable` returns the variable of an expression; `variables` are those of
    the agent's other prompts.
    """
    name_variable = name_variable or build_variable_name
    variables = variables or VariableNames()
    parts: list[str] = []
    found: dict[str, str] = {}
    end = 0
    for match in pattern.finditer(text):
        if match[1] is None:
            converted = match[0]  # a brace that is doubled in both syntaxes
        else:
            expression = match[1].strip()
            name = name_variable(expression)
            if name != "input":
                name = variables.choose_name(expression, name)
                found[name] = expression
            converted = f"{{{name}}}"
        parts += [escape_braces(text[end : match.start()]), converted]
        end = match.end()
    parts.append(escape_braces(text[end:]))
    return ConvertedTemplate("".join(parts), found)


def build_variable_name(expression: str) -> str:
    """Return a name for an expression, such as `json_body_text` for `$json.body.text`.

    The names that the engine fills in get a suffix.
    """
    name = _NOT_IN_NAME.sub("_", expression).strip("_")[:MAX_VARIABLE].strip("_")
    if not name or name[0].isdigit():
        name = f"value_{name}".rstrip("_")
    return f"{name}_value" if name in ENGINE_VARIABLES else name


def build_messages(system: str, user: str = "") -> tuple[PromptMessage, ...]:
    asked = PromptMessage(role="user", template=user) if user else INPUT_MESSAGE
    if not system.strip():
        return (asked,)
    return (PromptMessage(role="system", template=system), asked)


_BLOCK_ENDS = re.compile(r"(?i)</(p|div|h[1-6]|li|ul|ol|pre)>|<br\s*/?>")
_TAGS = re.compile(r"<[^<>]{0,2000}>")
_HTML_START = re.compile(r"(?i)^\s*<(p|div|h[1-6]|ul|ol|pre|span)[\s>]")


def strip_html(text: str) -> str:
    """Return the text of a rich text editor; other text is returned as it is."""
    if not _HTML_START.match(text):
        return text
    plain = unescape(_TAGS.sub("", _BLOCK_ENDS.sub("\n", text)))
    return re.sub(r"\n{3,}", "\n\n", plain).strip()


def join_paragraphs(parts: Iterable[str]) -> str:
    return "\n\n".join(part.strip() for part in parts if part.strip())
