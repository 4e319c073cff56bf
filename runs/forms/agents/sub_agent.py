"""The form of an agent's overrides for one of its sub-agents."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from runs.forms.agents.tool_overrides import (
    ToolUseForm,
    initial_of_tool_use,
    yes_no_choices,
)
from runs.forms.widgets import style_widgets
from runs.models import Agent, AgentTool
from runs.services.agents.call_graph import refuse_cycle
from runs.services.errors import AgentCycle
from runs.services.spec.freeze import build_agent_tool_spec, freeze_agent
from tools.models import Tool


class SubAgentForm(ToolUseForm):
    """Empty fields use the values of the sub-agent."""

    policy = forms.ChoiceField(
        choices=[
            (value, AgentTool.Policy.ALLOW.label)
            if value == AgentTool.Policy.DEFAULT
            else (value, word)
            for value, word in AgentTool.Policy.choices
            if value != AgentTool.Policy.ALLOW
        ],
        label=gettext_lazy("Permission"),
        help_text=gettext_lazy(
            "Always ask requires approval of each call. Deny hides the agent from the "
            "model. Calls that the sub-agent makes follow the rules of its own tools."
        ),
    )
    output_limit = forms.IntegerField(
        min_value=1,
        max_value=2**31 - 1,
        required=False,
        label=gettext_lazy("Max answer size"),
    )
    on_error = forms.ChoiceField(
        choices=[
            ("", gettext_lazy("Return the error to the model")),
            ("end", Tool.OnError("end").label),
        ],
        required=False,
        label=gettext_lazy("When a call fails"),
    )
    return_direct = forms.ChoiceField(
        choices=yes_no_choices(gettext_lazy("No")),
        required=False,
        label=gettext_lazy("Return the answer as the final answer"),
    )

    def __init__(self, *args: Any, agent: Agent, sub_agent: Agent, **more: Any) -> None:
        self.agent, self.sub_agent = agent, sub_agent
        use = agent.uses.filter(sub_agent=sub_agent).first()
        self.use = use or AgentTool(
            agent=agent, sub_agent=sub_agent, position=agent.uses.count()
        )
        super().__init__(*args, **more)
        policy = self.use.policy
        if policy == AgentTool.Policy.ALLOW:  # means the same for a sub-agent
            policy = AgentTool.Policy.DEFAULT
        self.initial = initial_of_tool_use(policy, self.use.overrides)
        self.label_suffix = ""
        own = build_agent_tool_spec(sub_agent)
        self.fields["name"].widget.attrs["placeholder"] = own.name
        self.fields["description"].widget.attrs["placeholder"] = own.description
        style_widgets(self)

    def clean(self) -> dict[str, Any]:
        """Refuse a cycle, and a duplicate name."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        try:
            refuse_cycle(self.agent, [self.sub_agent.pk])
        except AgentCycle as refused:
            self.add_error(None, str(refused))
        if not self.errors and given["policy"] != AgentTool.Policy.DENY:
            self._check_agent()
        return given

    def _check_agent(self) -> None:
        mine = build_agent_tool_spec(self.sub_agent, overrides=self.overrides())
        spec, pk = freeze_agent(self.agent), self.sub_agent.pk
        others = tuple(one for one in spec.tools if one.config.get("agent_id") != pk)
        self.check_spec_with(spec.model_copy(update={"tools": others}), mine)
