"""What the forms of all kinds of tools have in common."""

from typing import Any, ClassVar

from django import forms

from tools.forms.fields import HostsField, check_groups
from tools.forms.schema import is_unchanged
from tools.generic import ModelForm
from tools.models import Tool

Fieldsets = list[tuple[str | None, dict[str, Any]]]


REACHES_OUT = ("http", "mcp", "function")
"""Kinds whose calls leave the machine."""


class ToolForm(ModelForm):
    """Fields that every kind has; a kind adds what its `config` is made of."""

    kind: ClassVar[str]
    word: ClassVar[str]
    """What people call the kind."""
    own_fields: ClassVar[tuple[str | tuple[str, ...], ...]]
    """Fields of the kind's own part of the form; those in one line together."""
    own_title: ClassVar[str]
    is_typed_in: ClassVar[bool] = True
    """Whether a person makes one in this form; others are taken over."""

    note = forms.CharField(
        label="What changed",
        required=False,
        max_length=200,
        help_text="Kept with the revision.",
    )
    hosts = HostsField(
        label="Only these hosts",
        required=False,
        help_text="Hosts a call may reach, one a line; empty for every public one.",
    )

    class Meta:
        model = Tool
        fields: tuple[str, ...] = (
            *("name", "slug", "description", "return_direct", "effect", "approval"),
            *("approvers", "approval_hours", "at_expiry"),
            *("on_error", "timeout", "retries", "calls_per_run", "output_limit"),
            *("hosts", "enabled", "visibility", "groups"),
        )
        labels = {
            "return_direct": "Result is the answer",
            "approvers": "Who says yes",
            "approval_hours": "Waits for an answer (h)",
            "at_expiry": "If nobody answers",
            "on_error": "After a failed call",
            "timeout": "Longest wait (s)",
            "retries": "Tries after a failure",
            "calls_per_run": "Calls in one run",
            "output_limit": "Result cut at (bytes)",
            "visibility": "Who may use it",
            "slug": "Name in agent files",
        }
        help_texts = {
            "name": "What the model calls it: letters, digits, _ and -.",
            "slug": "And in addresses; made from the name where empty.",
            "description": "The model chooses by this text.",
            "return_direct": "The first result ends the run and is its output.",
            "effect": "What one call may change. After a crash, reading and "
            "idempotent calls run again; others ask a person.",
            "approval": "When a person must say yes before a call.",
            "approvers": "Or any member of a group.",
            "approval_hours": "Empty for the operator's setting; 0.5 is half an hour.",
            "retries": "Only calls that read or are idempotent are tried again.",
            "calls_per_run": "Empty for no limit.",
            "output_limit": "Empty for the limit of the agent.",
            "visibility": "Who may give it to an agent.",
            "groups": "Whose members may use it, for “Chosen groups”.",
        }
        widgets = {
            "description": forms.Textarea(attrs={"rows": 4}),
            "effect": forms.RadioSelect,
            "approval": forms.RadioSelect,
        }

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        for name in ("slug", "groups"):
            if name in self.fields:
                self.fields[name].required = False
        for name in ("timeout", "approval_hours"):
            if name in self.initial:
                self.initial[name] = plain_number(self.initial[name])
            elif name in self.fields:
                self.fields[name].initial = plain_number(self.fields[name].initial)
        approvers = self.fields.get("approvers")
        if isinstance(approvers, forms.ModelChoiceField):
            approvers.empty_label = "Who started the run"

    def begin_with_config(self, *names: str) -> None:
        """Let these fields begin with what the tool's `config` says."""
        for name in names:
            if name in self.fields and name in self.instance.config:
                self.fields[name].initial = self.instance.config[name]

    def begin_as_reading(self) -> None:
        """Let a new tool begin as one that only reads."""
        if self.instance.pk is None and "effect" in self.fields:
            self.fields["effect"].initial = "read"

    def clean_description(self) -> str:
        """Return it with lines that end as they did before a browser sent it."""
        return str(self.cleaned_data["description"]).replace("\r\n", "\n")

    def clean(self) -> dict[str, Any] | None:
        """Put the kind's own fields into its `config`."""
        cleaned = super().clean()
        check_groups(self)
        stored = self.initial.get("args_schema")
        if cleaned and is_unchanged(stored, cleaned.get("args_schema")):
            cleaned["args_schema"] = stored
        self.instance.kind = self.kind
        if not self.errors:
            self.instance.config = self.config()
        return cleaned

    def config(self) -> dict[str, Any]:
        """Return what the kind needs for a call."""
        raise NotImplementedError

    @classmethod
    def fieldsets(cls) -> Fieldsets:
        """Return the parts of the form, in the order they are read."""
        return [
            (None, {"fields": ["name", "description", "enabled"]}),
            (cls.own_title, {"fields": list(cls.own_fields)}),
            (
                "Effect and approval",
                {
                    "fields": [
                        *("effect", "approval", "approvers"),
                        ("approval_hours", "at_expiry"),
                    ]
                },
            ),
            (
                "Limits",
                {
                    "fields": [
                        *(("timeout", "retries"), ("calls_per_run", "output_limit")),
                        *("on_error", "return_direct"),
                        *(["hosts"] if cls.kind in REACHES_OUT else []),
                    ]
                },
            ),
            ("Sharing", {"fields": ["visibility", "groups", "slug"]}),
        ]


def plain_number(value: Any) -> Any:
    """Return a whole number without its point, as a person writes it."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
