"""Forms of the retention page: days by kind, and by agent."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from runs.forms.widgets import style_widgets
from runs.models import Agent, RetentionRule
from runs.models.retention import MAX_DAYS
from runs.services.retention.rules import RetentionRules

Kind = RetentionRule.Kind

HELP_TEXTS = {
    Kind.SUCCEEDED_RUNS: _("Days after the end. Runs of conversations go with these."),
    Kind.FAILED_RUNS: _("Days after the end."),
    Kind.CANCELED_RUNS: _("Days after the end."),
    Kind.TEST_RUNS: _("Days after the end, whatever the status."),
    Kind.CONVERSATIONS: _("Days after the end of the last run."),
    Kind.AUDIT_ENTRIES: _("Days after the change."),
    Kind.SESSIONS: _("Days after they expired."),
    Kind.IDEMPOTENCY_KEYS: _("After that, a repeated request starts a new run."),
    Kind.WORKERS: _("Days after the last heartbeat, if no run names the worker."),
    Kind.DELIVERIES: _("Always deleted after 30 days, and above 1,000 per webhook."),
}


def days_field(label: Any, help_text: Any = "") -> forms.IntegerField:
    field = forms.IntegerField(
        label=label,
        help_text=help_text,
        required=False,
        min_value=1,
        max_value=MAX_DAYS,
        widget=forms.NumberInput(attrs={"inputmode": "numeric"}),
    )
    field.is_needed = True  # type: ignore[attr-defined]  # the page says what empty means
    return field


class RetentionForm(forms.Form):
    """A number of days for each kind; empty keeps everything."""

    def __init__(self, data: Any = None, *, rules: RetentionRules) -> None:
        super().__init__(data, initial=rules.days)
        for kind in Kind:
            self.fields[kind.value] = days_field(kind.label, HELP_TEXTS.get(kind, ""))
        style_widgets(self)

    def to_rules(self, agents: dict[int, int | None]) -> RetentionRules:
        days = {kind: days for kind, days in self.cleaned_data.items() if days}
        return RetentionRules(days=days, agents=agents)


class AgentRetentionForm(forms.Form):
    """An agent, and the days for its runs; empty for forever."""

    agent = forms.ModelChoiceField(
        Agent.objects.none(), label=_("Agent"), empty_label=_("Select an agent")
    )
    days = days_field(
        _("Days"), _("Leave empty to keep its runs and conversations forever.")
    )

    def __init__(self, data: Any = None) -> None:
        super().__init__(data)
        agents = Agent.objects.filter(is_playground=False, retention=None)
        self.fields["agent"].queryset = agents.order_by("name", "pk")  # type: ignore[attr-defined]  # a choice of rows
        style_widgets(self)
