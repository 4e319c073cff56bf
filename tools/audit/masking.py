"""Values as the audit log keeps them: without secrets, and not endless."""

import json
import re
from typing import Any

SECRET_MASK = "[secret]"  # noqa: S105  # the word that stands for one
MAX_TEXT = 4_000
"""Characters of one value."""

SECRET_COLUMN = re.compile(r"sealed.*|password|digest")
SECRET_NAME = re.compile(
    r"(?i)authorization|cookie|passw|passphrase|secret|token|credential"
    r"|(^|[-_])key$|api[-_]?key|(^|[-_])auth$|signature"
)
PLACEHOLDER = re.compile(r"\{[^{}]*\}")
SECRET_IN_URL = re.compile(
    r"(?i)([?&][^=&#\s]*(?:key|token|secret|passw|auth|sig)[^=&#\s]*=)[^&#\s{}]+"
)
USERINFO_IN_URL = re.compile(r"(?<=//)[^/@\s]*:[^/@\s]*@")


def mask_json_value(value: Any, *, name: str = "", cuts: bool = True) -> Any:
    """Return a JSON value without what could be a secret, by name and by place.

    Long texts are cut, unless `cuts` is False.
    """
    if isinstance(value, dict):
        return {
            str(key): mask_json_value(one, name=str(key), cuts=cuts)
            for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [mask_json_value(one, name=name, cuts=cuts) for one in value]
    if not isinstance(value, str):
        return value
    if SECRET_NAME.search(name) and value and not PLACEHOLDER.fullmatch(value):
        return SECRET_MASK
    masked = mask_text(value)
    return truncate_audit_text(masked) if cuts else masked


def has_secret_mask(value: Any) -> bool:
    """Whether a masked JSON value lacks a secret, or a part of a text."""
    if isinstance(value, dict):
        return any(map(has_secret_mask, value.values()))
    if isinstance(value, list):
        return any(map(has_secret_mask, value))
    return isinstance(value, str) and SECRET_MASK in value


def drop_secret_masks(value: Any) -> Any:
    """Return masked arguments without the values that were secrets.

    Lists and objects that held nothing else are dropped, too. Texts of which a part
    was secret stay.
    """
    if isinstance(value, dict):
        kept = {key: drop_secret_masks(one) for key, one in value.items()}
        return {key: one for key, one in kept.items() if not is_lost(one, value[key])}
    if isinstance(value, list):
        pairs = [(drop_secret_masks(one), one) for one in value]
        return [kept for kept, one in pairs if not is_lost(kept, one)]
    return "" if value == SECRET_MASK else value


def is_lost(kept: Any, masked: Any) -> bool:
    """Whether nothing is left of a value after its secrets were dropped."""
    return not kept and kept != masked


def mask_text(text: str) -> str:
    """Return a text without the secrets that addresses in it carry, in full length."""
    if "=" in text:
        text = SECRET_IN_URL.sub(rf"\1{SECRET_MASK}", text)
    return USERINFO_IN_URL.sub(f"{SECRET_MASK}@", text) if "@" in text else text


def truncate_audit_text(text: str) -> str:
    """Return a text with its length if it is too long to keep."""
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[:MAX_TEXT]}… ({len(text)} characters)"


def is_secret_column(name: str) -> bool:
    """Whether a column holds nothing but a secret."""
    return SECRET_COLUMN.fullmatch(name) is not None


def mask_column(name: str, value: Any) -> Any:
    """Return the value of a column; of a secret one only that there is one."""
    if is_secret_column(name):
        return SECRET_MASK if value else ""
    kept = mask_json_value(value)
    if isinstance(kept, dict | list) and len(text := json.dumps(kept)) > MAX_TEXT:
        return truncate_audit_text(text)
    return kept
