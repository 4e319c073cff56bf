"""What is wrong with a text that should be JSON, and where."""

import json

WORDS = {
    "Expecting ',' delimiter": "a comma or a closing bracket is missing",
    "Expecting ':' delimiter": "a colon is missing after the name",
    "Expecting property name enclosed in double quotes": "a name in double quotes "
    "is missing",
    "Expecting value": "a value is missing, or is a text without quotes",
    "Extra data": "something follows after the end",
    "Unterminated string starting at": "a text has no closing quote",
    "Invalid control character at": "a text has no closing quote before the line ends",
}
"""What Python says, and what we say instead."""


def json_flaw(text: str) -> str:
    """Return the line of the first mistake with its reason; nothing where none is."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"Line {error.lineno}: {WORDS.get(error.msg, error.msg.lower())}."
    except (ValueError, RecursionError):
        return "It is nested too deeply, or has a number that is too long."
    return ""
