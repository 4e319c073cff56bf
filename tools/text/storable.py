"""What JSON and every database can hold."""

import json
import math
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

SURROGATE = re.compile("[\ud800-\udfff]")
UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def find_scalar_flaw(value: Any) -> str | None:
    """Return why JSON or a database could not hold `value`, a scalar."""
    if isinstance(value, str) and ("\0" in value or has_surrogate(value)):
        return "It holds a character that cannot be stored."
    if isinstance(value, float) and not math.isfinite(value):
        return "The number is too large."
    if not isinstance(value, str | bool | int | float | None):
        return f"A {type(value).__name__} is not possible here."
    return None


def has_surrogate(text: str) -> bool:
    """Whether `text` has half of a character, which UTF-8 cannot carry."""
    return SURROGATE.search(text) is not None


def replace_unstorable(text: str) -> str:
    """Return `text` with a mark in place of each character that cannot be stored."""
    return UNSTORABLE.sub("\ufffd", text)


def is_storable(value: Any) -> bool:
    """Whether all names, texts and numbers in `value` can be stored, at any depth."""
    return all(
        isinstance(one, dict | list) or find_scalar_flaw(one) is None
        for one in iter_values(value)
    )


def iter_values(value: Any) -> Iterator[Any]:
    """Yield `value`, and the names and values in it at any depth.

    Values that YAML uses twice come twice, and one that holds itself never ends.
    """
    opened: list[Iterator[Any]] = [iter([value])]
    while opened:
        for one in opened[-1]:
            yield one
            if isinstance(one, dict):
                opened.append(chain.from_iterable(one.items()))
                break
            if isinstance(one, list):
                opened.append(iter(one))
                break
        else:
            opened.pop()


def is_same_json(one: Any, other: Any) -> bool:
    """Compare JSON values including types: 1, 1.0 and true differ."""
    return type(one) is type(other) and json.dumps(one, sort_keys=True) == json.dumps(
        other, sort_keys=True
    )


def refuse_json_constant(name: str) -> Any:
    """Refuse NaN and Infinity, which Python accepts but JSON does not have."""
    raise ValueError(name)
