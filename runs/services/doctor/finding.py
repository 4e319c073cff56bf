"""What `manage.py doctor` finds out."""

from typing import Literal, NamedTuple

Status = Literal["ok", "warning", "error"]


class Finding(NamedTuple):
    """One line of the report; messages name no secrets."""

    check: str
    status: Status
    message: str
    fix: str = ""
    """What to do; empty if nothing has to be done."""
