"""The form of one agent that another one may call: what is otherwise there."""

from typing import Any

from django import forms

from runs.forms.agent_tool import UseForm, as_shown, yes_no
from runs.forms.looks import dress
from runs.models import Agent, AgentTool
from runs.services.errors import AgentCircle
from runs.services.find_circle import refuse_circle
from runs.services.freeze_agent import agent_tool_spec, freeze_agent
from tools.models import Tool


class SubAgentForm(UseForm):
    """Fields left empty are as the called agent says."""

    policy = forms.ChoiceField(
        choices=[
            (value, "Allow" if value == AgentTool.Policy.DEFAULT else word)
            for value, word in AgentTool.Policy.choices
            if value != AgentTool.Policy.ALLOW
        ],
        label="Permission",
        help_text="Ask wants a person's yes to each call, Deny hides it from the "
        "model. What the agent itself does asks by its own tools.",
    )
    output_limit = forms.IntegerField(
        min_value=1, max_value=2**31 - 1, required=False, label="Answer cut at"
    )
    on_error = forms.ChoiceField(
        choices=[("", "Tell the model"), ("end", Tool.OnError("end").label)],
        required=False,
        label="After a failed call",
    )
    return_direct = forms.ChoiceField(
        choices=yes_no("No"), required=False, label="Its answer is the answer"
    )

    def __init__(self, *args: Any, agent: Agent, sub_agent: Agent, **more: Any) -> None:
        self.agent, self.sub_agent = agent, sub_agent
        use = agent.uses.filter(sub_agent=sub_agent).first()
        self.use = use or AgentTool(
            agent=agent, sub_agent=sub_agent, position=agent.uses.count()
        )
        super().__init__(*args, **more)
        policy = self.use.policy
        if policy == AgentTool.Policy.ALLOW:  # the same, for an agent
            policy = AgentTool.Policy.DEFAULT
        self.initial = as_shown(policy, self.use.overrides)
        self.label_suffix = ""
        own = agent_tool_spec(sub_agent)
        self.fields["name"].widget.attrs["placeholder"] = own.name
        self.fields["description"].widget.attrs["placeholder"] = own.description
        dress(self)

    def clean(self) -> dict[str, Any]:
        """Refuse a circle, and a name that another tool has."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        try:
            refuse_circle(self.agent, [self.sub_agent.pk])
        except AgentCircle as refused:
            self.add_error(None, str(refused))
        if not self.errors and given["policy"] != AgentTool.Policy.DENY:
            self._check_agent()
        return given

    def _check_agent(self) -> None:
        mine = agent_tool_spec(self.sub_agent, overrides=self.overrides())
        spec, pk = freeze_agent(self.agent), self.sub_agent.pk
        others = tuple(one for one in spec.tools if one.config.get("agent_id") != pk)
        self.check_with(spec.model_copy(update={"tools": others}), mine)
