"""Deleting tools that no agent has, and that no run could call."""

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, ProtectedError, QuerySet

from runs.models import AgentStep, AgentTool, Spec
from tools.models import Tool, ToolUsage

SPECS_AT_ONCE = 200


def find_deletable_tools(tools: QuerySet[Tool]) -> QuerySet[Tool]:
    """Return the tools to which nothing refers: no agent, version, run or call.

    The others can be archived.
    """
    unused = tools.filter(
        ~Exists(AgentTool.objects.filter(tool=OuterRef("pk"))),
        ~Exists(AgentStep.objects.filter(tool_ref=OuterRef("pk"))),
        ~Exists(ToolUsage.objects.filter(tool=OuterRef("pk"))),
        last_used_at=None,
    )
    return unused.exclude(pk__in=_find_frozen_tools(unused))


def _find_frozen_tools(tools: QuerySet[Tool]) -> set[int]:
    """Return the keys of those with which a version or a run was frozen."""
    keys = set(tools.values_list("pk", flat=True))
    if not keys:
        return keys
    rows = Spec.objects.values_list("body__tools", flat=True)
    frozen = rows.iterator(SPECS_AT_ONCE)
    return keys & {tool.get("tool_id") for each in frozen for tool in each or ()}


def delete_unused_tools(tools: QuerySet[Tool], *, by: User) -> int:
    """Delete those to which nothing refers, and return how many.

    The audit log keeps what they were.
    """
    done = 0
    for tool in find_deletable_tools(tools.editable_by(by)):  # type: ignore[attr-defined]  # a ToolQuerySet
        try:
            with transaction.atomic():
                tool.delete()
        except ProtectedError:
            continue  # an agent was given it since
        done += 1
    return done
