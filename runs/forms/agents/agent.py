"""The form of an agent: kind, instructions, model, tools and limits."""

import json
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.engine.kinds.registry import AGENT_KINDS
from runs.engine.parsing.clean import clean_json, clean_text
from runs.engine.spec_validation import find_spec_problems
from runs.engine.types import (
    AgentSpec,
    Budget,
    ExecutorOptions,
    LoopGuard,
    ModelSettings,
    PromptSpec,
)
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
from runs.forms.prompt import list_prompt_errors
from runs.forms.widgets import monospace_textarea, style_widgets
from runs.models import Agent, PromptTemplate, Provider
from runs.services.agents.call_graph import find_cycle
from runs.services.agents.save import ToolAssignment, save_agent
from runs.services.errors import AgentCycle
from runs.services.spec.freeze import (
    build_agent_tool_spec,
    build_prompt_spec,
    freeze_agent,
)
from runs.services.spec.inline_prompt import (
    build_prompt_with_instructions,
    extract_instructions,
    is_inline_prompt,
)
from runs.ui.kind_labels import list_kind_choices
from tools.definition.freeze import freeze_tool
from tools.definition.tool_names import prefix_colliding_names
from tools.models import Tool
from tools.spec import ToolSpec
from tools.text.parse_errors import NOT_JSON, find_json_error

DEFAULT_LOOP_GUARD = LoopGuard()
OWN_PARAMETERS = ("temperature", "max_tokens")
"""Parameters with their own field; the others are entered as JSON."""
SAVED_DESPITE_ERRORS = ("instructions", "kind")
"""Fields stored in the draft even if invalid; a run refuses them."""

