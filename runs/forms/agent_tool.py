"""The form of one tool in the hands of one agent: what is otherwise there."""

import json
from typing import Any

from django import forms
from django.conf import settings
from django.db import transaction

from runs.engine.check import problems_of
from runs.engine.types import AgentSpec
from runs.forms.looks import dress
from runs.models import Agent, AgentTool
from runs.services.freeze_agent import freeze_agent
from tools.credentials import covers
from tools.forms.fields import HostsField
from tools.forms.function_tool import NOT_KEPT
from tools.forms.tool import plain_number
from tools.models import Tool
from tools.overrides import LIMITS, in_force, loosenings, read_overrides, stricter
from tools.registry import keeps_hosts
from tools.services import tool_spec_of
from tools.services.tool_spec_of import described, must_ask
from tools.spec import ToolSpec
from tools.tool_words import hosts_of, path_of

EXPIRY = {"reject": "Reject and tell the model", "stop": "Stop the run"}
ALWAYS_ASKED = (
    "The tool says that a person answers for each call; an agent cannot lift that."
)
NUMBERS = (*LIMITS, "approval_hours")
CHOICES = ("effect", "on_error", "at_expiry")


def yes_no(otherwise: str) -> list[tuple[str, str]]:
    """Return the choices of a switch that may be left as it is."""
    return [("", otherwise), ("yes", "Yes"), ("no", "No")]


class UseForm(forms.Form):
    """What an agent may set of a tool, or of another agent that it calls."""

    name = forms.CharField(
        max_length=64, label="What the model calls it", required=False
    )
    description = forms.CharField(
        max_length=20_000,
        label="What the model reads",
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
    )
    calls_per_run = forms.IntegerField(
        min_value=1, max_value=1_000_000, required=False, label="Calls in one run"
    )

    agent: Agent
    use: AgentTool

    def check_with(self, spec: AgentSpec, mine: ToolSpec) -> None:
        """Look at the agent with `mine` at the end of the tools of `spec`.

        What is wrong with it is told at its field.
        """
        last = f"tools.{len(spec.tools)}."
        tools = (*spec.tools, mine)
        for problem in problems_of(spec.model_copy(update={"tools": tools})):
            if problem.field.startswith(last):
                field = problem.field.removeprefix(last)
                self.add_error(field if field in self.fields else None, problem.message)

    def overrides(self) -> dict[str, Any]:
        """Return the fields that differ from what is otherwise there."""
        return overrides_in(self, self.use)

    def save(self) -> AgentTool:
        """Store it; runs that are under way keep what they began with."""
        return save_use(self.use, self.cleaned_data["policy"], self.overrides())


