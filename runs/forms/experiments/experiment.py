"""The form of a new experiment with the versions of one agent."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.engine.parsing.clean import clean_text
from runs.forms.experiments.budget import BudgetField
from runs.forms.experiments.tool_mode import ToolModeField
from runs.forms.json_object import parse_json_object
from runs.forms.widgets import monospace_textarea, style_widgets
from runs.models import Agent, AgentVersion, Dataset, Evaluator
from runs.services.errors import FieldError
from runs.services.experiments.changes import CandidateChanges, use_library_prompt
from runs.services.experiments.create import (
    MAX_CANDIDATES,
    MAX_CONCURRENCY,
    MAX_REPETITIONS,
    CandidateChoice,
    ExperimentPlan,
)
from runs.services.spec.inline_prompt import list_library_prompts

DRAFT = "draft"
FORMER = "former:"
"""The prompt of the experiment that runs again, with the text it had then."""
PROMPT_AND_PARAMETERS = ("prompt", "instructions", "temperature", "max_tokens", "more")
MAX_OFFERED_VERSIONS = 20


class ExperimentSubjectForm(forms.Form):
    """What is evaluated: a dataset with a version, and an agent."""

    dataset = forms.ModelChoiceField(
        queryset=Dataset.objects.none(), label=gettext_lazy("Dataset")
    )
    agent = forms.ModelChoiceField(
        queryset=Agent.objects.none(), label=gettext_lazy("Agent")
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        datasets: Any = self.fields["dataset"]
        usable = Dataset.objects.usable_by(user).filter(version__gt=0)
        datasets.queryset = usable.order_by("name")
        agents: Any = self.fields["agent"]
        agents.queryset = Agent.objects.usable_by(user).order_by("name")
        style_widgets(self)


class ExperimentForm(forms.Form):
    """Candidates, evaluators and how the runs are made."""

    name = forms.CharField(required=False, max_length=120, label=gettext_lazy("Name"))
    candidates = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple,
        label=gettext_lazy("Candidates"),
        error_messages={"required": gettext_lazy("Select at least one candidate.")},
    )
    model = forms.CharField(
        required=False,
        max_length=200,
        label=gettext_lazy("Another model"),
        help_text=gettext_lazy("Of the same provider"),
    )
    base = forms.ChoiceField(required=False, label=gettext_lazy("Based on"))
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
    evaluators = forms.ModelMultipleChoiceField(
        queryset=Evaluator.objects.none(),
        widget=forms.CheckboxSelectMultiple,
        label=gettext_lazy("Evaluators"),
        error_messages={"required": gettext_lazy("Select at least one evaluator.")},
    )
    tool_mode = ToolModeField()
    repetitions = forms.IntegerField(
        min_value=1,
        max_value=MAX_REPETITIONS,
        initial=1,
        label=gettext_lazy("Repetitions"),
    )
    concurrency = forms.IntegerField(
        min_value=1,
        max_value=MAX_CONCURRENCY,
        initial=10,
        label=gettext_lazy("Runs at once"),
    )
    budget = BudgetField(
        help_text=gettext_lazy("The experiment stops when it has cost as much.")
    )

    def __init__(
        self,
        user: User,
        agent: Agent,
        *args: Any,
        former: CandidateChanges | None = None,
        **kwargs: Any,
    ) -> None:
        """`former` are changes of the experiment that runs again."""
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        self.agent = agent
        self.former = former
        versions = agent.versions.select_related("spec")[:MAX_OFFERED_VERSIONS]
        self.versions = {str(one.number): one for one in versions}
        has_draft = Agent.objects.editable_by(user).filter(pk=agent.pk).exists()
        choices: Any = self.fields["candidates"]
        offered = list_candidates(self.versions.values(), has_draft=has_draft)
        choices.choices = offered
        newest = next(iter(self.versions), None)
        choices.initial = [one for one in (newest, DRAFT) if one in dict(offered)]
        base: Any = self.fields["base"]
        base.choices = [("", _("The last candidate selected")), *offered]
        self.prompts = {one.slug: one for one in list_library_prompts(user)}
        prompt: Any = self.fields["prompt"]
        prompt.choices = self._list_prompts()
        if not has_draft:
            for name in PROMPT_AND_PARAMETERS:
                del self.fields[name]
        else:
            self.fields["temperature"].widget.attrs["step"] = "any"
        evaluators: Any = self.fields["evaluators"]
        evaluators.queryset = Evaluator.objects.usable_by(user).order_by("name")
        style_widgets(self)

    def _list_prompts(self) -> list[tuple[str, str]]:
        """Return the prompts of the library, and the former one if it has changed."""
        found = [(one.slug, one.name) for one in self.prompts.values()]
        if self.former and self.former.prompt_text:
            label = _("%(name)s, as it was") % {"name": self.former.prompt}
            found.append((FORMER, label))
        return [("", _("None")), *sorted(found, key=lambda one: one[1])]

    def clean_more(self) -> dict[str, Any]:
        """Parse the other parameters."""
        return parse_json_object(
            self.cleaned_data["more"],
            expected=_('Enter a JSON object, for example {"top_p": 0.9}.'),
        )

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if given.get("prompt") and given.get("instructions"):
            self.add_error(
                "prompt", _("Select a prompt or enter instructions, not both.")
            )
        count = len(given.get("candidates", ())) + bool(self.build_changes())
        if count > MAX_CANDIDATES:
            self.add_error(
                "candidates",
                _("Select at most %(limit)d candidates.") % {"limit": MAX_CANDIDATES},
            )
        return given

    def build_changes(self) -> CandidateChanges:
        """Return what the last candidate changes; nothing if there is none."""
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
        if slug == FORMER and self.former:
            kept = {"prompt", "prompt_text"}
            return changes.model_copy(
                update={name: getattr(self.former, name) for name in kept}
            )
        return use_library_prompt(changes, self.prompts[slug]) if slug else changes

    def list_choices(self) -> list[CandidateChoice]:
        """Return the candidates: versions, the draft, and the one with changes."""
        chosen = self.cleaned_data["candidates"]
        found = [
            CandidateChoice(self.agent, self.versions.get(key))
            for key in (*self.versions, DRAFT)
            if key in chosen
        ]
        if changes := self.build_changes():
            base = self.cleaned_data["base"]
            version = self.versions.get(base) if base else found[-1].version
            found.append(CandidateChoice(self.agent, version, changes))
        return found

    def add_candidate_errors(self, errors: Iterable[FieldError]) -> None:
        """Show errors of the candidate with changes at its fields."""
        for error in errors:
            name = error.field.rpartition(".")[2]
            name = "more" if name == "parameters" else name
            is_own = error.field.startswith("candidates.") and name in self.fields
            self.add_error(name if is_own else None, error.message)

    def build_plan(self) -> ExperimentPlan:
        given = self.cleaned_data
        return ExperimentPlan(
            tool_mode=given["tool_mode"],
            repetitions=given["repetitions"],
            concurrency=given["concurrency"],
            budget=given["budget"],
        )


def list_candidates(versions: "Any", *, has_draft: bool) -> list[tuple[str, str]]:
    """Return the versions and the draft, with labels."""
    found: list[AgentVersion] = list(versions)
    draft = [(DRAFT, _("Draft"))] if has_draft else []
    return [
        *(
            (str(one.number), _("Version %(number)d") % {"number": one.number})
            for one in found
        ),
        *draft,
    ]
