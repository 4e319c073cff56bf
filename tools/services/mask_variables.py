"""Masking what could be a secret among the variables of code that failed."""

import re
from collections.abc import Iterator
from typing import Any

from tools.audit.masking import SECRET_MASK, SECRET_NAME, mask_text
from tools.sandbox.failed_frame import FailedFrame, VariableText
from tools.text.secret_spellings import list_secret_spellings
from tools.text.storable import replace_unstorable

MAX_SHOWN = 200
"""Characters of a value that the page shows."""

MIN_SECRET = 4
"""Shorter ones are not searched for: they occur everywhere."""

NAMED_TEXT = re.compile(
    r"""(?P<name>(?:['"][^'"]{1,100}['"]:[ ]|\b\w{1,100}=))"""
    r"""b?(?:'(?:[^'\\]|\\.)*(?:'|\\?$)|"(?:[^"\\]|\\.)*(?:"|\\?$))"""
)
"""A text after its key or attribute, as Python writes it; the end may be cut off."""


def mask_frame(frame: FailedFrame, tool_input: Any) -> FailedFrame:
    """Return the variables as they are shown.

    Masked are values whose name says that they are secret, and secret arguments of
    the call wherever they occur.
    """
    secrets = {
        spelling
        for secret in iter_secret_texts(tool_input, name="")
        for spelling in list_secret_spellings(secret)
    }
    shown = [
        VariableText(
            replace_unstorable(one.name),
            mask_value_text(one.name, replace_unstorable(one.value), secrets),
        )
        for one in frame.variables
    ]
    return FailedFrame(frame.line, tuple(shown))


def mask_value_text(name: str, text: str, secrets: set[str]) -> str:
    if is_secret(name):
        return SECRET_MASK
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, SECRET_MASK)
    text = mask_text(NAMED_TEXT.sub(mask_named_text, text))
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def mask_named_text(found: re.Match[str]) -> str:
    name = found["name"]
    return f"{name}{SECRET_MASK}" if is_secret(name) else found[0]


def iter_secret_texts(value: Any, *, name: str) -> Iterator[str]:
    """Yield the texts in arguments whose names say that they are secret."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from iter_secret_texts(one, name=str(key))
    elif isinstance(value, list):
        for one in value:
            yield from iter_secret_texts(one, name=name)
    elif isinstance(value, str) and len(value) >= MIN_SECRET and is_secret(name):
        yield value


def is_secret(name: str) -> bool:
    return SECRET_NAME.search(name) is not None
