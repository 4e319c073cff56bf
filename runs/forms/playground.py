"""The form of the playground: variables and up to four columns of messages."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.engine.parsing.clean import clean_text
from runs.engine.prompts import (
    ENGINE_VARIABLES,
    find_template_problems,
    input_variables_of_prompt,
)
from runs.engine.types import PromptMessage, PromptSpec
from runs.forms.json_object import clean_json_object
from runs.forms.runs.inputs import build_run_input_field, input_field_name
from runs.forms.widgets import monospace_textarea, style_widgets
from runs.services.prompts.trials import PromptTrial
from runs.services.providers.model_choices import (
    ModelChoice,
    find_model_choice,
    list_model_choices,
)

MAX_COLUMNS = 4
MAX_MESSAGES = 200
ROLES = [
    ("system", gettext_lazy("System")),
    ("user", gettext_lazy("User")),
    ("assistant", gettext_lazy("Assistant")),
]


@dataclass(frozen=True)
class TypedMessage:
    role: str
    text: str


class ColumnForm(forms.Form):
    """The messages of one column and the model that receives them."""

    roles = ROLES

    temperature = forms.FloatField(
        required=False, min_value=0, max_value=2, label=gettext_lazy("Temperature")
    )
    max_tokens = forms.IntegerField(
        required=False, min_value=1, label=gettext_lazy("Max output tokens")
    )
    more = forms.CharField(
        required=False,
        label=gettext_lazy("Other parameters"),
        widget=monospace_textarea(1),
    )

    def __init__(
        self,
        *args: Any,
        models: list[ModelChoice],
        messages: list[TypedMessage] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        self.models = models
        self.fields["model"] = forms.ChoiceField(
            choices=[(one.key, one.title) for one in models], label=_("Model")
        )
        self.fields["temperature"].widget.attrs["step"] = "any"
        self.order_fields(["model", "temperature", "max_tokens", "more"])
        self.messages = self._read_messages(messages or [])
        self.message_errors: dict[int, list[str]] = {}
        style_widgets(self)

    def _read_messages(self, given: list[TypedMessage]) -> list[TypedMessage]:
        if not self.is_bound:
            return given or [TypedMessage("system", ""), TypedMessage("user", "")]
        texts = self.data.getlist(f"{self.prefix}-text")  # type: ignore[attr-defined]
        roles = self.data.getlist(f"{self.prefix}-role")  # type: ignore[attr-defined]
        pairs = list(zip(roles, texts, strict=False))[:MAX_MESSAGES]
        return [
            TypedMessage(role, clean_text(text).replace("\r\n", "\n"))
            for role, text in pairs
        ] or [TypedMessage("user", "")]

    def messages_with_errors(self) -> list[tuple[TypedMessage, list[str]]]:
        return [
            (one, self.message_errors.get(n, [])) for n, one in enumerate(self.messages)
        ]

    def prompt(self) -> PromptSpec:
        """Return the messages as a prompt of the engine, without empty ones."""
        return PromptSpec(
            messages=tuple(
                PromptMessage(role=one.role, template=one.text)  # type: ignore[arg-type]  # among the three
                for one in self.messages
                if one.text.strip() and one.role in dict(ROLES)
            )
        )

    def clean_more(self) -> dict[str, Any]:
        return clean_json_object(
            self.cleaned_data["more"],
            expected=_('Enter a JSON object, for example {"top_p": 0.9}.'),
        )

    def clean(self) -> dict[str, Any]:
        """Check the messages as a run does."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        for number, one in enumerate(self.messages):
            flaws = [str(flaw) for flaw in find_template_problems(one.text)]
            if one.role not in dict(ROLES):
                flaws.append(_("Select a role: System, User or Assistant."))
            if flaws:
                self.message_errors[number] = flaws
        if not self.prompt().messages:
            self.message_errors[0] = [_("Enter a message for the model.")]
        if self.message_errors:
            self.add_error(None, _("The prompt is invalid. Fix the messages below."))
        return given

    def to_prompt_try(self) -> PromptTrial:
        chosen = find_model_choice(self.models, self.cleaned_data["model"])
        assert chosen is not None  # the field has checked it
        parameters = dict(self.cleaned_data["more"])
        for name in ("temperature", "max_tokens"):
            if self.cleaned_data[name] is not None:
                parameters[name] = self.cleaned_data[name]
        return PromptTrial(
            messages=self.prompt().messages or (),
            provider=chosen.provider,
            model=chosen.model,
            parameters=parameters,
        )


@dataclass(frozen=True)
class PlaygroundColumn:
    messages: list[TypedMessage]
    model: str = ""
    """Key of a model choice; the first model if the key is unknown."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    more: str = ""
    """Other parameters as JSON text."""

    def initial(self) -> dict[str, Any]:
        rest = dict(self.parameters)
        return {
            "model": self.model,
            "temperature": rest.pop("temperature", None),
            "max_tokens": rest.pop("max_tokens", None),
            "more": json.dumps(rest, ensure_ascii=False) if rest else self.more,
        }


class PlaygroundForm(forms.Form):
    """The values of all variables and the forms of the columns."""

    use_required_attribute = False  # a variable may have been removed from the messages

    def __init__(
        self,
        data: QueryDict | None = None,
        *,
        user: User,
        columns: list[PlaygroundColumn] | None = None,
        values: Mapping[str, str] | None = None,
    ) -> None:
        initial = {
            input_field_name(name): value for name, value in (values or {}).items()
        }
        super().__init__(data, initial=initial)
        self.label_suffix = ""
        self.models = list_model_choices(user)
        self.columns = self._columns(data, columns or [PlaygroundColumn([])])
        self.names = self._variable_names()
        for name in self.names:
            self.fields[input_field_name(name)] = build_run_input_field(name)
        style_widgets(self)

    def _columns(
        self, data: QueryDict | None, columns: list[PlaygroundColumn]
    ) -> list[ColumnForm]:
        if data is None:
            return [
                ColumnForm(
                    prefix=f"c{n}",
                    models=self.models,
                    messages=one.messages,
                    initial=one.initial(),
                )
                for n, one in enumerate(columns[:MAX_COLUMNS], 1)
            ]
        there = [n for n in range(1, MAX_COLUMNS + 1) if f"c{n}-role" in data] or [1]
        return [ColumnForm(data, prefix=f"c{n}", models=self.models) for n in there]

    def _variable_names(self) -> list[str]:
        """Return the variables of all columns, the question first."""
        found = [
            name
            for one in self.columns
            for name in input_variables_of_prompt(one.prompt())
        ]
        return sorted(dict.fromkeys(found), key=lambda name: name != "input")

    @property
    def engine_filled_variables(self) -> list[str]:
        """Variables that stay empty here, because the engine fills them in."""
        texts = "".join(m.text for one in self.columns for m in one.messages)
        return [name for name in ENGINE_VARIABLES if f"{{{name}}}" in texts]

    def variables(self) -> list[forms.BoundField]:
        return [self[input_field_name(name)] for name in self.names]

    def values(self) -> dict[str, str]:
        return {name: self.cleaned_data[input_field_name(name)] for name in self.names}

    def is_valid(self) -> bool:
        columns = [one.is_valid() for one in self.columns]
        return super().is_valid() and all(columns)

    def to_columns(self) -> list[PlaygroundColumn]:
        """Return the submitted columns, valid or not, to be shown again."""
        return [
            PlaygroundColumn(
                one.messages,
                str(one["model"].value() or ""),
                {
                    name: one[name].value()
                    for name in ("temperature", "max_tokens")
                    if one[name].value()
                },
                str(one["more"].value() or ""),
            )
            for one in self.columns
        ]
