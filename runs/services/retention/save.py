"""Change the retention rules; each change is an audit entry by itself."""

from collections.abc import Mapping

from django.db import transaction

from runs.models import Agent, AgentRetention, RetentionRule


@transaction.atomic
def save_rules(days: Mapping[str, int | None]) -> bool:
    """Set the days of each kind, None for no rule; return whether anything changed."""
    known = {rule.kind: rule for rule in RetentionRule.objects.select_for_update()}
    changed = False
    for kind, count in days.items():
        rule = known.get(kind)
        if count == (rule.days if rule else None):
            continue
        changed = True
        if count is None and rule is not None:
            rule.delete()
        elif count is not None:
            rule = rule or RetentionRule(kind=kind)
            rule.days = count
            rule.save()
    return changed


@transaction.atomic
def save_agent_retention(agent: Agent, days: int | None) -> None:
    """Set how long runs of an agent are kept; None for forever."""
    row = AgentRetention.objects.select_for_update().filter(agent=agent).first()
    row = row or AgentRetention(agent=agent)
    row.days = days
    row.save()
