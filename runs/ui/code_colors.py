"""Colors for source code of models, within limits of language, size and time.

The code is hostile: many lexers of Pygments need quadratic time or more for some texts.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from time import monotonic
from typing import Any

from django.utils.html import escape
from pygments import format as format_tokens
from pygments.formatters import HtmlFormatter
from pygments.lexers import find_lexer_class_by_name

LANGUAGES = (
    *("bash", "c", "console", "cpp", "csharp", "css", "diff", "docker", "go"),
    *("html", "ini", "java", "javascript", "json", "kotlin", "php", "powershell"),
    *("python", "ruby", "rust", "sql", "swift", "toml", "typescript", "xml", "yaml"),
)
"""Their lexers were tried with hostile texts of `MAX_CODE_CHARACTERS`."""
MAX_CODE_CHARACTERS = 5_000
"""Characters of one code block; longer ones have no colors."""
MAX_CODE_CHARACTERS_PER_TEXT = 20_000
MAX_SECONDS_PER_TEXT = 0.3

FORMATTER = HtmlFormatter(nowrap=True, classprefix="h-")


class OutOfTime(Exception):
    """The code of this text took too long."""


class CodeColors:
    """Colors the code blocks of one text until its budget is used up."""

    def __init__(self, seconds: float = MAX_SECONDS_PER_TEXT) -> None:
        self.characters = MAX_CODE_CHARACTERS_PER_TEXT
        self.seconds = seconds

    def highlight(self, code: str, language: str, _attributes: str = "") -> str:
        """Return `code` as HTML, with colors if language and budget allow."""
        lexer = load_lexers().get(language.lower())
        if lexer is None or len(code) > min(MAX_CODE_CHARACTERS, self.characters):
            return str(escape(code))
        self.characters -= len(code)
        rules = lexer()  # the first use of a language compiles them
        started = monotonic()
        tokens = self._watch(rules.get_tokens(code), started + self.seconds)
        try:
            return str(format_tokens(tokens, FORMATTER))
        except OutOfTime:
            return str(escape(code))
        finally:
            self.seconds -= monotonic() - started

    def _watch(self, tokens: Iterable[Any], deadline: float) -> Iterator[Any]:
        for token in tokens:
            if monotonic() > deadline:
                raise OutOfTime
            yield token


@cache
def load_lexers() -> dict[str, Any]:
    """Return the lexer classes by each of their names."""
    lexers = [find_lexer_class_by_name(language) for language in LANGUAGES]
    return {alias: lexer for lexer in lexers for alias in lexer.aliases}
