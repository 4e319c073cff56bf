"""The form of an agent's overrides for one of its tools."""

import json
from typing import Any

from django import forms
from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.engine.spec_validation import find_spec_problems
from runs.engine.types import AgentSpec
from runs.forms.widgets import style_widgets
from runs.models import Agent, AgentTool
from runs.services.spec.freeze import freeze_agent
from tools.credentials import host_matches
from tools.definition.freeze import (
    describe_function_tool,
    freeze_tool,
    is_approval_enforced,
)
from tools.definition.overrides import (
    LIMIT_FIELDS,
    find_loosenings,
    get_effective_overrides,
    parse_overrides,
    stricter_effect,
)
from tools.definition.tool_names import prefix_colliding_names
from tools.forms.fields import HostsField
from tools.forms.function_tool import HOST_LIMIT_UNSUPPORTED
from tools.forms.tool import drop_zero_fraction
from tools.models import Tool
from tools.registry import supports_host_limit
from tools.spec import ToolSpec
from tools.ui.labels import describe_tool_hosts, get_function_path

EXPIRY_LABELS = {
    "reject": gettext_lazy("Reject the call"),
    "stop": gettext_lazy("Stop the run"),
}
ALWAYS_ASKS_MESSAGE = gettext_lazy(
    "The tool requires approval of each call. An agent cannot override that."
)
NUMBER_FIELDS = (*LIMIT_FIELDS, "approval_hours")


def yes_no_choices(otherwise: Any) -> list[tuple[str, Any]]:
    """Return the choices of a switch whose default is `otherwise`."""
    return [("", otherwise), ("yes", gettext_lazy("Yes")), ("no", gettext_lazy("No"))]


