"""The beginning of a run's answer, for lists: read without the rest of it."""

import json
import re

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast, Substr

from runs.models import Run

READ_CHARACTERS = 400
"""Of the answer as JSON."""
SHOWN_CHARACTERS = 240
JSON_TEXT = re.compile(r'(?:[^"\\]|\\(?:u[0-9a-fA-F]{4}|[^u]))*')
"""As much of a JSON string as is whole."""
MARKUP = re.compile(
    r"\*\*|__|`+|^\s*#{1,6}\s+|^\s*[-*]\s+|^\s*>\s+|^\s*\|[\s:|-]*$|\|", re.MULTILINE
)
"""What Markdown has for the eye: emphasis, headings, lists, quotations, tables."""

LARGE_COLUMNS = (
    *("inputs", "turn_ids", "fork_edits", "earlier_inputs"),
    *("output", "output_log"),
)


def annotate_answer_start(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Read the beginning of each answer in place of the columns without a limit."""
    start = Substr(Cast("output", TextField()), 1, READ_CHARACTERS)
    return runs.defer(*LARGE_COLUMNS).annotate(answer_start=start)


def read_answer_start(run: Run) -> str:
    """Return the beginning of a succeeded run's answer as one line of plain text."""
    text: str = getattr(run, "answer_start", None) or ""
    if run.status != "succeeded" or text in ("", "null"):
        return ""
    if text.startswith('"'):
        text = decode_text_start(text[1:])
    return " ".join(MARKUP.sub("", text).split())[:SHOWN_CHARACTERS]


def decode_text_start(text: str) -> str:
    """Decode the beginning of a JSON string, after its quotation mark."""
    whole = JSON_TEXT.match(text)
    found = str(json.loads(f'"{whole[0] if whole else ""}"', strict=False))
    return found.encode(errors="ignore").decode()  # half a pair at the end