class AgentToolForm(UseForm):
    """Fields left empty are as the tool says."""

    policy = forms.ChoiceField(
        choices=AgentTool.Policy.choices,
        label="Permission",
        help_text="Deny hides it from the model, Ask has a person say yes to each "
        "call. Allow calls it at once, except where the tool always asks or names who "
        "answers.",
    )
    effect = forms.ChoiceField(
        required=False,
        label="What a call changes",
        error_messages={"invalid_choice": "It can only be more than the tool says."},
        help_text="Only more than the tool says. What changes something each time is "
        "tried once, and asks where side effects do.",
    )
    approval_hours = forms.FloatField(
        min_value=0,
        max_value=8760,
        required=False,
        label="Waits for an answer",
        help_text="Where a person is asked. 0 waits for ever.",
    )
    at_expiry = forms.ChoiceField(required=False, label="If nobody answers")
    timeout = forms.FloatField(
        min_value=0.1, max_value=3600, required=False, label="Longest wait"
    )
    retries = forms.IntegerField(
        min_value=0, max_value=5, required=False, label="Tries after a failure"
    )
    output_limit = forms.IntegerField(
        min_value=1, max_value=2**31 - 1, required=False, label="Result cut at"
    )
    hosts = HostsField(
        label="Only these hosts",
        required=False,
        help_text="One a line. They can only be fewer than the tool's own.",
    )
    on_error = forms.ChoiceField(
        choices=[("", "As the tool says"), *Tool.OnError.choices],
        required=False,
        label="After a failed call",
    )
    return_direct = forms.ChoiceField(
        choices=yes_no("As the tool says"), required=False, label="Result is the answer"
    )

    def __init__(self, *args: Any, agent: Agent, tool: Tool, **more: Any) -> None:
        self.agent, self.tool = agent, tool
        use = agent.uses.filter(tool=tool).first()
        self.use = use or AgentTool(agent=agent, tool=tool, position=agent.uses.count())
        super().__init__(*args, **more)
        self.initial = as_shown(self.use.policy, in_force(self.use.overrides, tool))
        self._offer("effect", Tool.Effect(tool.effect).label, stricter_effects(tool))
        at_expiry = tool.at_expiry or settings.APPROVAL_EXPIRY
        self._offer("at_expiry", EXPIRY[at_expiry], list(EXPIRY.items()))
        self.label_suffix = ""
        own = {**described(tool), **{n: getattr(tool, n) for n in NUMBERS}}
        own["name"] = tool.name
        if own["approval_hours"] is None:
            own["approval_hours"] = settings.APPROVAL_HOURS
        for name in ("name", "description", *NUMBERS):
            if own[name] is not None:
                self.fields[name].widget.attrs["placeholder"] = shown(own[name])
        self.fields["timeout"].widget.attrs["step"] = "any"
        self.fields["hosts"].widget.attrs["placeholder"] = "\n".join(tool.hosts)
        dress(self)

    @property
    def own_hosts(self) -> str:
        """Which hosts the tool itself may reach, in words."""
        return hosts_of(self.tool)

    def _offer(self, name: str, own: str, others: list[tuple[str, str]]) -> None:
        """Let a choice begin with what counts if nothing is chosen."""
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)  # for the type checker
        field.choices = [("", f"As it is: {own}"), *others]

    def clean_hosts(self) -> list[str]:
        """Refuse hosts that the tool itself may not reach."""
        hosts: list[str] = self.cleaned_data["hosts"]
        is_function = self.tool.kind == "function"
        if hosts and is_function and not keeps_hosts(path_of(self.tool)):
            raise forms.ValidationError(NOT_KEPT)
        for host in hosts if self.tool.hosts else ():
            if not any(covers(one, host) for one in self.tool.hosts):
                raise forms.ValidationError(
                    f"The tool itself may not reach {host!r}, only "
                    f"{', '.join(self.tool.hosts)}."
                )
        return hosts

    def clean(self) -> dict[str, Any]:
        """Refuse what the tool limits more, and a name that another tool has."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if given.get("policy") == "allow" and self._must_ask():
            self.add_error("policy", ALWAYS_ASKED)
        for field, told in loosenings(read_overrides(self.overrides()), self.tool):
            self.add_error(field, told)
        if not self.errors:
            self._check_agent()
        return given

    def _must_ask(self) -> bool:
        effect = stricter(self.tool.effect, self.overrides().get("effect"))
        return must_ask(self.tool, effect=effect)

    def _check_agent(self) -> None:
        if self.cleaned_data["policy"] == AgentTool.Policy.DENY:
            return
        mine = tool_spec_of(
            self.tool,
            policy=self.cleaned_data["policy"],
            overrides=self.overrides(),
        )
        spec = freeze_agent(self.agent)
        others = tuple(one for one in spec.tools if one.tool_id != self.tool.pk)
        self.check_with(spec.model_copy(update={"tools": others}), mine)


def as_shown(policy: str, overrides: dict[str, Any]) -> dict[str, Any]:
    """Return what is stored as the form's fields show it."""
    direct = overrides.get("return_direct")
    word = "" if direct is None else "yes" if direct else "no"
    return {**overrides, "return_direct": word, "policy": policy}


def overrides_in(form: forms.Form, use: AgentTool) -> dict[str, Any]:
    """Return the fields that were given, and what an agent file has set beside them."""
    given = form.cleaned_data
    found = {
        name: given[name]
        for name in form.fields
        if name not in ("policy", "return_direct")
        and given.get(name) not in (None, "", [])
    }
    if given.get("return_direct"):
        found["return_direct"] = given["return_direct"] == "yes"
    hidden = {
        name: value for name, value in use.overrides.items() if name not in form.fields
    }
    return {**hidden, **found}


@transaction.atomic
def save_use(use: AgentTool, policy: str, overrides: dict[str, Any]) -> AgentTool:
    """Store what an agent may do with a tool or another agent.

    The draft is another one then: an open page of the agent must not put back what it
    shows.
    """
    use.policy, use.overrides = policy, overrides
    use.save()
    use.agent.save(update_fields=["updated_at"])
    return use


def stricter_effects(tool: Tool) -> list[tuple[str, str]]:
    """Return as choices what counts as more than the tool's own effect."""
    own = Tool.Effect.values.index(tool.effect)
    return list(Tool.Effect.choices[own + 1 :])


def shown(value: Any) -> str:
    """Return a value as a placeholder shows it."""
    return value if isinstance(value, str) else json.dumps(plain_number(value))
