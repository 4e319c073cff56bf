"""Values that nobody can guess: numbers, identifiers, a choice."""

import secrets
import uuid

from tools.errors import ToolFailed
from tools.registry import tool


class NothingToChoose(ToolFailed):
    """The range or list is empty."""

    def __init__(self) -> None:
        super().__init__("There is nothing to choose from.")


@tool(effect="read", timeout=5)
def random_number(low: int, high: int) -> int:
    """Return a random whole number from `low` to `high`, both included."""
    if high < low:
        raise NothingToChoose
    return low + secrets.randbelow(high - low + 1)


@tool(effect="read", timeout=5)
def random_choice(options: list[str]) -> str:
    """Return one of the options, each being as likely."""
    if not options:
        raise NothingToChoose
    return secrets.choice(options)


@tool(effect="read", timeout=5)
def new_uuid() -> str:
    """Return a new random UUID."""
    return str(uuid.uuid4())
