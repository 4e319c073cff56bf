"""The form of a prompt: one text or chat messages, validated by the engine."""

import difflib
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.engine.parsing.clean import clean_text
from runs.engine.prompts import (
    ENGINE_VARIABLES,
    input_variables_of_prompt,
    variables_of_prompt,
)
from runs.engine.spec_validation import find_spec_problems
from runs.engine.types import AgentSpec, PromptMessage, PromptSpec
from runs.forms.group_sharing import (
    add_groups_field,
    require_groups,
    save_shared_groups,
)
from runs.forms.widgets import monospace_textarea, style_widgets
from runs.models import PromptTemplate
from runs.ui.kind_labels import list_kind_choices

ROLES = [
    ("system", gettext_lazy("System")),
    ("user", gettext_lazy("User")),
    ("assistant", gettext_lazy("Assistant")),
]
SPARE_MESSAGES = 2
"""Empty messages offered below the existing ones."""
TYPO_CUTOFF = 0.8
"""Similarity from which a variable counts as a misspelled engine variable."""


if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[PromptTemplate]
else:
    _ModelForm = forms.ModelForm


class PromptForm(_ModelForm):
    """A name, the kind of agent and the text."""

    roles = ROLES

    kind = forms.ChoiceField(
        choices=list_kind_choices,
        label=gettext_lazy("Agent kind"),
    )
    shape = forms.ChoiceField(
        choices=[
            ("text", gettext_lazy("Text")),
            ("messages", gettext_lazy("Chat messages")),
        ],
        widget=forms.HiddenInput,
    )
    values = forms.CharField(
        required=False,
        label=gettext_lazy("Fixed values"),
        widget=monospace_textarea(2),
        help_text=gettext_lazy(
            "Variables with the same value in every run, one per line, for example "
            "city = Berlin."
        ),
    )

    class Meta:
        model = PromptTemplate
        fields = ["name", "kind", "template", "visibility"]
        labels = {
            "name": gettext_lazy("Name"),
            "template": gettext_lazy("Text"),
            "visibility": gettext_lazy("Shared with"),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        self.fields["template"].widget.attrs |= {
            "rows": 16,
            "class": "mono",
            "spellcheck": "false",
        }
        self.fields["template"].is_needed = True  # type: ignore[attr-defined]  # by form
        self.fields["template"].strip = False  # type: ignore[attr-defined]
        self.fields["values"].initial = format_partials(self.instance.partials)
        self.fields["shape"].initial = "messages" if self.instance.messages else "text"
        self.messages = self._read_messages()
        add_groups_field(self, self.instance)
        style_widgets(self)

    def _read_messages(self) -> list[dict[str, str]]:
        """Return the submitted messages, or the stored ones followed by empty ones."""
        if not self.is_bound:
            stored = list(self.instance.messages or self.initial.get("messages") or [])
            return [*stored, *({"role": "user", "template": ""},) * SPARE_MESSAGES]
        texts = self.data.getlist("message")  # type: ignore[attr-defined]
        roles = self.data.getlist("role")  # type: ignore[attr-defined]
        return [
            {"role": role, "template": clean_text(text).replace("\r\n", "\n")}
            for role, text in zip(roles, texts, strict=False)
        ]

    @property
    def is_chat(self) -> bool:
        shape = self["shape"].value()
        return bool(shape == "messages")

    def clean_values(self) -> dict[str, str]:
        """Parse `name = value` lines."""
        found: dict[str, str] = {}
        for number, line in enumerate(self.cleaned_data["values"].splitlines(), 1):
            name, sign, value = line.partition("=")
            if not line.strip():
                continue
            if not sign or not name.strip().isidentifier():
                raise forms.ValidationError(
                    _("Line %(number)s is not a value. Enter name = value.")
                    % {"number": number}
                )
            found[name.strip()] = value.strip()
        return found

    def clean(self) -> dict[str, Any]:
        """Check the text as a run does."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        require_groups(self, given)
        if "kind" not in given or "values" not in given:
            return given
        prompt = self.prompt_spec()
        if not "".join(prompt_texts(prompt)).strip():
            self.add_error(self.text_field, _("Enter the text of the prompt."))
            return given
        for message in list_prompt_errors(given["kind"], prompt):
            self.add_error(self.text_field, message)
        return given

    @property
    def text_field(self) -> str | None:
        """The field that shows errors of the text; None for messages."""
        return None if self.is_chat else "template"

    def prompt_spec(self) -> PromptSpec:
        partials = getattr(self, "cleaned_data", {}).get("values") or {}
        partials = partials if isinstance(partials, dict) else {}
        if not self.is_chat:
            text = str(self["template"].value() or "").replace("\r\n", "\n")
            return PromptSpec(template=text, partials=partials)
        messages = tuple(
            PromptMessage.model_validate(message)
            for message in self.messages
            if message["template"].strip() and message["role"] in dict(ROLES)
        )
        return PromptSpec(messages=messages, partials=partials)

    def save(self, commit: bool = True) -> PromptTemplate:
        prompt = self.prompt_spec()
        self.instance.partials = self.cleaned_data["values"]
        self.instance.template = prompt.template or ""
        self.instance.messages = (
            [message.model_dump() for message in prompt.messages]
            if prompt.messages is not None
            else None
        )
        saved = super().save(commit)
        if commit:
            save_shared_groups(saved, self.cleaned_data["groups"])
        return saved


def list_prompt_errors(kind: str, prompt: PromptSpec) -> list[str]:
    said = [
        problem.message
        for problem in find_spec_problems(AgentSpec(kind=kind, prompt=prompt))
        if problem.field.startswith("prompt")
    ]
    return said + [
        _("Variable {%(name)s} not found. Did you mean {%(suggestion)s}?")
        % {"name": name, "suggestion": meant}
        for name in input_variables_of_prompt(prompt)
        if (meant := suggest_variable(name))
    ]


def suggest_variable(name: str) -> str:
    """Return the engine variable that `name` probably misspells; otherwise empty."""
    known = [*ENGINE_VARIABLES, "input"]
    if name in known:
        return ""
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=TYPO_CUTOFF)
    return near[0] if near else ""


def prompt_texts(prompt: PromptSpec) -> list[str]:
    if prompt.messages is not None:
        return [message.template for message in prompt.messages]
    return [prompt.template or ""]


def format_partials(partials: dict[str, str]) -> str:
    """Write partials as `name = value` lines."""
    return "\n".join(f"{name} = {value}" for name, value in partials.items())


def required_variables(prompt: PromptSpec) -> tuple[str, ...]:
    """Return the variables that a run requires, the question first."""
    return tuple(
        sorted(input_variables_of_prompt(prompt), key=lambda name: name != "input")
    )


def engine_variables(prompt: PromptSpec) -> tuple[str, ...]:
    return tuple(
        name for name in variables_of_prompt(prompt) if name in ENGINE_VARIABLES
    )
