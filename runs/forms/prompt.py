"""The form of a prompt: one text or chat messages, checked as the engine checks."""

import difflib
from typing import TYPE_CHECKING, Any

from django import forms

from runs.engine.check import problems_of
from runs.engine.clean import clean_text
from runs.engine.kinds.registry import KINDS
from runs.engine.prompts import FROM_ENGINE, input_variables_of, variables_of
from runs.engine.types import AgentSpec, PromptMessage, PromptSpec
from runs.forms.looks import dress, mono
from runs.forms.sharing import check_groups, offer_groups, share_with
from runs.models import PromptTemplate

ROLES = [("system", "System"), ("user", "User"), ("assistant", "Assistant")]
SPARE = 2
"""Empty messages offered below those that are there."""
MEANT = 0.8
"""How alike a name must be to one of the engine's to be taken for a slip."""


if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[PromptTemplate]
else:
    _ModelForm = forms.ModelForm


class PromptForm(_ModelForm):
    """A name, the kind it is for, and the text."""

    roles = ROLES

    kind = forms.ChoiceField(
        choices=lambda: [(kind.name, kind.title) for kind in KINDS.values()],
        label="For agents of kind",
    )
    shape = forms.ChoiceField(
        choices=[("text", "One text"), ("messages", "Chat messages")],
        widget=forms.HiddenInput,
    )
    values = forms.CharField(
        required=False,
        label="Fixed values",
        widget=mono(2),
        help_text="Variables that are the same in every run, one a line: city = 北京.",
    )

    class Meta:
        model = PromptTemplate
        fields = ["name", "kind", "template", "visibility"]
        labels = {"template": "Text", "visibility": "Who may use it"}

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
        self.fields["values"].initial = lines_of(self.instance.partials)
        self.fields["shape"].initial = "messages" if self.instance.messages else "text"
        self.messages = self._read_messages()
        offer_groups(self, self.instance)
        dress(self)

    def _read_messages(self) -> list[dict[str, str]]:
        """Return the messages typed, or stored, with empty ones to write into."""
        if not self.is_bound:
            stored = list(self.instance.messages or self.initial.get("messages") or [])
            return [*stored, *({"role": "user", "template": ""},) * SPARE]
        texts = self.data.getlist("message")  # type: ignore[attr-defined]
        roles = self.data.getlist("role")  # type: ignore[attr-defined]
        return [
            {"role": role, "template": clean_text(text).replace("\r\n", "\n")}
            for role, text in zip(roles, texts, strict=False)
        ]

    @property
    def is_chat(self) -> bool:
        """Whether the prompt is made of messages."""
        shape = self["shape"].value()
        return bool(shape == "messages")

    def clean_values(self) -> dict[str, str]:
        """Read `name = value` lines."""
        found: dict[str, str] = {}
        for number, line in enumerate(self.cleaned_data["values"].splitlines(), 1):
            name, sign, value = line.partition("=")
            if not line.strip():
                continue
            if not sign or not name.strip().isidentifier():
                raise forms.ValidationError(
                    f"Line {number} is no value. Write name = value."
                )
            found[name.strip()] = value.strip()
        return found

    def clean(self) -> dict[str, Any]:
        """Check the text as a run would."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        check_groups(self, given)
        if "kind" not in given or "values" not in given:
            return given
        prompt = self.prompt_spec()
        if not "".join(texts_of(prompt)).strip():
            self.add_error(self.text_field, "Write what the model is told.")
            return given
        for told in prompt_mistakes(given["kind"], prompt):
            self.add_error(self.text_field, told)
        return given

    @property
    def text_field(self) -> str | None:
        """The field that mistakes of the text belong to."""
        return None if self.is_chat else "template"

    def prompt_spec(self) -> PromptSpec:
        """Return what is typed as the engine takes it."""
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
        """Store either the text or the messages."""
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
            share_with(saved, self.cleaned_data["groups"])
        return saved


def prompt_mistakes(kind: str, prompt: PromptSpec) -> list[str]:
    """Return a sentence for each mistake of a prompt written for `kind`."""
    said = [
        problem.message
        for problem in problems_of(AgentSpec(kind=kind, prompt=prompt))
        if problem.field.startswith("prompt")
    ]
    return said + [
        f"There is no variable {{{name}}}. Did you mean {{{meant}}}?"
        for name in input_variables_of(prompt)
        if (meant := slip_of(name))
    ]


def slip_of(name: str) -> str:
    """Return the engine's variable that `name` nearly is; empty for another name."""
    known = [*FROM_ENGINE, "input"]
    if name in known:
        return ""
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=MEANT)
    return near[0] if near else ""


def texts_of(prompt: PromptSpec) -> list[str]:
    """Return the texts of a prompt."""
    if prompt.messages is not None:
        return [message.template for message in prompt.messages]
    return [prompt.template or ""]


def lines_of(partials: dict[str, str]) -> str:
    """Write partials as `name = value` lines."""
    return "\n".join(f"{name} = {value}" for name, value in partials.items())


def asked_for(prompt: PromptSpec) -> tuple[str, ...]:
    """Return the variables a run is asked for, the question first."""
    return tuple(sorted(input_variables_of(prompt), key=lambda name: name != "input"))


def filled_in(prompt: PromptSpec) -> tuple[str, ...]:
    """Return the variables that the engine fills in."""
    return tuple(name for name in variables_of(prompt) if name in FROM_ENGINE)