class ToolUseForm(forms.Form):
    """What an agent may override of a tool or a sub-agent."""

    name = forms.CharField(
        max_length=64, label=gettext_lazy("Name for the model"), required=False
    )
    description = forms.CharField(
        max_length=20_000,
        label=gettext_lazy("Description for the model"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
    )
    calls_per_run = forms.IntegerField(
        min_value=1,
        max_value=1_000_000,
        required=False,
        label=gettext_lazy("Max calls per run"),
    )

    agent: Agent
    use: AgentTool

    def check_spec_with(self, spec: AgentSpec, mine: ToolSpec) -> None:
        """Validate `spec` with `mine` as its last tool; show errors at the fields."""
        last = f"tools.{len(spec.tools)}."
        tools = prefix_colliding_names((*spec.tools, mine))
        for problem in find_spec_problems(spec.model_copy(update={"tools": tools})):
            if problem.field.startswith(last):
                field = problem.field.removeprefix(last)
                self.add_error(field if field in self.fields else None, problem.message)

    def overrides(self) -> dict[str, Any]:
        return overrides_from_form(self, self.use)

    def save(self) -> AgentTool:
        """Store the overrides; runs that have started keep theirs."""
        return save_tool_use(self.use, self.cleaned_data["policy"], self.overrides())


class AgentToolForm(ToolUseForm):
    """Empty fields use the values of the tool."""

    policy = forms.ChoiceField(
        choices=AgentTool.Policy.choices,
        label=gettext_lazy("Permission"),
        help_text=gettext_lazy(
            "Default applies the tool's own approval rule. Never ask calls the tool "
            "without approval, unless the tool always requires approval or names "
            "approvers. Always ask requires approval of each call. Deny hides the tool "
            "from the model."
        ),
    )
    effect = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Effect"),
        error_messages={
            "invalid_choice": gettext_lazy(
                "Select an effect that is stricter than the tool's own."
            )
        },
        help_text=gettext_lazy(
            "Can only be stricter than the tool's own effect. Calls with side effects "
            "are not retried, and require approval if side effects do."
        ),
    )
    approval_hours = forms.FloatField(
        min_value=0,
        max_value=8760,
        required=False,
        label=gettext_lazy("Approval timeout"),
        help_text=gettext_lazy("How long a call awaits approval. 0 means no limit."),
    )
    at_expiry = forms.ChoiceField(
        required=False, label=gettext_lazy("When the approval times out")
    )
    timeout = forms.FloatField(
        min_value=0.1, max_value=3600, required=False, label=gettext_lazy("Timeout")
    )
    retries = forms.IntegerField(
        min_value=0, max_value=5, required=False, label=gettext_lazy("Retries")
    )
    output_limit = forms.IntegerField(
        min_value=1,
        max_value=2**31 - 1,
        required=False,
        label=gettext_lazy("Max result size"),
    )
    hosts = HostsField(
        label=gettext_lazy("Allowed hosts"),
        required=False,
        help_text=gettext_lazy("One per line. Must be among the hosts of the tool."),
    )
    on_error = forms.ChoiceField(
        choices=[("", gettext_lazy("Use the tool's setting")), *Tool.OnError.choices],
        required=False,
        label=gettext_lazy("When a call fails"),
    )
    return_direct = forms.ChoiceField(
        choices=yes_no_choices(gettext_lazy("Use the tool's setting")),
        required=False,
        label=gettext_lazy("Return the result as the final answer"),
    )

    def __init__(self, *args: Any, agent: Agent, tool: Tool, **more: Any) -> None:
        self.agent, self.tool = agent, tool
        use = agent.uses.filter(tool=tool).first()
        self.use = use or AgentTool(agent=agent, tool=tool, position=agent.uses.count())
        super().__init__(*args, **more)
        self.initial = initial_of_tool_use(
            self.use.policy, get_effective_overrides(self.use.overrides, tool)
        )
        self._set_choices(
            "effect", str(Tool.Effect(tool.effect).label), stricter_effects(tool)
        )
        at_expiry = tool.at_expiry or settings.APPROVAL_EXPIRY
        self._set_choices(
            "at_expiry", EXPIRY_LABELS[at_expiry], list(EXPIRY_LABELS.items())
        )
        self.label_suffix = ""
        own = {
            **describe_function_tool(tool),
            **{n: getattr(tool, n) for n in NUMBER_FIELDS},
        }
        own["name"] = tool.name
        if own["approval_hours"] is None:
            own["approval_hours"] = settings.APPROVAL_HOURS
        for name in ("name", "description", *NUMBER_FIELDS):
            if own[name] is not None:
                self.fields[name].widget.attrs["placeholder"] = format_placeholder(
                    own[name]
                )
        self.fields["timeout"].widget.attrs["step"] = "any"
        self.fields["hosts"].widget.attrs["placeholder"] = "\n".join(tool.hosts)
        style_widgets(self)

    @property
    def tool_hosts(self) -> str:
        return describe_tool_hosts(self.tool)

    def _set_choices(self, name: str, own: Any, others: list[tuple[str, Any]]) -> None:
        """Offer the default of the tool first."""
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)  # for the type checker
        field.choices = [("", _("Default: %(value)s") % {"value": own}), *others]

    def clean_hosts(self) -> list[str]:
        """Refuse hosts that the tool may not contact."""
        hosts: list[str] = self.cleaned_data["hosts"]
        is_function = self.tool.kind == "function"
        if (
            hosts
            and is_function
            and not supports_host_limit(get_function_path(self.tool))
        ):
            raise forms.ValidationError(HOST_LIMIT_UNSUPPORTED)
        for host in hosts if self.tool.hosts else ():
            if not any(host_matches(one, host) for one in self.tool.hosts):
                raise forms.ValidationError(
                    _(
                        "The tool may not contact %(host)s. Enter only hosts among: "
                        "%(hosts)s."
                    )
                    % {"host": repr(host), "hosts": ", ".join(self.tool.hosts)}
                )
        return hosts

    def clean(self) -> dict[str, Any]:
        """Refuse values looser than the tool's own, and a duplicate name."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if given.get("policy") == "allow" and self._must_ask():
            self.add_error("policy", ALWAYS_ASKS_MESSAGE)
        for field, message in find_loosenings(
            parse_overrides(self.overrides()), self.tool
        ):
            self.add_error(field, message)
        if not self.errors:
            self._check_agent()
        return given

    def _must_ask(self) -> bool:
        effect = stricter_effect(self.tool.effect, self.overrides().get("effect"))
        return is_approval_enforced(self.tool, effect=effect)

    def _check_agent(self) -> None:
        if self.cleaned_data["policy"] == AgentTool.Policy.DENY:
            return
        mine = freeze_tool(
            self.tool,
            policy=self.cleaned_data["policy"],
            overrides=self.overrides(),
        )
        spec = freeze_agent(self.agent)
        others = tuple(one for one in spec.tools if one.tool_id != self.tool.pk)
        self.check_spec_with(spec.model_copy(update={"tools": others}), mine)


def initial_of_tool_use(policy: str, overrides: dict[str, Any]) -> dict[str, Any]:
    direct = overrides.get("return_direct")
    word = "" if direct is None else "yes" if direct else "no"
    return {**overrides, "return_direct": word, "policy": policy}


def overrides_from_form(form: forms.Form, use: AgentTool) -> dict[str, Any]:
    """Return the submitted overrides, and stored ones without a field."""
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
def save_tool_use(use: AgentTool, policy: str, overrides: dict[str, Any]) -> AgentTool:
    """Store the policy and overrides of a tool or sub-agent.

    The draft's token changes, so that an open page of the agent cannot overwrite this.
    """
    use.policy, use.overrides = policy, overrides
    use.save()
    use.agent.save(update_fields=["updated_at"])
    return use


def stricter_effects(tool: Tool) -> list[tuple[str, str]]:
    own = Tool.Effect.values.index(tool.effect)
    return [(code, str(word)) for code, word in Tool.Effect.choices[own + 1 :]]


def format_placeholder(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(drop_zero_fraction(value))
