"""Code to start a Python tool with, and what it can import."""

from typing import NamedTuple

from django.utils.translation import gettext_lazy as _

from tools.typed_generics import StrOrPromise

MONTY_MODULES = (
    *("base64", "collections", "csv", "dataclasses", "datetime", "decimal"),
    *("functools", "hashlib", "itertools", "json", "math", "random", "re", "typing"),
)
"""Modules that tools import in Monty; CPython has the whole standard library."""


class PythonExample(NamedTuple):
    """Working code with its arguments."""

    title: StrOrPromise
    arguments: dict[str, str]
    """JSON types by name; empty for a single text input."""
    code: str


WORDS_EXAMPLE = """\
# The arguments are variables; the last expression is the result.
words = input.split()
{"words": len(words), "longest": max(words, key=len, default="")}
"""

DATES_EXAMPLE = """\
# The date that is `days` business days after `start`, such as 2026-11-20.
from datetime import date, timedelta

day = date.fromisoformat(start)
left = days
while left > 0:
    day += timedelta(days=1)
    if day.weekday() < 5:
        left -= 1
{"date": day.isoformat()}
"""

JSON_EXAMPLE = """\
# Reads a JSON list of objects and adds up what is open.
import json

rows = [row for row in json.loads(input) if row.get("status") == "open"]
{"count": len(rows), "total": sum(row.get("amount", 0) for row in rows)}
"""

PATTERN_EXAMPLE = """\
# Finds what a regular expression matches.
import re

addresses = re.findall(r"[\\w.+-]+@[\\w-]+\\.[\\w.]+", input)
sorted(set(addresses))
"""

PYTHON_EXAMPLES = (
    PythonExample(_("Count words"), {}, WORDS_EXAMPLE),
    PythonExample(
        _("Add business days"), {"start": "string", "days": "integer"}, DATES_EXAMPLE
    ),
    PythonExample(_("Read JSON"), {}, JSON_EXAMPLE),
    PythonExample(_("Find email addresses"), {}, PATTERN_EXAMPLE),
)
"""The first is the code of a new tool."""
