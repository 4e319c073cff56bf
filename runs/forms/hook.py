"""The form of an incoming webhook: sender, secret, and how a body becomes inputs."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.forms.runs.inputs import input_field_name
from runs.forms.widgets import monospace_textarea, style_widgets
from runs.models import Hook
from runs.services.errors import InputsRefused, RunsError
from runs.services.hooks.manage import generate_hook_key, generate_hook_secret
from runs.services.hooks.mapping import (
    explain_mismatch,
    find_pointer_flaw,
    map_inputs,
    parse_hook_body,
)
from tools.errors import ToolFailed
from tools.secrets import seal
from tools.text.json_pointer import parse_json_pointer

MIN_SECRET_CHARS = 16
MAX_TEMPLATE_CHARS = 20_000
MAX_SAMPLE_CHARS = 1_000_000

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[Hook]
else:
    _ModelForm = forms.ModelForm


class HookForm(_ModelForm):
    """Everything but the agent, which is chosen first."""

    secret = forms.CharField(
        required=False,
        max_length=500,
        label=gettext_lazy("Secret"),
        help_text=gettext_lazy(
            "Leave empty to create one. Slack and Stripe show theirs: paste it here."
        ),
        widget=forms.TextInput(attrs={"autocomplete": "off", "class": "mono"}),
    )
    sample = forms.CharField(
        required=False,
        max_length=MAX_SAMPLE_CHARS,
        label=gettext_lazy("Sample payload"),
        help_text=gettext_lazy("Used for the preview only, and not saved."),
        widget=monospace_textarea(8),
    )

    class Meta:
        model = Hook
        fields = ["name", "scheme", "only_pointer", "only_value"]
        labels = {
            "name": gettext_lazy("Name"),
            "scheme": gettext_lazy("Sender signs as"),
            "only_pointer": gettext_lazy("Only if"),
            "only_value": gettext_lazy("Equals"),
        }
        help_texts = {
            "only_pointer": gettext_lazy(
                "JSON pointer, such as /action. Leave empty to start a run for each "
                "request."
            ),
            "only_value": gettext_lazy("Separate several values with commas."),
        }

    def __init__(self, names: tuple[str, ...], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        self.names = names
        for name in names:
            self.fields[input_field_name(name)] = forms.CharField(
                label=name,
                required=False,
                max_length=MAX_TEMPLATE_CHARS,
                initial=self.instance.inputs.get(name, "{}"),
                widget=monospace_textarea(3 if name == "input" else 1),
                strip=False,
            )
        for name in ("only_pointer", "only_value"):
            self.fields[name].widget.attrs["class"] = "mono"
        if self.instance.pk:
            self.fields["secret"].help_text = _(
                "A secret is stored. Enter another one to replace it; the current one "
                "is accepted for one more day."
            )
        style_widgets(self)

    def input_fields(self) -> list[forms.BoundField]:
        return [self[input_field_name(name)] for name in self.names]

    def clean_secret(self) -> str:
        secret: str = self.cleaned_data["secret"].strip()
        if secret and len(secret) < MIN_SECRET_CHARS:
            raise forms.ValidationError(
                _("Enter a secret of at least %(count)s characters, or none.")
                % {"count": MIN_SECRET_CHARS}
            )
        if not secret.isascii():
            raise forms.ValidationError(_("Enter a secret without special characters."))
        return secret

    def clean_only_pointer(self) -> str:
        pointer: str = self.cleaned_data["only_pointer"].strip()
        try:
            parse_json_pointer(pointer)
        except ToolFailed as error:
            raise forms.ValidationError(str(error)) from None
        return pointer

    def clean(self) -> dict[str, Any]:
        """Check the pointers, and keep the inputs on the instance."""
        cleaned = super().clean() or {}
        for name in self.names:
            field = input_field_name(name)
            if flaw := find_pointer_flaw(cleaned.get(field) or ""):
                self.add_error(field, flaw)
        if cleaned.get("only_pointer") and not cleaned.get("only_value"):
            self.add_error("only_value", _("Enter the value to compare with."))
        return cleaned

    def read_inputs(self) -> dict[str, str]:
        return {
            name: self.cleaned_data.get(input_field_name(name)) or ""
            for name in self.names
        }

    def save(self, commit: bool = True) -> Hook:
        """Give a new hook its address and secret; an old one keeps its own."""
        hook = self.instance
        hook.inputs = self.read_inputs()
        if hook.pk:
            # A secret that was rotated since this row was read must stay.
            hook.save(update_fields=[*self.Meta.fields, "inputs"])
            return hook
        hook.key = generate_hook_key()
        secret = self.cleaned_data["secret"] or generate_hook_secret(hook.scheme)
        hook.sealed_secret = seal(secret)
        return super().save(commit)

    def preview(self) -> dict[str, Any]:
        """Return what the sample would do: `inputs`, or `mistakes` and `ignored`."""
        if not self.is_bound or not self.data.get("sample", "").strip():
            return {}
        self.is_valid()
        fields = ["sample", "only_pointer", *map(input_field_name, self.names)]
        problems = [str(one) for name in fields for one in self.errors.get(name, [])]
        if problems:
            return {"mistakes": problems}
        try:
            document = parse_hook_body(self.cleaned_data["sample"].encode(), "")
            ignored = explain_mismatch(
                Hook(
                    only_pointer=self.cleaned_data.get("only_pointer", ""),
                    only_value=self.cleaned_data.get("only_value", ""),
                ),
                document,
            )
            inputs = map_inputs(self.read_inputs(), document)
        except InputsRefused as refused:
            return {"mistakes": [error.message for error in refused.errors]}
        except RunsError as refused:
            return {"mistakes": [str(refused)]}
        return {"inputs": inputs, "ignored": ignored}
