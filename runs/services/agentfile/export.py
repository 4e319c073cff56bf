"""Export agents and what they use as an agent file."""

from collections.abc import Iterable
from typing import Any, TypeVar

from django.contrib.auth.models import User

from runs.models import Agent, AgentTool, PromptTemplate, Provider
from runs.services.agentfile.schema import (
    AgentEntry,
    AgentFile,
    ExecutorEntry,
    PromptEntry,
    ProviderEntry,
    ToolEntry,
    ToolUseEntry,
)
from runs.services.agentfile.text import render_agentfile
from runs.services.errors import RunsError
from tools.audit.masking import mask_json_value
from tools.audit.write import write_entry
from tools.definition.ensure_builtin import make_function_slug
from tools.definition.overrides import get_effective_overrides
from tools.errors import ToolFailed
from tools.models import Tool
from tools.registry import FunctionTool, find_function

BUILTIN_TOOL_PREFIX = "tools.builtin."

DefinitionRow = TypeVar("DefinitionRow", Provider, PromptTemplate, Tool)
T = TypeVar("T")


class AgentNotFound(RunsError):
    def __init__(self, slug: str) -> None:
        super().__init__(f"Agent {slug!r} not found.")


def export_agentfile(slugs: Iterable[str] = (), *, owner: User | None = None) -> str:
    """Return the agents of these slugs, or all that are not archived, as YAML.

    Includes the providers, prompts, tools and agents they use, if the owners of
    those agents own them too; others, and built-in tools, are only named. Raises
    `AgentNotFound`.
    """
    agents = include_sub_agents(find_exported_agents(list(slugs), owner))
    owners = {agent.owner_id for agent in agents}
    uses = [use for agent in agents for use in agent.uses.all()]
    tools = {use.tool for use in uses if use.tool and use.tool.owner_id in owners}
    providers = {a.provider for a in agents if a.provider.owner_id in owners}
    prompts = {a.prompt for a in agents if a.prompt and a.prompt.owner_id in owners}
    return render_agentfile(
        AgentFile(
            agentfile=1,
            providers=tuple(build_provider_entry(p) for p in sort_by_key(providers)),
            prompts=tuple(build_prompt_entry(p) for p in sort_by_key(prompts)),
            tools=tuple(
                build_tool_entry(t)
                for t in sort_by_key(tools)
                if not is_builtin_tool(t)
            ),
            agents=tuple(build_agent_entry(a) for a in agents),
        )
    )


def export_tools(tools: Iterable[Tool], *, by: User) -> str:
    """Return tools alone as an agent file.

    What looks like a secret is removed, and the audit log records the export.
    """
    rows = sort_by_key(set(tools))
    entries = [build_tool_entry(row) for row in rows]
    for row in rows:
        write_entry("exported", "tool", row, by=by)
    return render_agentfile(
        AgentFile(
            agentfile=1,
            tools=tuple(
                entry.model_copy(update={"config": mask_json_value(entry.config)})
                for entry in entries
            ),
        )
    )


def sort_by_key(rows: Iterable[DefinitionRow]) -> list[DefinitionRow]:
    return sorted(rows, key=lambda row: row.pk)


def find_exported_agents(slugs: list[str], owner: User | None) -> list[Agent]:
    """Return the requested agents, oldest first."""
    rows = Agent.objects.select_related("provider", "prompt").prefetch_related(
        "uses__tool__credential", "uses__tool__mcp_server", "uses__sub_agent"
    )
    if owner is not None:
        rows = rows.filter(owner=owner)
    if not slugs:
        rows = rows.filter(archived_at=None, is_playground=False)
        return list(rows.order_by("pk"))
    found = {agent.slug: agent for agent in rows.filter(slug__in=slugs)}
    for slug in slugs:
        if slug not in found:
            raise AgentNotFound(slug)
    return sorted(found.values(), key=lambda agent: agent.pk)


def include_sub_agents(agents: list[Agent]) -> list[Agent]:
    """Return `agents` and the agents of the same owners that they call."""
    owners = {agent.owner_id for agent in agents}
    found = {agent.pk: agent for agent in agents}
    todo = list(agents)
    while todo:
        used = {
            use.sub_agent.slug
            for use in todo.pop().uses.all()
            if use.sub_agent
            and use.sub_agent.pk not in found
            and use.sub_agent.owner_id in owners
        }
        more = find_exported_agents(list(used), None) if used else []
        found |= {agent.pk: agent for agent in more}
        todo += more
    return sorted(found.values(), key=lambda agent: agent.pk)


