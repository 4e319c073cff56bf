"""Write agents and what they are made of as an agent file."""

from collections.abc import Iterable
from typing import Any, TypeVar

from django.contrib.auth.models import User

from runs.engine.types import ExecutorOptions
from runs.models import Agent, AgentTool, PromptTemplate, Provider
from runs.services.agentfile import (
    AgentEntry,
    AgentFile,
    PromptEntry,
    ProviderEntry,
    ToolEntry,
    ToolUse,
)
from runs.services.agentfile_text import write_agentfile
from runs.services.errors import RunsError
from tools.audit.masks import masked
from tools.audit.write import write_entry
from tools.errors import ToolFailed
from tools.models import Tool
from tools.overrides import in_force
from tools.registry import FunctionTool, find_function
from tools.services.ensure_builtin_tools import slug_of

BUILT_IN = "tools.builtin."

Row = TypeVar("Row", Provider, PromptTemplate, Tool)
T = TypeVar("T")


class NoSuchAgent(RunsError):
    """A slug names no agent."""

    def __init__(self, slug: str) -> None:
        super().__init__(f"There is no agent {slug!r}.")


def export_agentfile(slugs: Iterable[str] = (), *, owner: User | None = None) -> str:
    """Return the agents of these slugs, or all that are not archived, as YAML.

    With them come the providers, prompts, tools and agents they use, as far as the
    owners of those agents own them too; other things, and built-in tools, are named
    only. Raise `NoSuchAgent`.
    """
    agents = with_their_agents(chosen(list(slugs), owner))
    owners = {agent.owner_id for agent in agents}
    uses = [use for agent in agents for use in agent.uses.all()]
    tools = {use.tool for use in uses if use.tool and use.tool.owner_id in owners}
    providers = {a.provider for a in agents if a.provider.owner_id in owners}
    prompts = {a.prompt for a in agents if a.prompt and a.prompt.owner_id in owners}
    return write_agentfile(
        AgentFile(
            agentfile=1,
            providers=tuple(provider_entry(p) for p in by_number(providers)),
            prompts=tuple(prompt_entry(p) for p in by_number(prompts)),
            tools=tuple(tool_entry(t) for t in by_number(tools) if not is_built_in(t)),
            agents=tuple(agent_entry(a) for a in agents),
        )
    )


def export_tools(tools: Iterable[Tool], *, by: User) -> str:
    """Return tools alone as an agent file, for a person to take along.

    What looks like a secret in a definition is left out, and the audit log says who
    took it.
    """
    rows = by_number(set(tools))
    entries = [tool_entry(row) for row in rows]
    for row in rows:
        write_entry("exported", "tool", row, by=by)
    return write_agentfile(
        AgentFile(
            agentfile=1,
            tools=tuple(
                entry.model_copy(update={"config": masked(entry.config)})
                for entry in entries
            ),
        )
    )


def by_number(rows: Iterable[Row]) -> list[Row]:
    """Return the rows in the order in which they were made."""
    return sorted(rows, key=lambda row: row.pk)


def chosen(slugs: list[str], owner: User | None) -> list[Agent]:
    """Return the agents that are asked for, oldest first."""
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
            raise NoSuchAgent(slug)
    return sorted(found.values(), key=lambda agent: agent.pk)


def with_their_agents(agents: list[Agent]) -> list[Agent]:
    """Return `agents` and those of the same owners that they use as tools."""
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
        more = chosen(list(used), None) if used else []
        found |= {agent.pk: agent for agent in more}
        todo += more
    return sorted(found.values(), key=lambda agent: agent.pk)


def provider_entry(row: Provider) -> ProviderEntry:
    """Return the entry of a provider, without its secrets."""
    return ProviderEntry(
        slug=row.slug,
        visibility=shared(row.visibility),
        name=unless(row.name, row.slug) or "",
        kind=row.kind,
        base_url=row.base_url,
        timeout=row.timeout,
        key_env=row.key_env,
        default_model=row.default_model,
        stream=row.stream,
    )


def prompt_entry(row: PromptTemplate) -> PromptEntry:
    """Return the entry of a prompt."""
    return PromptEntry.model_validate(
        {
            "slug": row.slug,
            "visibility": shared(row.visibility),
            "name": unless(row.name, row.slug) or "",
            "kind": row.kind,
            "template": row.template if not row.messages else None,
            "messages": row.messages or None,
            "partials": row.partials,
        }
    )


def tool_entry(row: Tool) -> ToolEntry:
    """Return the entry of a tool; what its function declares is left out."""
    function = function_of(row)
    return ToolEntry.model_validate(
        {
            "slug": row.slug,
            "visibility": shared(row.visibility),
            "name": unless(row.name, function.name if function else row.slug),
            "kind": row.kind,
            "description": unless(
                row.description, function.description if function else ""
            ),
            "effect": unless(
                row.effect, function.effect if function else "side_effect"
            ),
            "approval": unless(row.approval, "never"),
            "approval_hours": row.approval_hours,
            "at_expiry": row.at_expiry or None,
            "args_schema": unless(
                row.args_schema, function.args_schema if function else None
            ),
            "config": row.config,
            "return_direct": unless(
                row.return_direct, function.return_direct if function else False
            ),
            "on_error": row.on_error,
            "timeout": unless(row.timeout, function.timeout if function else 60.0),
            "retries": row.retries,
            "calls_per_run": row.calls_per_run,
            "output_limit": row.output_limit,
            "hosts": row.hosts,
            "credential": row.credential.slug if row.credential else None,
            "mcp_server": row.mcp_server.slug if row.mcp_server else None,
        }
    )


def agent_entry(row: Agent) -> AgentEntry:
    """Return the entry of an agent."""
    return AgentEntry(
        slug=row.slug,
        visibility=shared(row.visibility),
        name=unless(row.name, row.slug) or "",
        description=row.description,
        kind=row.kind,
        provider=row.provider.slug,
        model=row.model,
        parameters=row.parameters,
        prompt=row.prompt.slug if row.prompt else None,
        tools=tuple(use_entry(use) for use in row.uses.all()),
        executor=ExecutorOptions.model_validate(row.executor),
        memory=row.memory,
    )


def use_entry(use: AgentTool) -> ToolUse:
    """Return the entry of one tool or agent in the hands of an agent."""
    return ToolUse.model_validate(
        {
            "tool": use.tool.slug if use.tool else None,
            "agent": use.sub_agent.slug if use.sub_agent else None,
            "policy": use.policy,
            "overrides": in_force(use.overrides, use.tool)
            if use.tool
            else use.overrides,
        }
    )


def function_of(row: Tool) -> FunctionTool | None:
    """Return the registered function of a tool; None for others, and if it is gone."""
    try:
        path = str(row.config.get("function", ""))
        return find_function(path) if row.kind == "function" else None
    except ToolFailed:
        return None


def is_built_in(row: Tool) -> bool:
    """Whether every installation has this tool anyway."""
    function = function_of(row)
    return (
        function is not None
        and function.path.startswith(BUILT_IN)
        and row.slug == slug_of(function)
    )


def shared(visibility: str) -> Any:
    """Return the visibility where it is not what a new definition has."""
    return unless(visibility, "private")


def unless(value: T, default: T) -> T | None:
    """Return `value`; None where it is the default."""
    return None if value == default else value