EXECUTOR_FIELDS = {
    "max_iterations": "max_iterations",
    "max_execution_time": "max_execution_time",
    "budget_tokens": "budget",
    "budget_cost": "budget",
    "early_stopping_method": "early_stopping_method",
    "parsing": "handle_parsing_errors",
    "parsing_text": "handle_parsing_errors",
    "trim_intermediate_steps": "trim_intermediate_steps",
    "context_tokens": "context_tokens",
    "context_method": "context_method",
    "output_schema": "output_schema",
    "loop_guard": "loop_guard",
}
"""Field of `ExecutorOptions` for each field of the form."""


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
    max_iterations = forms.IntegerField(
        required=False, label=gettext_lazy("Rounds"), initial=15
    )
    max_execution_time = forms.FloatField(
        required=False, label=gettext_lazy("Working time")
    )
    budget_tokens = forms.IntegerField(required=False, label=gettext_lazy("Tokens"))
    budget_cost = forms.FloatField(required=False, label=gettext_lazy("Cost"))
    early_stopping_method = forms.ChoiceField(
        choices=[
            ("force", gettext_lazy("End immediately and keep the steps")),
            ("generate", gettext_lazy("Request a final answer from the model")),
        ],
        label=gettext_lazy("When a limit is reached"),
        initial="force",
    )
    parsing = forms.ChoiceField(
        choices=[
            ("tell", gettext_lazy("Send the error to the model")),
            ("say", gettext_lazy("Send a custom message to the model")),
            ("fail", gettext_lazy("Fail the run")),
        ],
        label=gettext_lazy("When a reply cannot be parsed"),
        initial="tell",
    )
    parsing_text = forms.CharField(required=False, label=gettext_lazy("Custom message"))
    trim_intermediate_steps = forms.IntegerField(
        required=False,
        label=gettext_lazy("Rounds sent to the model"),
        help_text=gettext_lazy(
            "Only the latest rounds. Leave empty to send all of them."
        ),
    )
    context_tokens = forms.IntegerField(
        required=False,
        label=gettext_lazy("Max request tokens"),
        help_text=gettext_lazy(
            "Estimated; the oldest rounds are dropped first. Leave empty for no limit."
        ),
    )
    context_method = forms.ChoiceField(
        required=False,
        choices=[
            ("drop", gettext_lazy("Drop the oldest rounds")),
            ("summary", gettext_lazy("Summarize the oldest rounds")),
        ],
        label=gettext_lazy("When a request is too long"),
        initial="drop",
    )
    output_schema = forms.CharField(
        required=False,
        label=gettext_lazy("JSON Schema of the answer"),
        widget=forms.Textarea(
            attrs={"rows": 3, "class": "mono", "spellcheck": "false"}
        ),
        help_text=gettext_lazy(
            "An answer that does not match is returned to the model with the errors. "
            "Leave empty for text answers."
        ),
    )
    loop_guard = forms.BooleanField(
        required=False,
        initial=True,
        label=gettext_lazy("Stop repeated rounds"),
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
            "visibility",
        ]
        labels = {
            "name": gettext_lazy("Name"),
            "description": gettext_lazy("Description"),
            "provider": gettext_lazy("Provider"),
            "model": gettext_lazy("Model"),
            "prompt": gettext_lazy("Prompt"),
            "memory": gettext_lazy("Remember earlier messages of a conversation"),
            "visibility": gettext_lazy("Shared with"),
        }

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        self.label_suffix = ""
        self._set_querysets()
        if not self.is_bound:
            self._set_initial()
        self.fields["description"].widget = forms.TextInput()
        self.fields["loop_guard"].help_text = _(
            "After %(hint)s identical rounds the model is warned, after %(stop)s the "
            "run ends."
        ) % {"hint": DEFAULT_LOOP_GUARD.hint, "stop": DEFAULT_LOOP_GUARD.stop}
        self.fields["model"].widget.attrs["list"] = "agent-model-names"
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
            prompts.exclude(slug__startswith="instructions-")
            .distinct()
            .order_by("name")
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
        rest = dict(agent.parameters)
        for name in OWN_PARAMETERS:
            self.initial[name] = rest.pop(name, None)
        self.initial["more"] = json.dumps(rest, ensure_ascii=False) if rest else ""
        if agent.pk:
            self._set_initial_limits(ExecutorOptions.model_validate(agent.executor))

    def _set_initial_limits(self, options: ExecutorOptions) -> None:
        budget = options.budget or Budget()
        habit = options.handle_parsing_errors
        trim = options.trim_intermediate_steps
        self.initial.update(
            max_iterations=options.max_iterations,
            max_execution_time=options.max_execution_time,
            budget_tokens=budget.tokens,
            budget_cost=budget.cost,
            early_stopping_method=options.early_stopping_method,
            parsing="say" if isinstance(habit, str) else "tell" if habit else "fail",
            parsing_text=habit if isinstance(habit, str) else "",
            trim_intermediate_steps=trim if trim >= 0 else None,
            context_tokens=options.context_tokens,
            context_method=options.context_method,
            output_schema=json.dumps(options.output_schema, ensure_ascii=False)
            if options.output_schema is not None
            else "",
            loop_guard=options.loop_guard is not None,
        )

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
        """Parse the other parameters."""
        text: str = self.cleaned_data["more"].strip()
        return parse_json_field(
            text, _('Enter a JSON object, for example {"top_p": 0.9}.')
        )

    def clean_output_schema(self) -> dict[str, Any] | None:
        """Parse the JSON; the schema itself is checked with the whole agent."""
        text: str = self.cleaned_data["output_schema"].strip()
        told = _('Enter a JSON Schema, for example {"type": "object"}.')
        return parse_json_field(text, told) if text else None

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
        if told := self._missing_functions_error(given):
            self.add_error("kind", told)
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
        """Yield each error of the spec with its field."""
        spec = self.spec()
        where = "instructions" if self._has_own_instructions else "prompt"
        for told in own_prompt_errors(spec):
            yield where, told
        for problem in find_spec_problems(spec):
            if not problem.field.startswith("prompt"):
                yield (
                    form_field_for(problem.field),
                    strip_field_name(problem.field, problem.message),
                )

    def preview_spec(self) -> AgentSpec:
        """Return the spec of a run: of the stored agent, or of the unsaved form."""
        if not self.is_bound and self.instance.pk:
            return freeze_agent(self.instance)
        return self.spec()

    def list_errors(self) -> list[str]:
        """Return the errors so far; an empty required field is not an error yet."""
        if not self.is_bound:
            spec = self.preview_spec()
            return own_prompt_errors(spec) + [
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

    def spec(self) -> AgentSpec:
        """Return the spec of the unsaved form, as far as its fields are valid."""
        given = getattr(self, "cleaned_data", {})
        kind = given.get("kind") or self["kind"].value()
        provider = given.get("provider")
        return AgentSpec(
            kind=kind if kind in AGENT_KINDS else "tool-calling",
            name=str(given.get("name") or ""),
            prompt=self._prompt(kind),
            model=ModelSettings(
                model=str(given.get("model") or ""),
                provider=provider.slug if provider else "",
                parameters=self.parameters(),
            ),
            tools=prefix_colliding_names(
                [
                    spec_of_choice(choice)
                    for choice in self.tools
                    if choice.policy not in {"off", "deny"}
                ]
            ),
            executor=self.executor(),
        )

    def _prompt(self, kind: str) -> PromptSpec | None:
        chosen = getattr(self, "cleaned_data", {}).get("prompt")
        if not self._has_own_instructions:
            return build_prompt_spec(chosen) if chosen else None
        text = str(self["instructions"].value() or "").replace("\r\n", "\n")
        return (
            build_prompt_with_instructions(AGENT_KINDS[kind], text)
            if kind in AGENT_KINDS and text.strip()
            else None
        )

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of each request; invalid fields keep stored values."""
        given = getattr(self, "cleaned_data", {})
        more = given.get("more")
        found = dict(more) if isinstance(more, dict) else {}
        stored = self.instance.parameters
        if self.has_field_error("more"):
            found = {k: v for k, v in stored.items() if k not in OWN_PARAMETERS}
        for name in OWN_PARAMETERS:
            value = stored.get(name) if self.has_field_error(name) else given.get(name)
            if value is not None:
                found[name] = value
        return found

    def has_field_error(self, name: str) -> bool:
        """Whether the value of a field cannot be stored."""
        return name in (self.__dict__.get("_errors") or {})

    def executor(self) -> ExecutorOptions:
        """Return the limits and options; options without a field keep their values."""
        given = getattr(self, "cleaned_data", {})
        stored = ExecutorOptions.model_validate(self.instance.executor)
        tokens, cost = given.get("budget_tokens"), given.get("budget_cost")
        trim, schema = (
            given.get(name) for name in ("trim_intermediate_steps", "output_schema")
        )
        parsing = {"tell": True, "fail": False}.get(given.get("parsing", "tell"))
        update = {
            "max_iterations": given.get("max_iterations"),
            "max_execution_time": given.get("max_execution_time"),
            "budget": None
            if tokens is None and cost is None
            else Budget(tokens=tokens, cost=cost),
            "early_stopping_method": given.get("early_stopping_method", "force"),
            "handle_parsing_errors": given.get("parsing_text", "")
            if parsing is None
            else parsing,
            "trim_intermediate_steps": -1 if trim is None else trim,
            "context_tokens": given.get("context_tokens"),
            "context_method": given.get("context_method") or "drop",
            "output_schema": schema if isinstance(schema, dict) else None,
            "loop_guard": (stored.loop_guard or DEFAULT_LOOP_GUARD)
            if given.get("loop_guard")
            else None,
        }
        for field, option in EXECUTOR_FIELDS.items():
            if self.has_field_error(field):
                update.pop(option, None)
        return stored.model_copy(update=update)

    def save(self, commit: bool = True, *, seen: str | None = None) -> Agent:
        """Store the agent with its tools and instructions.

        Invalid fields keep their stored values, except `SAVED_DESPITE_ERRORS`. Raise
        `DraftConflict` if `seen` is not the token of the stored draft.
        """
        agent = self.instance
        agent.parameters = self.parameters()
        agent.executor = self.executor().model_dump(mode="json", exclude_defaults=True)
        if "kind" in self.errors and self.data.get("kind") in AGENT_KINDS:
            agent.kind = self.data["kind"]
        text = str(self["instructions"].value() or "").replace("\r\n", "\n")
        save_agent(
            agent,
            uses=self._tool_uses(),
            instructions=clean_text(text) if self._has_own_instructions else None,
            seen=seen,
        )
        if not (self.has_field_error("groups") or self.has_field_error("visibility")):
            save_shared_groups(agent, self.cleaned_data["groups"])
        return agent

    def unsaved_fields(self) -> list[str]:
        """Return the invalid fields, which keep their stored values."""
        wrong = (name for name in self.fields if name in self.errors)
        return [name for name in wrong if name not in SAVED_DESPITE_ERRORS]


def spec_of_choice(choice: ToolChoice) -> ToolSpec:
    """Return the spec of the tool or sub-agent for this agent."""
    if isinstance(choice.callee, Tool):
        return freeze_tool(
            choice.callee, policy=choice.policy, overrides=choice.overrides
        )
    return build_agent_tool_spec(
        choice.callee, policy=choice.policy, overrides=choice.overrides
    )


def parse_json_field(text: str, told: str) -> dict[str, Any]:
    """Parse a JSON object, empty for empty text; `told` is the error for other JSON."""
    try:
        found = json.loads(text) if text else {}
    except (ValueError, RecursionError) as error:
        raise forms.ValidationError(f"{NOT_JSON} {find_json_error(text)}") from error
    if not isinstance(found, dict):
        raise forms.ValidationError(told)
    clean: dict[str, Any] = clean_json(found)
    return clean


def own_prompt_errors(spec: AgentSpec) -> list[str]:
    """Return the errors of a prompt, unless it is the built-in one of the kind."""
    return list_prompt_errors(spec.kind, spec.prompt) if spec.prompt else []


def form_field_for(path: str) -> str | None:
    """Return the form field for a field of the spec; None without one."""
    name = path.removeprefix("executor.")
    plain = {"budget.tokens": "budget_tokens", "budget.cost": "budget_cost"}
    name = plain.get(name, name)
    return name if name in AgentForm.base_fields else None


def strip_field_name(path: str, message: str) -> str:
    """Remove the name of the field from the start of a message shown beside it."""
    name = path.removeprefix("executor.")
    if message.startswith(f"{name} "):
        rest = message.removeprefix(f"{name} ")
        return rest[0].upper() + rest[1:]
    return message