def build_provider_entry(row: Provider) -> ProviderEntry:
    """Return the entry of a provider, without its secrets."""
    return ProviderEntry(
        slug=row.slug,
        visibility=visibility_or_none(row.visibility),
        name=none_if_default(row.name, row.slug) or "",
        kind=row.kind,
        base_url=row.base_url,
        timeout=row.timeout,
        outage_minutes=row.outage_minutes,
        key_env=row.key_env,
        default_model=row.default_model,
        stream=row.stream,
    )


def build_prompt_entry(row: PromptTemplate) -> PromptEntry:
    """Return the entry of a prompt."""
    return PromptEntry.model_validate(
        {
            "slug": row.slug,
            "visibility": visibility_or_none(row.visibility),
            "name": none_if_default(row.name, row.slug) or "",
            "kind": row.kind,
            "template": row.template if not row.messages else None,
            "messages": row.messages or None,
            "partials": row.partials,
        }
    )


def build_tool_entry(row: Tool) -> ToolEntry:
    """Return the entry of a tool, without what its function declares."""
    function = find_registered_function(row)
    return ToolEntry.model_validate(
        {
            "slug": row.slug,
            "visibility": visibility_or_none(row.visibility),
            "name": none_if_default(row.name, function.name if function else row.slug),
            "kind": row.kind,
            "description": none_if_default(
                row.description, function.description if function else ""
            ),
            "effect": none_if_default(
                row.effect, function.effect if function else "side_effect"
            ),
            "approval": none_if_default(row.approval, "never"),
            "approval_hours": row.approval_hours,
            "at_expiry": row.at_expiry or None,
            "args_schema": none_if_default(
                row.args_schema, function.args_schema if function else None
            ),
            "config": row.config,
            "return_direct": none_if_default(
                row.return_direct, function.return_direct if function else False
            ),
            "on_error": row.on_error,
            "timeout": none_if_default(
                row.timeout, function.timeout if function else 60.0
            ),
            "retries": row.retries,
            "calls_per_run": row.calls_per_run,
            "output_limit": row.output_limit,
            "hosts": row.hosts,
            "credential": row.credential.slug if row.credential else None,
            "mcp_server": row.mcp_server.slug if row.mcp_server else None,
        }
    )


def build_agent_entry(row: Agent) -> AgentEntry:
    """Return the entry of an agent."""
    return AgentEntry(
        slug=row.slug,
        visibility=visibility_or_none(row.visibility),
        name=none_if_default(row.name, row.slug) or "",
        description=row.description,
        kind=row.kind,
        provider=row.provider.slug,
        model=row.model,
        parameters=row.parameters,
        prompt=row.prompt.slug if row.prompt else None,
        tools=tuple(build_tool_use_entry(use) for use in row.uses.all()),
        executor=ExecutorEntry.model_validate({"loop_guard": None, **row.executor}),
        memory=row.memory,
    )


def build_tool_use_entry(use: AgentTool) -> ToolUseEntry:
    """Return the entry of a tool or agent that an agent uses."""
    return ToolUseEntry.model_validate(
        {
            "tool": use.tool.slug if use.tool else None,
            "agent": use.sub_agent.slug if use.sub_agent else None,
            "policy": use.policy,
            "overrides": get_effective_overrides(use.overrides, use.tool)
            if use.tool
            else use.overrides,
        }
    )


def find_registered_function(row: Tool) -> FunctionTool | None:
    """Return the registered function of a tool; None if there is none."""
    try:
        path = str(row.config.get("function", ""))
        return find_function(path) if row.kind == "function" else None
    except ToolFailed:
        return None


def is_builtin_tool(row: Tool) -> bool:
    """Whether every installation has this tool."""
    function = find_registered_function(row)
    return (
        function is not None
        and function.path.startswith(BUILTIN_TOOL_PREFIX)
        and row.slug == make_function_slug(function)
    )


def visibility_or_none(visibility: str) -> Any:
    """Return the visibility; None if it is the default."""
    return none_if_default(visibility, "private")


def none_if_default(value: T, default: T) -> T | None:
    """Return `value`; None where it is the default."""
    return None if value == default else value
