"""What a revision of a tool changed: each field before and after, long ones by line."""

import difflib
import json
from dataclasses import dataclass
from typing import Any

from tools.forms.kinds import FORMS
from tools.forms.tool import plain_number
from tools.models import ToolRevision

SHORT = 90
"""Characters of a value that is shown as it is."""

MAX_LINES = 400


@dataclass(frozen=True)
class FieldChange:
    """One field; `lines` where its values are long."""

    name: str
    before: str
    after: str
    lines: tuple[tuple[str, str], ...] = ()
    """`(mark, text)`, the mark being `-`, `+`, or a space."""


def changes_of(revision: ToolRevision) -> list[FieldChange] | None:
    """Return what differs from the revision before; None for the first."""
    before = (
        ToolRevision.objects.filter(tool=revision.tool_id, number__lt=revision.number)
        .order_by("-number")
        .first()
    )
    if before is None:
        return None
    old, new = flat(before.body), flat(revision.body)
    return [
        change_of(label_of(revision.tool.kind, name), old.get(name), new.get(name))
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    ]


def flat(body: dict[str, Any]) -> dict[str, Any]:
    """Return a definition with the keys of its `config` as fields of their own."""
    config = body.get("config")
    parts = config if isinstance(config, dict) else {}
    rest = {name: value for name, value in body.items() if name != "config"}
    return {**rest, **{f"config.{name}": value for name, value in parts.items()}}


def label_of(kind: str, name: str) -> str:
    """Return what the form of the kind calls a field."""
    name = name.removeprefix("config.")
    field = FORMS[kind].base_fields.get(name) if kind in FORMS else None
    return str(field.label) if field and field.label else name.replace("_", " ")


def change_of(name: str, before: Any, after: Any) -> FieldChange:
    """Return one field's change, by line where a value is long."""
    texts = [text_of(before), text_of(after)]
    if all(len(text) <= SHORT and "\n" not in text for text in texts):
        return FieldChange(name, texts[0], texts[1])
    return FieldChange(name, "", "", tuple(lines_of(*map(long_text, (before, after)))))


def lines_of(before: str, after: str) -> list[tuple[str, str]]:
    """Return the differing lines with three around each."""
    found = difflib.unified_diff(
        before.splitlines(), after.splitlines(), n=3, lineterm=""
    )
    lines = [line for line in found if not line.startswith(("---", "+++"))]
    return [
        (" ", "⋯") if line.startswith("@@") else (line[:1], line[1:])
        for line in lines[:MAX_LINES]
    ]


def text_of(value: Any) -> str:
    """Return a value in one line; nothing for none."""
    if value is None or value == "":
        return "nothing"
    if isinstance(value, str):
        return value
    return json.dumps(plain_number(value), ensure_ascii=False)


def long_text(value: Any) -> str:
    """Return a value over several lines."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=2)
