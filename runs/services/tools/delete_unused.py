"""Deleting tools that no agent has, and that no run could call."""

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, ProtectedError, QuerySet, TextField
from django.db.models.functions import Cast

from runs.models import AgentStep, AgentTool, Spec
from tools.models import Tool, ToolUsage


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
    frozen = [pk for pk in unused.values_list("pk", flat=True) if is_in_spec(pk)]
    return unused.exclude(pk__in=frozen)


def is_in_spec(pk: int) -> bool:
    """Whether a version or a run was frozen with the tool."""
    text = Cast("body", TextField())
    specs = Spec.objects.annotate(text=text)
    return any(
        specs.filter(text__contains=f'"tool_id": {pk}{end}').exists() for end in ",}"
    )


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
