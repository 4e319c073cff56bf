"""The form of the playground: variables, and up to four columns of messages."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.http import QueryDict

from runs.engine.clean import clean_text
from runs.engine.prompts import FROM_ENGINE, flaws_of, input_variables_of
from runs.engine.types import PromptMessage, PromptSpec
from runs.forms.agent import object_in
from runs.forms.looks import dress, mono
from runs.forms.run import field_for, name_of
from runs.services.model_choices import ModelChoice, model_choices, model_of
from runs.services.try_prompts import PromptTry

COLUMNS = 4
MOST_MESSAGES = 200
ROLES = [("system", "System"), ("user", "User"), ("assistant", "Assistant")]


@dataclass(frozen=True)
class Typed:
    """One message of a column."""

    role: str
    text: str


class ColumnForm(forms.Form):
    """The messages of one column, and the model that gets them."""

    roles = ROLES

    temperature = forms.FloatField(required=False, min_value=0, max_value=2)
    max_tokens = forms.IntegerField(required=False, min_value=1, label="Longest reply")
    more = forms.CharField(
        required=False,
        label="Other parameters",
        widget=mono(1),
    )

    def __init__(
        self,
        *args: Any,
        models: list[ModelChoice],
        messages: list[Typed] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        self.models = models
        self.fields["model"] = forms.ChoiceField(
            choices=[(one.key, one.title) for one in models]
        )
        self.fields["temperature"].widget.attrs["step"] = "any"
        self.order_fields(["model", "temperature", "max_tokens", "more"])
        self.messages = self._read(messages or [])
        self.mistakes: dict[int, list[str]] = {}
        dress(self)

    def _read(self, given: list[Typed]) -> list[Typed]:
        """Return the messages typed, or those it begins with."""
        if not self.is_bound:
            return given or [Typed("system", ""), Typed("user", "")]
        texts = self.data.getlist(f"{self.prefix}-text")  # type: ignore[attr-defined]
        roles = self.data.getlist(f"{self.prefix}-role")  # type: ignore[attr-defined]
        pairs = list(zip(roles, texts, strict=False))[:MOST_MESSAGES]
        return [
            Typed(role, clean_text(text).replace("\r\n", "\n")) for role, text in pairs
        ] or [Typed("user", "")]

    def numbered(self) -> list[tuple[Typed, list[str]]]:
        """Return each message with what is wrong in it."""
        return [(one, self.mistakes.get(n, [])) for n, one in enumerate(self.messages)]

    def prompt(self) -> PromptSpec:
        """Return what is typed as the engine takes it; empty messages left out."""
        return PromptSpec(
            messages=tuple(
                PromptMessage(role=one.role, template=one.text)  # type: ignore[arg-type]  # among the three
                for one in self.messages
                if one.text.strip() and one.role in dict(ROLES)
            )
        )

    def clean_more(self) -> dict[str, Any]:
        """Read the other parameters."""
        text: str = self.cleaned_data["more"].strip()
        return object_in(text, 'Write a JSON object, as {"top_p": 0.9}.')

    def clean(self) -> dict[str, Any]:
        """Check the messages as a run would."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        for number, one in enumerate(self.messages):
            flaws = [str(flaw) for flaw in flaws_of(one.text)]
            if one.role not in dict(ROLES):
                flaws.append("Choose System, User or Assistant.")
            if flaws:
                self.mistakes[number] = flaws
        if not self.prompt().messages:
            self.mistakes[0] = ["Write what the model is told."]
        if self.mistakes:
            self.add_error(None, "The prompt cannot be sent as it is.")
        return given

    def to_try(self) -> PromptTry:
        """Return the column as its service takes it."""
        chosen = model_of(self.models, self.cleaned_data["model"])
        assert chosen is not None  # the field has checked it
        parameters = dict(self.cleaned_data["more"])
        for name in ("temperature", "max_tokens"):
            if self.cleaned_data[name] is not None:
                parameters[name] = self.cleaned_data[name]
        return PromptTry(
            messages=self.prompt().messages or (),
            provider=chosen.provider,
            model=chosen.model,
            parameters=parameters,
        )


@dataclass(frozen=True)
class Column:
    """What a column begins with."""

    messages: list[Typed]
    model: str = ""
    """Key of a model choice; the first one where it is not among them."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    more: str = ""
    """Other parameters as they are typed."""

    def initial(self) -> dict[str, Any]:
        """Return the fields."""
        rest = dict(self.parameters)
        return {
            "model": self.model,
            "temperature": rest.pop("temperature", None),
            "max_tokens": rest.pop("max_tokens", None),
            "more": json.dumps(rest, ensure_ascii=False) if rest else self.more,
        }


class PlaygroundForm(forms.Form):
    """The values of all variables, with the forms of the columns."""

    use_required_attribute = False  # a variable may have left the messages since

    def __init__(
        self,
        data: QueryDict | None = None,
        *,
        user: User,
        columns: list[Column] | None = None,
        values: Mapping[str, str] | None = None,
    ) -> None:
        initial = {name_of(name): value for name, value in (values or {}).items()}
        super().__init__(data, initial=initial)
        self.label_suffix = ""
        self.models = model_choices(user)
        self.columns = self._columns(data, columns or [Column([])])
        self.names = self._names()
        for name in self.names:
            self.fields[name_of(name)] = field_for(name)
        dress(self)

    def _columns(
        self, data: QueryDict | None, columns: list[Column]
    ) -> list[ColumnForm]:
        if data is None:
            return [
                ColumnForm(
                    prefix=f"c{n}",
                    models=self.models,
                    messages=one.messages,
                    initial=one.initial(),
                )
                for n, one in enumerate(columns[:COLUMNS], 1)
            ]
        there = [n for n in range(1, COLUMNS + 1) if f"c{n}-role" in data] or [1]
        return [ColumnForm(data, prefix=f"c{n}", models=self.models) for n in there]

    def _names(self) -> list[str]:
        """Return the variables of all columns, the question first."""
        found = [
            name for one in self.columns for name in input_variables_of(one.prompt())
        ]
        return sorted(dict.fromkeys(found), key=lambda name: name != "input")

    @property
    def filled(self) -> list[str]:
        """Variables that stay empty here, for the engine fills them in elsewhere."""
        texts = "".join(m.text for one in self.columns for m in one.messages)
        return [name for name in FROM_ENGINE if f"{{{name}}}" in texts]

    def variables(self) -> list[forms.BoundField]:
        """Return the fields of the variables."""
        return [self[name_of(name)] for name in self.names]

    def values(self) -> dict[str, str]:
        """Return what was typed, by variable."""
        return {name: self.cleaned_data[name_of(name)] for name in self.names}

    def is_valid(self) -> bool:
        """Whether the variables and every column can be sent."""
        columns = [one.is_valid() for one in self.columns]
        return super().is_valid() and all(columns)

    def begins(self) -> list[Column]:
        """Return the columns as they are typed, wrong or not, to be shown again."""
        return [
            Column(
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
