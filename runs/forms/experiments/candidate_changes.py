"""One candidate with changes in the form of an experiment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.engine.parsing.clean import clean_text
from runs.forms.json_object import clean_json_object, dump_json_object
from runs.forms.widgets import monospace_textarea, style_widgets
from runs.models import Agent, AgentVersion, PromptTemplate
from runs.services.experiments.changes import CandidateChanges, use_library_prompt
from runs.services.experiments.create import CandidateChoice
from runs.services.spec.inline_prompt import list_library_prompts

DRAFT = "draft"
FORMER_PROMPT = "former:"
"""Begins the value of a prompt with the text that the former experiment used."""


@dataclass
class CandidateOffer:
    """What the candidates of one agent can be made of."""

    agent: Agent
    versions: dict[str, AgentVersion]
    has_draft: bool
    """Whether the user can run the draft, and change model, prompt and parameters."""
    prompts: dict[str, PromptTemplate]
    former_prompts: dict[str, CandidateChanges]
    """By value of the field."""

    def list_bases(self) -> list[tuple[str, str]]:
        """Return the versions and the draft, with labels."""
        found = [
            (key, _("Version %(number)d") % {"number": one.number})
            for key, one in self.versions.items()
        ]
        return [*found, (DRAFT, _("Draft"))] if self.has_draft else found

    def list_prompts(self) -> list[tuple[str, str]]:
        """Return the prompts of the library, and former ones as they were."""
        found = [(one.slug, one.name) for one in self.prompts.values()]
        for key, changes in self.former_prompts.items():
            found.append((key, _("%(name)s, as it was") % {"name": changes.prompt}))
        return [("", _("None")), *sorted(found, key=lambda one: one[1])]


def load_candidate_offer(
    user: User,
    agent: Agent,
    versions: Sequence[AgentVersion],
    former: Sequence[CandidateChoice],
) -> CandidateOffer:
    """Return the offer; `former` are the candidates of an experiment to run again."""
    return CandidateOffer(
        agent=agent,
        versions={str(one.number): one for one in versions},
        has_draft=Agent.objects.editable_by(user).filter(pk=agent.pk).exists(),
        prompts={one.slug: one for one in list_library_prompts(user)},
        former_prompts={
            f"{FORMER_PROMPT}{place}": one.changes
            for place, one in enumerate(former)
            if one.changes.prompt_text is not None
        },
    )


class CandidateChangesForm(forms.Form):
    """A version or the draft, with another model, prompt or parameters."""

    base = forms.ChoiceField(required=False, label=gettext_lazy("Based on"))
    model = forms.CharField(
        required=False,
        max_length=200,
        label=gettext_lazy("Another model"),
        help_text=gettext_lazy("Of the same provider"),
    )
    prompt = forms.ChoiceField(
        required=False, label=gettext_lazy("Prompt of the library")
    )
    instructions = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 4, "class": "mono"}),
        label=gettext_lazy("Other instructions"),
        help_text=gettext_lazy("In place of its prompt. Leave empty to keep it."),
    )
    temperature = forms.FloatField(
        required=False, min_value=0, max_value=2, label=gettext_lazy("Temperature")
    )
    max_tokens = forms.IntegerField(
        required=False, min_value=1, label=gettext_lazy("Max output tokens")
    )
    more = forms.CharField(
        required=False,
        label=gettext_lazy("Other parameters"),
        widget=monospace_textarea(2),
        help_text=gettext_lazy(
            'JSON, for example {"top_p": 0.9}; null removes a parameter.'
        ),
    )

    def __init__(self, offer: CandidateOffer, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        self.offer = offer
        base: Any = self.fields["base"]
        base.choices = [("", _("The last candidate selected")), *offer.list_bases()]
        prompt: Any = self.fields["prompt"]
        prompt.choices = offer.list_prompts()
        self.fields["temperature"].widget.attrs["step"] = "any"
        style_widgets(self)

    def clean_more(self) -> dict[str, Any]:
        """Parse the other parameters."""
        return clean_json_object(
            self.cleaned_data["more"],
            expected=_('Enter a JSON object, for example {"top_p": 0.9}.'),
        )

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if given.get("prompt") and given.get("instructions"):
            self.add_error(
                "prompt", _("Select a prompt or enter instructions, not both.")
            )
        return given

    @property
    def is_filled(self) -> bool:
        """Whether anything is entered; an empty form is not a candidate."""
        return any(self[name].value() or self[name].errors for name in self.fields)

    def read_values(self) -> dict[str, Any]:
        """Return what was sent, without checking it."""
        return {name: self[name].value() for name in self.fields}

    def build_changes(self) -> CandidateChanges:
        """Return what a valid form changes; nothing if it is to run as it is."""
        given = self.cleaned_data
        parameters = dict(given.get("more") or {})
        for name in ("temperature", "max_tokens"):
            if given.get(name) is not None:
                parameters[name] = given[name]
        changes = CandidateChanges(
            model=(given.get("model") or "").strip(),
            instructions=clean_text(given.get("instructions") or "")
            .replace("\r\n", "\n")
            .strip(),
            parameters=parameters,
        )
        slug = given.get("prompt")
        if not slug:
            return changes
        if former := self.offer.former_prompts.get(slug):
            kept = {name: getattr(former, name) for name in ("prompt", "prompt_text")}
            return changes.model_copy(update=kept)
        return use_library_prompt(changes, self.offer.prompts[slug])

    def build_choice(self, last: CandidateChoice | None) -> CandidateChoice:
        """Return the candidate of a valid form; `last` is the last one selected."""
        base, version = self.cleaned_data["base"], None
        if base:
            version = self.offer.versions.get(base)
        elif last is not None:
            version = last.version
        elif not self.offer.has_draft:
            version = next(iter(self.offer.versions.values()), None)
        return CandidateChoice(self.offer.agent, version, self.build_changes())


def read_choice_values(
    choice: CandidateChoice, offer: CandidateOffer
) -> dict[str, Any]:
    """Return what the form begins with for a candidate of a former experiment."""
    changes, parameters = choice.changes, dict(choice.changes.parameters)
    prompts = offer.former_prompts.items()
    return {
        "base": name_choice(choice),
        "model": changes.model,
        "instructions": changes.instructions,
        "prompt": next((key for key, one in prompts if one == changes), ""),
        "temperature": parameters.pop("temperature", None),
        "max_tokens": parameters.pop("max_tokens", None),
        "more": dump_json_object(parameters or None),
    }


def name_choice(choice: CandidateChoice) -> str:
    """Return the value of the form for a version or the draft."""
    return str(choice.version.number) if choice.version else DRAFT
