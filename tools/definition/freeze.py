"""Freezing a tool: what a run needs to call it, without secrets."""

from collections.abc import Iterable
from typing import Any

from tools.definition.overrides import (
    intersect_hosts,
    parse_overrides,
    smaller_limit,
    stricter_effect,
)
from tools.errors import ToolFailed
from tools.models import Tool
from tools.registry import find_function
from tools.spec import Effect, ToolSpec


def freeze_tool(
    tool: Tool, *, policy: str = "default", overrides: dict[str, Any] | None = None
) -> ToolSpec:
    """Return `tool` as it is now, under the policy of one agent.

    With the policy `ask` a person is asked, with default where the tool says so; allow
    lifts what the tool leaves to its agents, see `must_ask`. Unknown overrides have no
    effect; effect and limits of the tool only grow tighter.
    """
    own = parse_overrides(overrides)
    effect = stricter_effect(tool.effect, own.effect)
    return ToolSpec.model_validate(
        {
            "name": tool.name,
            "return_direct": tool.return_direct,
            "effect": effect,
            "asks": needs_approval(tool, policy, effect=effect),
            "approval_hours": tool.approval_hours,
            "at_expiry": tool.at_expiry or None,
            "timeout": smaller_limit(tool.timeout, own.timeout),
            "retries": smaller_limit(tool.retries, own.retries),
            "on_error": tool.on_error,
            "calls_per_run": smaller_limit(tool.calls_per_run, own.calls_per_run),
            "output_limit": smaller_limit(tool.output_limit, own.output_limit),
            "kind": tool.kind,
            "tool_id": tool.pk,
            "revision": tool.revision,
            **describe_function_tool(tool),
            "config": build_spec_config(
                tool, hosts=intersect_hosts(tool.hosts, own.hosts)
            ),
            **own.dump_set_fields(),
        }
    )


def needs_approval(tool: Tool, policy: str, *, effect: Effect) -> bool:
    """Whether a person must approve each call, which has this effect."""
    if policy == "allow":
        return is_approval_enforced(tool, effect=effect)
    return policy == "ask" or _tool_needs_approval(tool, effect)


def is_approval_enforced(tool: Tool, *, effect: str) -> bool:
    """Whether no agent may lift the tool's rule that a person approves each call.

    So it is where the tool always asks, or says who answers.
    """
    names_people = tool.second_person or tool.approvers_id is not None
    insists = tool.approval == Tool.Approval.ALWAYS or names_people
    return insists and _tool_needs_approval(tool, effect)


def list_lifted_approvals(specs: Iterable[ToolSpec]) -> list[str]:
    """Return the names of those that call without an approval that is enforced now."""
    calls = {one.tool_id: one for one in specs if one.tool_id and not one.asks}
    return [
        calls[tool.pk].name
        for tool in Tool.objects.filter(pk__in=calls).order_by("pk")
        if is_approval_enforced(
            tool, effect=stricter_effect(tool.effect, calls[tool.pk].effect)
        )
    ]


def _tool_needs_approval(tool: Tool, effect: str) -> bool:
    return tool.approval == Tool.Approval.ALWAYS or (
        tool.approval == Tool.Approval.SIDE_EFFECTS and effect == "side_effect"
    )


def describe_function_tool(tool: Tool) -> dict[str, Any]:
    """Return description and schema; a function brings its own if none is set."""
    description, schema = tool.description, tool.args_schema
    if tool.kind == "sql" and tool.config.get("tables"):
        description = f"{description}\n\nTables:\n{tool.config['tables']}".strip()
    if tool.kind == "function" and (schema is None or not description):
        try:
            function = find_function(str(tool.config.get("function", "")))
        except ToolFailed:
            pass  # the call will say so
        else:
            description = description or function.description
            schema = function.args_schema if schema is None else schema
    return {"description": description, "args_schema": schema}


def build_spec_config(tool: Tool, *, hosts: list[str]) -> dict[str, Any]:
    """Return what the kind needs; credentials and servers by their number."""
    config = dict(tool.config)
    if hosts:
        config["hosts"] = hosts
    if tool.credential_id is not None:
        config["credential"] = tool.credential_id
    if tool.mcp_server_id is not None:
        config["mcp_server"] = tool.mcp_server_id
    return config
