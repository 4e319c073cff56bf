"""The changes of a tool revision: each field before and after."""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from tools.forms.kinds import TOOL_FORMS
from tools.forms.tool import drop_zero_fraction
from tools.models import Tool, ToolRevision
from tools.ui.diff import DiffLine, diff_texts

MAX_INLINE = 90
"""Characters of a value that is shown whole."""

CONTEXT_LINES = 3
MAX_LINES = 400


@dataclass(frozen=True)
class FieldChange:
    """One field; `lines` if its values are long."""

    name: str
    before: str
    after: str
    lines: tuple[DiffLine, ...] = ()


def diff_revision(revision: ToolRevision) -> list[FieldChange] | None:
    """Return the differences from the previous revision; None for the first."""
    before = (
        ToolRevision.objects.filter(tool=revision.tool_id, number__lt=revision.number)
        .order_by("-number")
        .first()
    )
    if before is None:
        return None
    return diff_definitions(revision.tool.kind, before.body, revision.body)


def diff_definitions(
    kind: str, before: dict[str, Any], after: dict[str, Any]
) -> list[FieldChange]:
    old, new = flatten_definition(before), flatten_definition(after)
    return [
        diff_definition_field(
            get_tool_field_label(kind, name), old.get(name), new.get(name)
        )
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    ]


class OtherSave(NamedTuple):
    """What somebody saved while a form was open."""

    revision: ToolRevision
    lost: list[FieldChange]
    """Their values that the form replaces, and those it has instead."""


def find_other_save(tool: Tool, seen: str, typed: dict[str, Any]) -> OtherSave | None:
    """Return the newest revision if `typed` undoes a change since the revision `seen`.

    Without the revision that was seen, every difference counts as such a change.
    """
    newest = tool.revisions.select_related("by").filter(number=tool.revision).first()
    if newest is None or seen == str(newest.number):
        return None
    number = int(seen[:9]) if seen.isascii() and seen.isdigit() else 0
    base = tool.revisions.filter(number=number).first()
    old = flatten_definition(base.body) if base else {}
    theirs = flatten_definition(newest.body)
    kept = {
        name: value
        for name, value in flatten_definition(typed).items()
        if base is None or old.get(name) != theirs.get(name)
    }
    lost = diff_definitions(tool.kind, {k: theirs.get(k) for k in kept}, kept)
    return OtherSave(newest, lost) if lost else None


def flatten_definition(body: dict[str, Any]) -> dict[str, Any]:
    """Return a definition with the keys of `config` as `config.KEY`."""
    config = body.get("config")
    parts = config if isinstance(config, dict) else {}
    rest = {name: value for name, value in body.items() if name != "config"}
    return {**rest, **{f"config.{name}": value for name, value in parts.items()}}


def get_tool_field_label(kind: str, name: str) -> str:
    name = name.removeprefix("config.")
    field = TOOL_FORMS[kind].base_fields.get(name) if kind in TOOL_FORMS else None
    return str(field.label) if field and field.label else name.replace("_", " ")


def diff_definition_field(name: str, before: Any, after: Any) -> FieldChange:
    """Return the change of one field, by line if a value is long."""
    texts = [format_inline_value(before), format_inline_value(after)]
    if all(len(text) <= MAX_INLINE and "\n" not in text for text in texts):
        return FieldChange(name, texts[0], texts[1])
    return FieldChange(
        name,
        "",
        "",
        tuple(
            diff_texts(
                format_multiline_value(before),
                format_multiline_value(after),
                context=CONTEXT_LINES,
                is_exact=True,
                most=MAX_LINES,
            )
        ),
    )


def format_inline_value(value: Any) -> str:
    """Return a value as one line."""
    if value is None or value == "":
        return _("(empty)")
    if isinstance(value, str):
        return value
    return json.dumps(drop_zero_fraction(value), ensure_ascii=False)


def format_multiline_value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=2)
