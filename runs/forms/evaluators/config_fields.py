"""Form fields for the settings of an evaluator, made from its pydantic model."""

import json
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from django import forms
from django.utils.translation import gettext as _
from pydantic.fields import FieldInfo

from runs.evaluation.kind import EvaluatorConfig
from runs.ui.evaluation.evaluator_labels import CHOICE_LABELS, FIELD_TEXTS

CONFIG_FIELD = "config-"
"""Begins the names of the form's fields."""
LONG_TEXTS = {"code": 14, "rubric": 8}
"""Rows of the text areas of long texts; other texts are one line."""


class JsonTextField(forms.CharField):
    """A JSON value, written as text."""

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value) or ""
        if not text.strip():
            return None
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise forms.ValidationError(_("Not valid JSON.")) from None

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, str) or value is None:
            return value
        return json.dumps(value, ensure_ascii=False, indent=2)


class LinesField(forms.CharField):
    """Texts, one per line."""

    def to_python(self, value: Any) -> Any:
        text = (super().to_python(value) or "").replace("\r\n", "\n")
        return [line.strip() for line in text.split("\n") if line.strip()]

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list | tuple) else value


class FieldType(NamedTuple):
    type: Any
    is_optional: bool


def build_config_fields(model: type[EvaluatorConfig]) -> dict[str, forms.Field]:
    """Return a field for each setting, with its default as the initial value."""
    return {
        CONFIG_FIELD + name: build_config_field(name, setting)
        for name, setting in model.model_fields.items()
    }


def build_config_field(name: str, setting: FieldInfo) -> forms.Field:
    """Return the field of one setting; pydantic checks its value."""
    label, help_text = FIELD_TEXTS.get(name, (name, ""))
    found = split_optional(setting.annotation)
    field = make_typed_field(name, found.type)
    field.label, field.help_text = str(label), str(help_text)
    field.required = False
    if not setting.is_required():
        field.initial = setting.get_default(call_default_factory=True)
    is_needed = setting.is_required() or isinstance(field, forms.ChoiceField)
    field.is_needed = is_needed or bool(field.initial)  # type: ignore[attr-defined]  # not "optional"
    return field


def split_optional(annotation: Any) -> FieldType:
    """Return the type of `T | None` without None."""
    if get_origin(annotation) in (Union, UnionType):
        parts = [one for one in get_args(annotation) if one is not type(None)]
        return FieldType(parts[0], len(parts) < len(get_args(annotation)))
    return FieldType(annotation, False)


def make_typed_field(name: str, kind: Any) -> forms.Field:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is bool:
        return forms.BooleanField()
    if kind is int:
        return forms.IntegerField()
    if kind is float:
        return forms.FloatField()
    if origin is Literal:
        return forms.ChoiceField(choices=label_choices(arguments))
    if origin is tuple and arguments[0] is str:
        return LinesField(widget=forms.Textarea(attrs={"rows": 4}))
    if origin is tuple and get_origin(arguments[0]) is Literal:
        return forms.MultipleChoiceField(
            choices=label_choices(get_args(arguments[0])),
            widget=forms.CheckboxSelectMultiple,
        )
    if kind is str:
        return make_text_field(name)
    return JsonTextField(
        widget=forms.Textarea(attrs={"rows": 4, "class": "mono", "spellcheck": "false"})
    )


def make_text_field(name: str) -> forms.Field:
    """Return the field of a text: one line, or more for long ones."""
    if name not in LONG_TEXTS:
        return forms.CharField()
    attrs = {"rows": LONG_TEXTS[name]}
    mono = {"class": "mono", "spellcheck": "false"} if name == "code" else {}
    return forms.CharField(strip=False, widget=forms.Textarea(attrs={**attrs, **mono}))


def label_choices(values: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(value, str(CHOICE_LABELS.get(value, value))) for value in values]


def read_config(model: type[EvaluatorConfig], given: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of cleaned fields; what is left empty keeps its default."""
    found: dict[str, Any] = {}
    for name, setting in model.model_fields.items():
        value = given.get(CONFIG_FIELD + name)
        is_list = get_origin(split_optional(setting.annotation).type) is tuple
        if value is None or value == "" or (value == [] and not is_list):
            continue
        if value == [] and split_optional(setting.annotation).is_optional:
            continue
        found[name] = value
    return found
