"""The form of an agent: kind, instructions, model, tools and limits."""

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.engine.kinds.registry import AGENT_KINDS
from runs.engine.parsing.clean import clean_text
from runs.engine.spec_validation import find_spec_problems
from runs.engine.types import AgentSpec, ExecutorOptions
from runs.forms.agents.draft import OWN_PARAMETERS, AgentDraft
from runs.forms.agents.options import OPTION_OF_FIELD, add_option_fields
from runs.forms.agents.tool_choices import (
    ToolChoice,
    list_tool_choices,
    selected_tool_uses,
)
from runs.forms.group_sharing import (
    add_groups_field,
    require_groups,
    save_shared_groups,
)
from runs.forms.json_object import clean_json_object, dump_json_object
from runs.forms.prompt import list_prompt_errors
from runs.forms.widgets import monospace_textarea, style_widgets
from runs.models import Agent, PromptTemplate, Provider
from runs.models.agents import (
    INLINE_SLUG,
    MAX_SUGGESTED_QUESTION_LENGTH,
    MAX_SUGGESTED_QUESTIONS,
)
from runs.services.agents.call_graph import find_cycle
from runs.services.agents.save import ToolAssignment, save_agent
from runs.services.errors import AgentCycle
from runs.services.spec.freeze import freeze_agent
from runs.services.spec.inline_prompt import extract_instructions, is_inline_prompt
from runs.ui.kind_labels import list_kind_choices

SAVED_DESPITE_ERRORS = ("instructions", "kind")
"""Fields stored in the draft even if invalid; a run refuses them."""

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[Agent]
else:
    _ModelForm = forms.ModelForm


