"""The form of an agent: kind, instructions, model, tools and limits in one."""

import json
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.models import User

from runs.engine.check import problems_of
from runs.engine.clean import clean_json, clean_text
from runs.engine.kinds.registry import KINDS
from runs.engine.types import (
    AgentSpec,
    Budget,
    ExecutorOptions,
    LoopGuard,
    ModelSettings,
    PromptSpec,
)
from runs.forms.agent_tools import ToolChoice, choices_of, uses_of
from runs.forms.looks import dress, mono
from runs.forms.prompt import prompt_mistakes
from runs.forms.sharing import check_groups, offer_groups, share_with
from runs.models import Agent, PromptTemplate, Provider
from runs.services.errors import AgentCircle
from runs.services.find_circle import circle_of
from runs.services.freeze_agent import (
    agent_tool_spec,
    freeze_agent,
    prompt_spec_of,
)
from runs.services.own_prompt import instructions_in, is_own, prompt_with
from runs.services.save_agent import ToolUse, save_agent
from tools.models import Tool
from tools.services.tool_spec_of import tool_spec_of
from tools.spec import ToolSpec
from tools.text_flaw import NO_JSON, json_flaw

GUARD = LoopGuard()
OWN_PARAMETERS = ("temperature", "max_tokens")
"""Parameters with a field of their own; the others are JSON."""
KEPT = ("instructions", "kind")
"""Fields whose mistakes do not keep a draft from being stored; a run would refuse."""

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
"""Fields of the form, and the fields of `ExecutorOptions` they fill."""


if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[Agent]
else:
    _ModelForm = forms.ModelForm


