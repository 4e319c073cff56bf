"""Success messages with a button that undoes what was done."""

import json
from typing import NamedTuple

from django.contrib import messages
from django.contrib.messages.storage.base import Message
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

PREFIX = "undo:"


class UndoForm(NamedTuple):
    """What the button posts, and where."""

    url: str
    fields: list[tuple[str, str]]


def add_message_with_undo(
    request: HttpRequest, text: str, url: str, **fields: str | list[str]
) -> None:
    """Add a success message; its button posts the fields to the reverse action."""
    pairs = [
        (name, value)
        for name, values in fields.items()
        for value in ([values] if isinstance(values, str) else values)
    ]
    messages.success(
        request, text, extra_tags=f"{PREFIX}{json.dumps([url, pairs], default=str)}"
    )


def add_switch_message(
    request: HttpRequest, noun: str, row: Model, *, is_on: bool
) -> None:
    """Say that a row was paused or resumed, with the reverse as its undo."""
    text = _("%(name)s resumed.") if is_on else _("%(name)s paused.")
    add_message_with_undo(
        request,
        text % {"name": row},
        reverse(f"{noun}-switch", args=[row.pk]),
        on="0" if is_on else "1",
    )


def read_undo_form(message: Message) -> UndoForm | None:
    """Return the form of a message; None if it has none."""
    tags = message.extra_tags or ""
    if not tags.startswith(PREFIX):
        return None
    url, pairs = json.loads(tags.removeprefix(PREFIX))
    return UndoForm(url, [(name, value) for name, value in pairs])