class AgentForm(_ModelForm):
    """The whole draft of an agent; `user` is the person who edits it."""

    kind = forms.ChoiceField(
        choices=list_kind_choices,
        widget=forms.RadioSelect,
        label=gettext_lazy("Kind"),
    )
    source = forms.ChoiceField(
        choices=[
            ("write", gettext_lazy("Custom")),
            ("template", gettext_lazy("From the prompt library")),
        ],
        widget=forms.RadioSelect,
        initial="write",
    )
    instructions = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(
            attrs={
                "rows": 8,
                "class": "mono",
                "spellcheck": "true",
                "data-empty": gettext_lazy("No variables. Type { to insert one."),
            }
        ),
        label=gettext_lazy("Instructions"),
        help_text=gettext_lazy(
            "A name in braces such as {name} becomes an input of each run. Leave empty "
            "to use the built-in prompt of the kind."
        ),
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
            'JSON, sent unchanged, for example {"top_p": 0.9, "seed": 7}.'
        ),
    )

    suggested_questions = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        label=gettext_lazy("Suggested questions"),
        help_text=gettext_lazy(
            "One per line. An empty conversation in the chat shows them as buttons."
        ),
    )

    class Meta:
        model = Agent
        fields = [
            "name",
            "description",
            "kind",
            "provider",
            "model",
            "prompt",
            "memory",
            "suggested_questions",
            "visibility",
            "is_offered",
            "continues_without_client",
        ]
        labels = {
            "name": gettext_lazy("Name"),
            "description": gettext_lazy("Description"),
            "provider": gettext_lazy("Provider"),
            "model": gettext_lazy("Model"),
            "prompt": gettext_lazy("Prompt"),
            "memory": gettext_lazy("Remember earlier messages of a conversation"),
            "visibility": gettext_lazy("Shared with"),
            "is_offered": gettext_lazy("Offer to programs"),
            "continues_without_client": gettext_lazy(
                "Continue runs whose client disconnects"
            ),
        }

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        self.label_suffix = ""
        self._set_querysets()
        add_option_fields(self, ExecutorOptions.model_validate(self.instance.executor))
        if not self.is_bound:
            self._set_initial()
        self.fields["description"].widget = forms.TextInput()
        names = {"list": "agent-model-names", "data-combobox": ""}
        self.fields["model"].widget.attrs |= names
        for name in ("temperature", "max_execution_time", "budget_cost"):
            self.fields[name].widget.attrs["step"] = "any"
        if self.instance.pk is None and not self.is_bound:
            self.fields["name"].widget.attrs["autofocus"] = True
        add_groups_field(self, self.instance)
        style_widgets(self)

    def _set_querysets(self) -> None:
        """Offer what the user may use, and what the agent already uses."""
        mine = self.instance
        providers = Provider.objects.usable_by(self.user)
        prompts = PromptTemplate.objects.usable_by(self.user)
        if mine.pk and mine.provider_id:
            providers |= Provider.objects.filter(pk=mine.provider_id)
        if mine.prompt_id:
            prompts |= PromptTemplate.objects.filter(pk=mine.prompt_id)
        provider: Any = self.fields["provider"]
        provider.queryset = providers.distinct().order_by("name")
        provider.empty_label = None
        prompt: Any = self.fields["prompt"]
        prompt.queryset = (
            prompts.exclude(slug__regex=INLINE_SLUG).distinct().order_by("name")
        )
        prompt.empty_label = _("Select a prompt")

    def _set_initial(self) -> None:
        """Set the initial values of the fields that are not columns."""
        agent = self.instance
        if agent.prompt is not None:
            own = is_inline_prompt(agent.prompt, agent)
            self.initial["source"] = "write" if own else "template"
            self.initial["prompt"] = None if own else agent.prompt_id
            if own:
                self.initial["instructions"] = extract_instructions(agent.prompt)
        self.initial["suggested_questions"] = "\n".join(agent.suggested_questions)
        rest = dict(agent.parameters)
        for name in OWN_PARAMETERS:
            self.initial[name] = rest.pop(name, None)
        self.initial["more"] = dump_json_object(rest or None)

    @cached_property
    def tools(self) -> list[ToolChoice]:
        """All tools and agents that the user may add, those in use first."""
        return list_tool_choices(
            self.instance, self.user, self.data if self.is_bound else None
        )

    @cached_property
    def circle(self) -> tuple[str, ...]:
        """The names along a cycle of agents back to this one; empty without a cycle."""
        chosen = (one.callee.pk for one in self.tools if one.is_agent and one.is_on)
        return find_cycle(self.instance, chosen)

    def _tool_uses(self) -> list[ToolAssignment]:
        """Return the tools to store, without new sub-agents if they form a cycle."""
        if not self.circle:
            return selected_tool_uses(self.tools)
        had = list_tool_choices(self.instance, self.user, None)
        kept = [one for one in had if one.is_agent]
        return selected_tool_uses(
            [one for one in self.tools if not one.is_agent] + kept
        )

    def clean_more(self) -> dict[str, Any]:
        return clean_json_object(
            self.cleaned_data["more"],
            expected=_('Enter a JSON object, for example {"top_p": 0.9}.'),
        )

    def clean_suggested_questions(self) -> list[str]:
        """Return the lines that are not empty."""
        lines = str(self.cleaned_data["suggested_questions"]).splitlines()
        questions = [" ".join(line.split()) for line in lines if line.strip()]
        if len(questions) > MAX_SUGGESTED_QUESTIONS:
            raise forms.ValidationError(
                _("Enter at most %(limit)s questions.")
                % {"limit": MAX_SUGGESTED_QUESTIONS}
            )
        if any(len(text) > MAX_SUGGESTED_QUESTION_LENGTH for text in questions):
            raise forms.ValidationError(
                _("A question can have at most %(limit)s characters.")
                % {"limit": MAX_SUGGESTED_QUESTION_LENGTH}
            )
        return questions

    def clean_output_schema(self) -> dict[str, Any] | None:
        """Parse the JSON; the schema itself is checked with the whole agent."""
        text: str = self.cleaned_data["output_schema"].strip()
        expected = _('Enter a JSON Schema, for example {"type": "object"}.')
        return clean_json_object(text, expected=expected) if text else None

    def clean(self) -> dict[str, Any]:
        """Check the whole agent as a run does."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        require_groups(self, given)
        if given.get("source") == "template" and not given.get("prompt"):
            self.add_error(
                "prompt", _("Select a prompt, or write custom instructions.")
            )
        if given.get("parsing") == "say" and not given.get("parsing_text", "").strip():
            self.add_error(
                "parsing_text", _("Enter the message, or select another option.")
            )
        if text := self._missing_functions_error(given):
            self.add_error("kind", text)
        if self.circle:
            self.add_error(None, str(AgentCycle(self.circle)))
        if "kind" in given:
            for field, message in self._spec_errors():
                self.add_error(field, message)
        return given

    def _missing_functions_error(self, given: dict[str, Any]) -> str:
        """Explain that the kind needs functions, which the model does not support."""
        kind, provider = AGENT_KINDS.get(given.get("kind", "")), given.get("provider")
        if kind is None or not kind.needs_functions or provider is None:
            return ""
        if not provider.models.filter(name=given.get("model"), functions=False):
            return ""
        return _(
            "Provider %(provider)s says that model %(model)s does not support "
            "function calling. Select ReAct or another kind that writes its calls "
            "as text, or another model."
        ) % {"model": repr(given["model"]), "provider": provider}

    def _spec_errors(self) -> Iterator[tuple[str | None, str]]:
        spec = self.spec()
        where = "instructions" if self._has_own_instructions else "prompt"
        for message in inline_prompt_errors(spec):
            yield where, message
        for problem in find_spec_problems(spec):
            if not problem.field.startswith("prompt"):
                yield (
                    form_field_for(problem.field),
                    strip_field_name(problem.field, problem.message),
                )

    @cached_property
    def stored_spec(self) -> AgentSpec | None:
        """The spec of the stored agent, if the form shows it unchanged."""
        is_shown = not self.is_bound and self.instance.pk
        return freeze_agent(self.instance) if is_shown else None

    def preview_spec(self) -> AgentSpec:
        """Return the spec of a run: of the stored agent, or of the unsaved form."""
        return self.stored_spec or self.spec()

    def list_errors(self) -> list[str]:
        """Return the errors so far; an empty required field is not an error yet."""
        if not self.is_bound:
            spec = self.preview_spec()
            return inline_prompt_errors(spec) + [
                p.message for p in find_spec_problems(spec)
            ]
        return [
            _("%(field)s: %(error)s")
            % {"field": self.fields[name].label, "error": error.messages[0]}
            if name in self.fields
            else error.messages[0]
            for name, errors in self.errors.as_data().items()
            for error in errors
            if error.code != "required"
        ]

    @property
    def _has_own_instructions(self) -> bool:
        return bool(self["source"].value() != "template")

    @property
    def _instructions(self) -> str | None:
        """The typed instructions; None if the prompt is from the library."""
        if not self._has_own_instructions:
            return None
        return str(self["instructions"].value() or "").replace("\r\n", "\n")

    def spec(self) -> AgentSpec:
        """Return the spec of the unsaved form, as far as its fields are valid."""
        return self._draft().build_spec()

    def _draft(self) -> AgentDraft:
        given = getattr(self, "cleaned_data", {})
        hidden = OPTION_OF_FIELD.keys() - self.fields.keys()
        return AgentDraft(
            agent=self.instance,
            given=given,
            kept=frozenset(hidden | (self.__dict__.get("_errors") or {}).keys()),
            kind=given.get("kind") or self["kind"].value(),
            instructions=self._instructions,
            tools=self.tools,
        )

    def save(self, commit: bool = True, *, seen: str | None = None) -> Agent:
        """Store the agent with its tools and instructions.

        Invalid fields keep their stored values, except `SAVED_DESPITE_ERRORS`. Raise
        `DraftConflict` if `seen` is not the token of the stored draft.
        """
        agent, draft = self.instance, self._draft()
        agent.parameters = draft.build_parameters()
        agent.executor = draft.build_options().model_dump(
            mode="json", exclude_defaults=True
        )
        if "kind" in self.errors and self.data.get("kind") in AGENT_KINDS:
            agent.kind = self.data["kind"]
        text = self._instructions
        save_agent(
            agent,
            uses=self._tool_uses(),
            instructions=clean_text(text) if text is not None else None,
            seen=seen,
        )
        if not self.errors.keys() & {"groups", "visibility"}:
            save_shared_groups(agent, self.cleaned_data["groups"])
        return agent

    def unsaved_fields(self) -> list[str]:
        """Return the invalid fields, which keep their stored values."""
        wrong = (name for name in self.fields if name in self.errors)
        return [name for name in wrong if name not in SAVED_DESPITE_ERRORS]


def inline_prompt_errors(spec: AgentSpec) -> list[str]:
    """Return the errors of a prompt, unless it is the built-in one of the kind."""
    return list_prompt_errors(spec.kind, spec.prompt) if spec.prompt else []


def form_field_for(path: str) -> str | None:
    """Return the form field for a field of the spec; None without one."""
    name = path.removeprefix("executor.")
    plain = {"budget.tokens": "budget_tokens", "budget.cost": "budget_cost"}
    name = plain.get(name, name)
    known = AgentForm.base_fields.keys() | OPTION_OF_FIELD.keys()
    return name if name in known else None


def strip_field_name(path: str, message: str) -> str:
    """Remove the name of the field from the start of a message shown beside it."""
    name = path.removeprefix("executor.")
    if message.startswith(f"{name} "):
        rest = message.removeprefix(f"{name} ")
        return rest[0].upper() + rest[1:]
    return message
