"""Values as the audit log keeps them: without secrets, and not endless."""

import json
import re
from typing import Any

SECRET = "[secret]"  # noqa: S105  # the word that stands for one
LONGEST = 4_000
"""Characters of one value."""

SECRET_COLUMN = re.compile(r"sealed.*|password|digest")
SECRET_NAME = re.compile(
    r"(?i)authorization|cookie|passw|passphrase|secret|token|credential"
    r"|(^|[-_])key$|api[-_]?key|(^|[-_])auth$|signature"
)
PLACEHOLDER = re.compile(r"\{[^{}]*\}")
IN_ADDRESS = re.compile(
    r"(?i)([?&][^=&#\s]*(?:key|token|secret|passw|auth|sig)[^=&#\s]*=)[^&#\s{}]+"
)
PERSON_IN_ADDRESS = re.compile(r"(?<=//)[^/@\s]*:[^/@\s]*@")


def masked(value: Any, *, name: str = "") -> Any:
    """Return a JSON value without what could be a secret, by name and by place."""
    if isinstance(value, dict):
        return {str(key): masked(one, name=str(key)) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [masked(one, name=name) for one in value]
    if not isinstance(value, str):
        return value
    if SECRET_NAME.search(name) and value and not PLACEHOLDER.fullmatch(value):
        return SECRET
    return cut(masked_text(value))


def masked_text(text: str) -> str:
    """Return a text without the secrets that addresses in it carry, in full length."""
    text = IN_ADDRESS.sub(rf"\1{SECRET}", text)
    return PERSON_IN_ADDRESS.sub(f"{SECRET}@", text)


def cut(text: str) -> str:
    """Return a text with its length where it is too long to keep."""
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… ({len(text)} characters)"


def is_secret(name: str) -> bool:
    """Whether a column holds nothing but a secret."""
    return SECRET_COLUMN.fullmatch(name) is not None


def masked_column(name: str, value: Any) -> Any:
    """Return the value of a column; of a secret one only that there is one."""
    if is_secret(name):
        return SECRET if value else ""
    kept = masked(value)
    if isinstance(kept, dict | list) and len(text := json.dumps(kept)) > LONGEST:
        return cut(text)
    return kept
