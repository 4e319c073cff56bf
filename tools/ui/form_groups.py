"""The form of a tool in groups, each with a line that says what is in it."""

from collections.abc import Sequence
from typing import NamedTuple

from django.forms import BoundField
from django.template.defaultfilters import filesizeformat
from django.utils.formats import number_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tools.forms.tool import Fieldsets, ToolForm, drop_zero_fraction
from tools.models import Tool
from tools.ownership import Visibility
from tools.typed_generics import StrOrPromise

FieldNames = Sequence[str | tuple[str, ...]]

SCHEMA_FIELD = "args_schema"
DISPLAYED = ("arguments_display", "server_display")
"""Names that stand for text between the fields of a kind."""


class FormGroup(NamedTuple):
    """A collapsible part of the form."""

    key: str
    title: StrOrPromise
    rows: list[list[BoundField]]
    """The fields; those of one row stand beside each other."""
    rare_rows: list[list[BoundField]]
    """Those that few tools need, in a fold."""
    summary: str
    """What the fields hold, for the closed group."""
    is_open: bool
    notes: list[SafeString] = []
    """Text that stands in place of fields."""

    @property
    def is_fold_open(self) -> bool:
        """Whether a rare field has a value or an error."""
        rare = [field for row in self.rare_rows for field in row]
        return any(field.value() or field.errors for field in rare)


def build_form_groups(
    form: ToolForm, *, notes: dict[str, SafeString] | None = None
) -> list[FormGroup]:
    """Return the groups in order; `notes` are the texts of `DISPLAYED` names."""
    tool, notes = form.instance, notes or {}
    _model, kind, effect, limits, sharing = form.fieldsets()
    kind_names = [name for name in form.kind_fields if name not in ARGUMENT_NAMES]
    plan: list[tuple[str, StrOrPromise, FieldNames, str, bool]] = [
        (
            *("model", _("What the model sees"), ("name", "description")),
            *(describe_model_part(tool), True),
        ),
        ("kind", kind[0] or "", kind_names, describe_kind_part(tool), True),
        (
            *("arguments", _("Arguments"), (SCHEMA_FIELD, "arguments_display")),
            *(describe_arguments(tool), True),
        ),
        (
            *("effect", _("Effect and approval"), list_field_names([effect])),
            *(describe_effect(tool), tool.pk is None),
        ),
        (
            *("limits", _("Limits"), list_field_names([limits])),
            *(describe_limits(tool), False),
        ),
        (
            *("sharing", _("Sharing"), list_field_names([sharing])),
            *(describe_sharing(tool), False),
        ),
    ]
    if tool.pk is not None:
        plan.append(("note", _("Change note"), ("note",), "", False))
    groups = [
        FormGroup(
            key,
            title,
            [row for row in rows if not is_rare(form, row)],
            [row for row in rows if is_rare(form, row)],
            summary,
            is_open or any(field.errors for row in rows for field in row),
            [notes[name] for name in names if isinstance(name, str) and name in notes],
        )
        for key, title, names, summary, is_open in plan
        for rows in [pick_rows(form, names)]
    ]
    return [group for group in groups if group.rows or group.notes]


ARGUMENT_NAMES = (SCHEMA_FIELD, "arguments_display")


def list_field_names(fieldsets: Fieldsets) -> FieldNames:
    """Return the names of the fields, those of one row as a tuple."""
    return [name for _title, options in fieldsets for name in options["fields"]]


def pick_rows(form: ToolForm, names: FieldNames) -> list[list[BoundField]]:
    rows = [
        [form[one] for one in ([name] if isinstance(name, str) else name)]
        for name in names
        if isinstance(name, tuple) or name in form.fields
    ]
    return [row for row in rows if row]


def is_rare(form: ToolForm, row: list[BoundField]) -> bool:
    return all(field.name in form.rare_fields for field in row)


def describe_model_part(tool: Tool) -> str:
    if not tool.name:
        return ""
    sentence = tool.description.partition("\n")[0]
    return f"{tool.name}: {sentence}" if sentence else tool.name


def describe_kind_part(tool: Tool) -> str:
    """Return what a call does, as short as it can be said."""
    config = tool.config
    if tool.kind == "http":
        return f"{config.get('method', 'GET')} {config.get('url', '')}".strip()
    if tool.kind == "python":
        count = len(str(config.get("code", "")).splitlines())
        return ngettext("%(count)d line", "%(count)d lines", count) % {"count": count}
    if tool.kind == "mcp":
        return str(tool.mcp_server or "")
    return str(config.get("function") or config.get("connection") or "")


def describe_arguments(tool: Tool) -> str:
    schema = tool.args_schema
    if schema is None:
        return "" if tool.kind == "function" else _("Takes a single text input")
    names = list(schema.get("properties", {}))
    return ", ".join(names) or _("None")


def describe_effect(tool: Tool) -> str:
    if not tool.effect:
        return ""
    return _("%(effect)s; approval: %(approval)s") % {
        "effect": tool.get_effect_display(),
        "approval": tool.get_approval_display(),
    }


def describe_limits(tool: Tool) -> str:
    parts = [
        _("%(seconds)s s timeout")
        % {"seconds": number_format(drop_zero_fraction(tool.timeout))}
    ]
    if tool.retries:
        parts.append(
            ngettext("%(count)d retry", "%(count)d retries", tool.retries)
            % {"count": tool.retries}
        )
    if tool.output_limit:
        size = filesizeformat(tool.output_limit)
        parts.append(_("%(size)s result") % {"size": size})
    if tool.calls_per_run:
        parts.append(
            ngettext(
                "%(count)d call per run", "%(count)d calls per run", tool.calls_per_run
            )
            % {"count": tool.calls_per_run}
        )
    return ", ".join(parts)


def describe_sharing(tool: Tool) -> str:
    return str(Visibility(tool.visibility).label)