class AgentForm(_ModelForm):
    """Everything an agent is made of; `user` is who edits it."""

    kind = forms.ChoiceField(
        choices=lambda: [(kind.name, kind.title) for kind in KINDS.values()],
        widget=forms.RadioSelect,
    )
    source = forms.ChoiceField(
        choices=[("write", "Written here"), ("template", "From the prompts")],
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
                "data-empty": "No variables. Type { for one",
            }
        ),
        help_text="{name} becomes a field that is asked for at each run. Empty: the "
        "kind's own prompt.",
    )
    temperature = forms.FloatField(required=False, min_value=0, max_value=2)
    max_tokens = forms.IntegerField(required=False, min_value=1, label="Longest reply")
    more = forms.CharField(
        required=False,
        label="Other parameters",
        widget=mono(2),
        help_text='JSON, sent as it is: {"top_p": 0.9, "seed": 7}.',
    )
    max_iterations = forms.IntegerField(required=False, label="Rounds", initial=15)
    max_execution_time = forms.FloatField(required=False, label="Working time")
    budget_tokens = forms.IntegerField(required=False, label="Tokens")
    budget_cost = forms.FloatField(required=False, label="Cost")
    early_stopping_method = forms.ChoiceField(
        choices=[
            ("force", "End at once, keep the steps"),
            ("generate", "Ask the model for one last answer"),
        ],
        label="At a limit",
        initial="force",
    )
    parsing = forms.ChoiceField(
        choices=[
            ("tell", "Tell the model what is wrong"),
            ("say", "Tell the model a sentence of yours"),
            ("fail", "Fail the run"),
        ],
        label="A reply that cannot be read",
        initial="tell",
    )
    parsing_text = forms.CharField(required=False, label="Your sentence")
    trim_intermediate_steps = forms.IntegerField(
        required=False,
        label="Rounds the model is shown",
        help_text="Only the last ones; empty for all.",
    )
    context_tokens = forms.IntegerField(
        required=False,
        label="Tokens a request may hold",
        help_text="Estimated; the oldest rounds give way. Empty for no limit.",
    )
    context_method = forms.ChoiceField(
        required=False,
        choices=[
            ("drop", "Leave the oldest rounds out"),
            ("summary", "Ask the model to sum them up"),
        ],
        label="When a request grows too long",
        initial="drop",
    )
    output_schema = forms.CharField(
        required=False,
        label="JSON Schema of the answer",
        widget=forms.Textarea(
            attrs={"rows": 3, "class": "mono", "spellcheck": "false"}
        ),
        help_text="The model is told where its answer does not fit. Empty for text.",
    )
    loop_guard = forms.BooleanField(
        required=False,
        initial=True,
        label="Stop when nothing changes any more",
        help_text=f"After {GUARD.hint} equal rounds the model is told, "
        f"after {GUARD.stop} the run stops.",
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
            "description": "What it does",
            "prompt": "Prompt",
            "memory": "Remember earlier questions of a conversation",
            "visibility": "Open to",
        }

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        self.label_suffix = ""
        self._offer()
        if not self.is_bound:
            self._show_stored()
        self.fields["description"].widget = forms.TextInput()
        self.fields["model"].widget.attrs["list"] = "agent-model-names"
        for name in ("temperature", "max_execution_time", "budget_cost"):
            self.fields[name].widget.attrs["step"] = "any"
        if self.instance.pk is None and not self.is_bound:
            self.fields["name"].widget.attrs["autofocus"] = True
        offer_groups(self, self.instance)
        dress(self)

    def _offer(self) -> None:
        """Offer what the person may use, and what the agent has already."""
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
        prompt.empty_label = "Choose a prompt"

    def _show_stored(self) -> None:
        """Put what is stored into the fields that are no columns."""
        agent = self.instance
        if agent.prompt is not None:
            own = is_own(agent.prompt, agent)
            self.initial["source"] = "write" if own else "template"
            self.initial["prompt"] = None if own else agent.prompt_id
            if own:
                self.initial["instructions"] = instructions_in(agent.prompt)
        rest = dict(agent.parameters)
        for name in OWN_PARAMETERS:
            self.initial[name] = rest.pop(name, None)
        self.initial["more"] = json.dumps(rest, ensure_ascii=False) if rest else ""
        if agent.pk:
            self._show_limits(ExecutorOptions.model_validate(agent.executor))

    def _show_limits(self, options: ExecutorOptions) -> None:
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
        """All one may give to the agent, those in use first."""
        return choices_of(
            self.instance, self.user, self.data if self.is_bound else None
        )

    @cached_property
    def circle(self) -> tuple[str, ...]:
        """The names on the way back to this agent, if it would come to call itself."""
        chosen = (one.thing.pk for one in self.tools if one.is_agent and one.is_on)
        return circle_of(self.instance, chosen)

    def _uses(self) -> list[ToolUse]:
        """Return what to store; the agents it has, where those typed make a circle."""
        if not self.circle:
            return uses_of(self.tools)
        had = choices_of(self.instance, self.user, None)
        kept = [one for one in had if one.is_agent]
        return uses_of([one for one in self.tools if not one.is_agent] + kept)

    def clean_more(self) -> dict[str, Any]:
        """Read the other parameters."""
        text: str = self.cleaned_data["more"].strip()
        return object_in(text, 'Write a JSON object, as {"top_p": 0.9}.')

    def clean_output_schema(self) -> dict[str, Any] | None:
        """Read the schema; whether it is one is checked with the whole agent."""
        text: str = self.cleaned_data["output_schema"].strip()
        told = 'Write a JSON Schema, as {"type": "object"}.'
        return object_in(text, told) if text else None

    def clean(self) -> dict[str, Any]:
        """Check the whole agent as a run would."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        check_groups(self, given)
        if given.get("source") == "template" and not given.get("prompt"):
            self.add_error("prompt", "Choose a prompt, or write instructions here.")
        if given.get("parsing") == "say" and not given.get("parsing_text", "").strip():
            self.add_error("parsing_text", "Write the sentence, or choose another.")
        if told := self._without_functions(given):
            self.add_error("kind", told)
        if self.circle:
            self.add_error(None, str(AgentCircle(self.circle)))
        if "kind" in given:
            for field, message in self._mistakes():
                self.add_error(field, message)
        return given

    def _without_functions(self, given: dict[str, Any]) -> str:
        """Say that the model is known not to do what the kind lives from."""
        kind, provider = KINDS.get(given.get("kind", "")), given.get("provider")
        if kind is None or not kind.needs_functions or provider is None:
            return ""
        if not provider.models.filter(name=given.get("model"), functions=False):
            return ""
        return (
            f"The model {given['model']!r} calls no functions, as {provider} says. "
            "Choose ReAct or another kind that writes its calls as text, or another "
            "model."
        )

    def _mistakes(self) -> Iterator[tuple[str | None, str]]:
        """Yield each mistake of the spec with the field it belongs to."""
        spec = self.spec()
        where = "instructions" if self._writes else "prompt"
        for told in own_mistakes(spec):
            yield where, told
        for problem in problems_of(spec):
            if not problem.field.startswith("prompt"):
                yield field_of(problem.field), plainly(problem.field, problem.message)

    def preview_spec(self) -> AgentSpec:
        """Return what a run would begin with: the stored agent, or what is typed."""
        if not self.is_bound and self.instance.pk:
            return freeze_agent(self.instance)
        return self.spec()

    def mistakes(self) -> list[str]:
        """Say what is wrong so far; what is still to be filled in is not wrong yet."""
        if not self.is_bound:
            spec = self.preview_spec()
            return own_mistakes(spec) + [p.message for p in problems_of(spec)]
        return [
            f"{self.fields[name].label or name.capitalize()}: {error.messages[0]}"
            if name in self.fields
            else error.messages[0]
            for name, errors in self.errors.as_data().items()
            for error in errors
            if error.code != "required"
        ]

    @property
    def _writes(self) -> bool:
        return bool(self["source"].value() != "template")

    def spec(self) -> AgentSpec:
        """Return what is typed as the engine takes it, as far as it can be read."""
        given = getattr(self, "cleaned_data", {})
        kind = given.get("kind") or self["kind"].value()
        provider = given.get("provider")
        return AgentSpec(
            kind=kind if kind in KINDS else "tool-calling",
            name=str(given.get("name") or ""),
            prompt=self._prompt(kind),
            model=ModelSettings(
                model=str(given.get("model") or ""),
                provider=provider.slug if provider else "",
                parameters=self.parameters(),
            ),
            tools=tuple(
                spec_of_choice(choice)
                for choice in self.tools
                if choice.policy not in {"off", "deny"}
            ),
            executor=self.executor(),
        )

    def _prompt(self, kind: str) -> PromptSpec | None:
        chosen = getattr(self, "cleaned_data", {}).get("prompt")
        if not self._writes:
            return prompt_spec_of(chosen) if chosen else None
        text = str(self["instructions"].value() or "").replace("\r\n", "\n")
        return (
            prompt_with(KINDS[kind], text) if kind in KINDS and text.strip() else None
        )

    def parameters(self) -> dict[str, Any]:
        """Return what is sent with each request."""
        given = getattr(self, "cleaned_data", {})
        more = given.get("more")
        found = dict(more) if isinstance(more, dict) else {}
        stored = self.instance.parameters
        if self.has_mistake("more"):
            found = {k: v for k, v in stored.items() if k not in OWN_PARAMETERS}
        for name in OWN_PARAMETERS:
            value = stored.get(name) if self.has_mistake(name) else given.get(name)
            if value is not None:
                found[name] = value
        return found

    def has_mistake(self, name: str) -> bool:
        """Whether what is typed into a field cannot be stored."""
        return name in (self.__dict__.get("_errors") or {})

    def executor(self) -> ExecutorOptions:
        """Return the limits and habits; what the form does not show stays."""
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
            "loop_guard": (stored.loop_guard or GUARD)
            if given.get("loop_guard")
            else None,
        }
        for field, option in EXECUTOR_FIELDS.items():
            if self.has_mistake(field):
                update.pop(option, None)
        return stored.model_copy(update=update)

    def save(self, commit: bool = True, *, seen: str | None = None) -> Agent:
        """Store the agent with its tools and instructions.

        Fields with mistakes keep what is stored, but for `KEPT`: a half-written prompt
        is worth keeping. With `seen` a later draft is not overwritten: `DraftMoved`.
        """
        agent = self.instance
        agent.parameters = self.parameters()
        agent.executor = self.executor().model_dump(mode="json", exclude_defaults=True)
        if "kind" in self.errors and self.data.get("kind") in KINDS:
            agent.kind = self.data["kind"]
        text = str(self["instructions"].value() or "").replace("\r\n", "\n")
        save_agent(
            agent,
            uses=self._uses(),
            instructions=clean_text(text) if self._writes else None,
            seen=seen,
        )
        if not (self.has_mistake("groups") or self.has_mistake("visibility")):
            share_with(agent, self.cleaned_data["groups"])
        return agent

    def unstored(self) -> list[str]:
        """Return the fields that keep what is stored, for what is typed is wrong."""
        wrong = (name for name in self.fields if name in self.errors)
        return [name for name in wrong if name not in KEPT]


def spec_of_choice(choice: ToolChoice) -> ToolSpec:
    """Return the tool, or the other agent, as this agent would get it."""
    if isinstance(choice.thing, Tool):
        return tool_spec_of(
            choice.thing, policy=choice.policy, overrides=choice.overrides
        )
    return agent_tool_spec(
        choice.thing, policy=choice.policy, overrides=choice.overrides
    )


def object_in(text: str, told: str) -> dict[str, Any]:
    """Read a JSON object, empty for an empty text; raise `told` for another value."""
    try:
        found = json.loads(text) if text else {}
    except (ValueError, RecursionError) as error:
        raise forms.ValidationError(f"{NO_JSON} {json_flaw(text)}") from error
    if not isinstance(found, dict):
        raise forms.ValidationError(told)
    clean: dict[str, Any] = clean_json(found)
    return clean


def own_mistakes(spec: AgentSpec) -> list[str]:
    """Return what is wrong with a prompt that is not the kind's own."""
    return prompt_mistakes(spec.kind, spec.prompt) if spec.prompt else []


def field_of(path: str) -> str | None:
    """Return the form's field for a field of the spec."""
    name = path.removeprefix("executor.")
    plain = {"budget.tokens": "budget_tokens", "budget.cost": "budget_cost"}
    name = plain.get(name, name)
    return name if name in AgentForm.base_fields else None


def plainly(path: str, message: str) -> str:
    """Say it without the name of the field, beside which it stands."""
    name = path.removeprefix("executor.")
    if message.startswith(f"{name} "):
        rest = message.removeprefix(f"{name} ")
        return rest[0].upper() + rest[1:]
    return message
