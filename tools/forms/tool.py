"""The form that all tool kinds share."""

from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext_lazy as _

from tools.forms.fields import HostsField, require_group_if_shared
from tools.forms.schema import is_same_schema
from tools.models import Tool
from tools.typed_generics import ModelForm, StrOrPromise

Fieldsets = list[tuple[StrOrPromise | None, dict[str, Any]]]


NETWORK_KINDS = ("http", "mcp", "function")
"""Kinds that use the network."""


class ToolForm(ModelForm):
    """Fields of every kind; a kind adds those for its `config`."""

    kind: ClassVar[str]
    kind_label: ClassVar[StrOrPromise]
    kind_fields: ClassVar[tuple[str | tuple[str, ...], ...]]
    """Fields of the section of this kind; a tuple is one line."""
    kind_section_title: ClassVar[StrOrPromise]
    rare_fields: ClassVar[tuple[str, ...]] = ()
    """Those of them that few tools need."""
    can_be_created: ClassVar[bool] = True
    """Whether a person creates one in this form; others are imported."""

    note = forms.CharField(
        label=_("Change note"),
        required=False,
        max_length=200,
        help_text=_("Stored with the revision."),
    )
    hosts = HostsField(
        label=_("Allowed hosts"),
        required=False,
        help_text=_(
            "Hosts a call can reach, one per line. Leave empty to allow all public "
            "hosts."
        ),
    )

    class Meta:
        model = Tool
        fields: tuple[str, ...] = (
            *("name", "slug", "description", "return_direct", "effect", "approval"),
            *("approvers", "second_person", "approval_hours", "at_expiry"),
            *("on_error", "timeout", "retries", "calls_per_run", "output_limit"),
            *("hosts", "enabled", "visibility", "groups"),
        )
        labels = {
            "name": _("Name"),
            "description": _("Description"),
            "enabled": _("Enabled"),
            "effect": _("Effect"),
            "approval": _("Require approval"),
            "credential": _("Credential"),
            "groups": _("Groups"),
            "return_direct": _("Return the result as the final answer"),
            "approvers": _("Approvers"),
            "second_person": _("Require a second person"),
            "approval_hours": _("Approval timeout (hours)"),
            "at_expiry": _("If nobody decides in time"),
            "on_error": _("After a failed call"),
            "timeout": _("Timeout (seconds)"),
            "retries": _("Retries"),
            "calls_per_run": _("Maximum calls per run"),
            "output_limit": _("Maximum result size (bytes)"),
            "visibility": _("Shared with"),
            "slug": _("Name in agent files"),
        }
        help_texts = {
            "name": _(
                "The name the model uses, in any language. Models that call functions "
                "get it in ASCII."
            ),
            "slug": _("Also used in URLs. Leave empty to derive it from the name."),
            "description": _("The model selects tools by this text."),
            "return_direct": _("The first result ends the run and is its output."),
            "effect": _(
                "What a call can change. After a crash, read-only and idempotent calls "
                "are repeated; a person decides about others."
            ),
            "approval": _("Calls that a person must approve first."),
            "approvers": _("The person who started the run, or a member of a group."),
            "second_person": _(
                "Nobody can approve a call of a run that they started. Without a group "
                "of approvers, only administrators can approve."
            ),
            "approval_hours": _(
                "Leave empty to use the site default; 0.5 is half an hour."
            ),
            "retries": _("Only read-only and idempotent calls are retried."),
            "calls_per_run": _("Leave empty for no limit."),
            "output_limit": _("Leave empty to use the limit of the agent."),
            "visibility": _("People who can add the tool to their agents."),
            "groups": _("Used only if the tool is shared with selected groups."),
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
                self.initial[name] = drop_zero_fraction(self.initial[name])
            elif name in self.fields:
                self.fields[name].initial = drop_zero_fraction(
                    self.fields[name].initial
                )
        approvers = self.fields.get("approvers")
        if isinstance(approvers, forms.ModelChoiceField):
            approvers.empty_label = _("Person who started the run")

    def set_initial_from_config(self, *names: str) -> None:
        """Set the initial values of these fields from the `config` of the tool."""
        for name in names:
            if name in self.fields and name in self.instance.config:
                self.fields[name].initial = self.instance.config[name]

    def default_to_read_only(self) -> None:
        """Preselect read-only for a new tool."""
        if self.instance.pk is None and "effect" in self.fields:
            self.fields["effect"].initial = "read"

    def clean_description(self) -> str:
        """Undo the line breaks of browsers."""
        return str(self.cleaned_data["description"]).replace("\r\n", "\n")

    def clean(self) -> dict[str, Any] | None:
        """Build `config` from the fields of the kind."""
        cleaned = super().clean()
        require_group_if_shared(self)
        stored = self.initial.get("args_schema")
        if cleaned and is_same_schema(stored, cleaned.get("args_schema")):
            cleaned["args_schema"] = stored
        self.instance.kind = self.kind
        if not self.errors:
            self.instance.config = self.config()
        return cleaned

    def config(self) -> dict[str, Any]:
        raise NotImplementedError

    @classmethod
    def fieldsets(cls) -> Fieldsets:
        """Return the sections of the form in order."""
        return [
            (None, {"fields": ["name", "description", "enabled"]}),
            (cls.kind_section_title, {"fields": list(cls.kind_fields)}),
            (
                _("Effect and approval"),
                {
                    "fields": [
                        *("effect", "approval", "approvers", "second_person"),
                        ("approval_hours", "at_expiry"),
                    ]
                },
            ),
            (
                _("Limits"),
                {
                    "fields": [
                        *(("timeout", "retries"), ("calls_per_run", "output_limit")),
                        *("on_error", "return_direct"),
                        *(["hosts"] if cls.kind in NETWORK_KINDS else []),
                    ]
                },
            ),
            (_("Sharing"), {"fields": ["visibility", "groups", "slug"]}),
        ]


def drop_zero_fraction(value: Any) -> Any:
    """Return 60 for 60.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
