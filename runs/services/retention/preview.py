"""How many rows the rules would delete now."""

from collections import Counter
from datetime import datetime

from django.db import connection, transaction

from runs.services.retention.rules import (
    RUN_STATUSES,
    Kind,
    RetentionRules,
    list_run_groups,
    select_prunable_conversations,
    select_prunable_rows,
    select_prunable_runs,
)

AGENTS = "agents"
"""Stands for the rules of single agents in place of a kind."""
ROW_KINDS = (
    Kind.AUDIT_ENTRIES,
    Kind.SESSIONS,
    Kind.IDEMPOTENCY_KEYS,
    Kind.WORKERS,
    Kind.DELIVERIES,
)
COUNT_TIMEOUT_MS = 20_000


def count_prunable(rules: RetentionRules, at: datetime) -> dict[str, int]:
    """Return by kind what the rules would delete; sub-agent runs go uncounted.

    Conversations count as one with their branches, without their runs.
    """
    counts = Counter[str]()
    with transaction.atomic():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:  # a web request has less by default
                cursor.execute(f"SET LOCAL statement_timeout = {COUNT_TIMEOUT_MS}")
        for group in list_run_groups(rules, at):
            key = group.kind or AGENTS
            if group.kind != Kind.CONVERSATIONS:
                counts[key] += select_prunable_runs([group]).count()
            if group.kind not in RUN_STATUSES:
                counts[key] += select_prunable_conversations(group).count()
        for kind in ROW_KINDS:
            if kind in rules.days:
                counts[kind] = select_prunable_rows(kind, rules, at).count()
    return dict(counts)
