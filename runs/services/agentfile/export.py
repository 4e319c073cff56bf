"""Export agents and what they use as an agent file."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from runs.engine.types import ExecutorOptions
from runs.evaluation.gate import GateResult
from runs.models import (
    Agent,
    AgentTool,
    AgentVersion,
    Dataset,
    Evaluator,
    PromptTemplate,
    Provider,
)
from runs.services.agentfile.evaluation import (
    add_gate_results,
    build_dataset_entry,
    build_evaluator_entry,
    build_gate_entry,
    calls_others,
    find_kept_result,
    list_gates,
    list_judge_providers,
    list_used_datasets,
    list_used_evaluators,
)
from runs.services.agentfile.literal_secrets import (
    RemovedSecrets,
    remove_literal_secrets,
)
from runs.services.agentfile.schema import (
    AgentEntry,
    AgentFile,
    DatasetEntry,
    PromptEntry,
    ProviderEntry,
    ToolEntry,
    ToolUseEntry,
)
from runs.services.agentfile.text import (
    MAX_FILE_CHARS,
    MAX_FILE_VALUES,
    fits_limits,
    render_agentfile,
)
from runs.services.errors import RunsError
from runs.services.spec.definition import (
    AgentDefinition,
    ToolBinding,
    build_agent_definition,
    get_version_definition,
)
from runs.services.spec.freeze import build_prompt_spec
from runs.services.spec.inline_prompt import get_prompt_fields
from tools.audit.write import write_entry
from tools.definition.ensure_builtin import make_function_slug
from tools.definition.overrides import get_effective_overrides
from tools.errors import ToolFailed
from tools.models import Tool
from tools.ownership import Owned, Visibility
from tools.registry import FunctionTool, find_function

BUILTIN_TOOL_PREFIX = "tools.builtin."

REMOVED_SECRETS = (
    "WARNING: secrets were removed, because they were typed into the tools themselves.",
    "Store each one as a credential, and name that in the tool's field `credential`:",
)
"""The beginning of a file from which secrets are missing."""
LEFT_OUT_DATASETS = (
    "WARNING: datasets of gates were left out, because no import takes as much.",
    "Export each as JSONL from its page, and create it there before this import:",
)
LEFT_OUT_RESULTS = (
    "WARNING: results of gates were left out: a tool or a called agent has changed",
    "since, or a called agent is not in this file. Agents:",
)
"""The beginning of the list of agents without the result of their gate."""

DefinitionRow = TypeVar(
    "DefinitionRow", Provider, PromptTemplate, Tool, Dataset, Evaluator
)
T = TypeVar("T")


class AgentNotFound(RunsError):
    def __init__(self, slug: str) -> None:
        super().__init__(f"Agent {slug!r} not found.")


class ExportTooLarge(RunsError):
    """The file would be larger than an import takes."""

    def __init__(self, datasets: Sequence[DatasetEntry]) -> None:
        self.largest = max(datasets, key=lambda one: len(one.model_dump_json()))
        text = _(
            "With its datasets the file would have more than %(chars)s characters or "
            "%(values)s values, which no import takes. Export dataset %(name)s, the "
            "largest one, as JSONL from its page, and the agent without datasets."
        )
        limits = {"chars": f"{MAX_FILE_CHARS:,}", "values": f"{MAX_FILE_VALUES:,}"}
        super().__init__(
            text % {**limits, "name": self.largest.name or self.largest.slug}
        )


class ExportedUse(NamedTuple):
    """A tool or agent that an agent uses; exactly one of the two is set."""

    tool: Tool | None
    sub_agent: Agent | None
    binding: ToolBinding


@dataclass(frozen=True)
class ExportedAgent:
    """An agent as one of its versions has it, or as its draft does."""

    agent: Agent
    version: AgentVersion | None
    """None for the draft."""
    definition: AgentDefinition
    provider: Provider
    prompt: PromptTemplate | None
    uses: tuple[ExportedUse, ...]

    def build_uses(self) -> list[AgentTool]:
        """Return rows that are not stored, of the tools as they are now."""
        return [
            AgentTool(
                agent=self.agent,
                tool=use.tool,
                sub_agent=use.sub_agent,
                policy=use.binding.policy,
                overrides=use.binding.overrides,
            )
            for use in self.uses
        ]


def export_agentfile(
    slugs: Iterable[str] = (),
    *,
    owner: User | None = None,
    draft: bool = False,
    datasets: bool = False,
) -> str:
    """Return the agents of these slugs, or all that are not archived, as YAML.

    Each agent is as its newest version has it; with `draft`, or if it has none, as its
    draft does. Includes the providers, prompts, tools and agents they use, if the
    owners of those agents own them too; others, and built-in tools, are only named.
    With `datasets`, also all datasets and evaluators of their experiments, besides
    those of their gates. Raises `AgentNotFound` or `ExportTooLarge`.
    """
    agents = find_exported_agents(list(slugs), owner)
    return export_agents(agents, draft=draft, datasets=datasets)


def export_agent_version(
    agent: Agent, version: AgentVersion | None, *, datasets: bool = False
) -> str:
    """Return the agent, as a version or the draft has it, and what it uses."""
    return render_exported_agents(
        [load_exported_agent(agent, version)],
        draft=version is None,
        with_datasets=datasets,
    )


def export_agents(
    agents: Iterable[Agent], *, draft: bool = False, datasets: bool = False
) -> str:
    """Return agents as their newest versions have them; with `draft`, as they are."""
    return render_exported_agents(
        [
            load_exported_agent(agent, get_exported_version(agent, draft=draft))
            for agent in agents
        ],
        draft=draft,
        with_datasets=datasets,
    )


def render_exported_agents(
    agents: list[ExportedAgent], *, draft: bool, with_datasets: bool = False
) -> str:
    """Return the agents and what they use as YAML; raise `ExportTooLarge`."""
    agents = include_sub_agents(agents, draft=draft)
    owners = {one.agent.owner_id for one in agents}
    uses = [use for one in agents for use in one.uses]
    tools = {use.tool for use in uses if use.tool and use.tool.owner_id in owners}
    providers = {one.provider for one in agents if one.provider.owner_id in owners}
    prompts = {
        one.prompt.slug: one.prompt
        for one in agents
        if one.prompt and one.prompt.owner_id in owners
    }
    entries = [
        remove_literal_secrets(build_tool_entry(tool))
        for tool in sort_by_key(tools)
        if not is_builtin_tool(tool)
    ]
    gates = list_gates(one.agent for one in agents)
    datasets = {gate.dataset for gate in gates if gate.dataset.owner_id in owners}
    evaluators = {
        row for gate in gates for row in gate.evaluators.all() if row.owner_id in owners
    }
    if with_datasets:
        used = [one.agent for one in agents]
        datasets.update(list_used_datasets(used).filter(owner__in=owners))
        evaluators.update(list_used_evaluators(used).filter(owner__in=owners))
    providers.update(list_judge_providers(evaluators).filter(owner__in=owners))
    by_agent = {gate.agent_id: build_gate_entry(gate) for gate in gates}
    file = AgentFile(
        agentfile=1,
        providers=tuple(build_provider_entry(p) for p in sort_by_key(providers)),
        prompts=tuple(build_prompt_entry(p) for p in prompts.values()),
        tools=tuple(one.entry for one in entries),
        datasets=tuple(build_dataset_entry(row) for row in sort_by_key(datasets)),
        evaluators=tuple(build_evaluator_entry(row) for row in sort_by_key(evaluators)),
        agents=tuple(
            build_agent_entry(one).model_copy(
                update={"gate": by_agent.get(one.agent.pk)}
            )
            for one in agents
        ),
    )
    results, outdated = find_gate_results(file, agents)
    file = add_gate_results(file, results)
    comment = [
        *comment_on_secrets(entries),
        *list_in_comment(LEFT_OUT_RESULTS, outdated),
    ]
    if with_datasets:
        return render_whole_file(file, comment)
    return render_without_large_datasets(file, comment)


def find_gate_results(
    file: AgentFile, agents: Sequence[ExportedAgent]
) -> tuple[dict[str, GateResult], list[str]]:
    """Return the results of gates that hold for the file, and whose do not."""
    by_slug = {entry.slug: entry for entry in file.agents}
    results: dict[str, GateResult] = {}
    outdated: list[str] = []
    for one in agents:
        slug = one.agent.slug
        result = find_kept_result(one.version, one.build_uses())
        if result is not None and not calls_others(file, by_slug[slug]):
            results[slug] = result
        elif one.version is not None and one.version.gate_result:
            outdated.append(slug)
    return results, outdated


def render_whole_file(file: AgentFile, comment: Sequence[str]) -> str:
    """Return the file as YAML; raise `ExportTooLarge` if no import takes it."""
    if file.datasets and not fits_limits(file):
        raise ExportTooLarge(file.datasets)
    text = render_agentfile(file, comment=comment)
    if file.datasets and len(text) > MAX_FILE_CHARS:
        raise ExportTooLarge(file.datasets)
    return text


def render_without_large_datasets(file: AgentFile, comment: Sequence[str]) -> str:
    """Return the file as YAML, without datasets that no import takes.

    The gates still name them, and a comment says so.
    """
    left_out: list[str] = []
    while True:
        try:
            return render_whole_file(file, [*comment, *comment_on_datasets(left_out)])
        except ExportTooLarge as refused:
            left_out.append(refused.largest.slug)
            kept = tuple(one for one in file.datasets if one != refused.largest)
            file = file.model_copy(update={"datasets": kept})


def get_exported_version(agent: Agent, *, draft: bool) -> AgentVersion | None:
    """Return the newest version; None for the draft."""
    return None if draft else agent.versions.select_related("spec").first()


def load_exported_agent(agent: Agent, version: AgentVersion | None) -> ExportedAgent:
    """Return what the version, or the draft, refers to, as far as it still exists."""
    found = (
        get_version_definition(version) if version else build_agent_definition(agent)
    )
    related = Tool.objects.select_related("credential", "mcp_server", "approvers")
    tools = related.in_bulk([use.tool for use in found.uses if use.tool])
    callees = Agent.objects.in_bulk(
        [use.sub_agent for use in found.uses if use.sub_agent]
    )
    uses = [
        ExportedUse(tools.get(use.tool or 0), callees.get(use.sub_agent or 0), use)
        for use in found.uses
    ]
    provider = agent.provider
    if found.provider != provider.pk:
        provider = Provider.objects.filter(pk=found.provider).first() or provider
    return ExportedAgent(
        agent,
        version,
        found,
        provider,
        get_exported_prompt(agent, version, found),
        tuple(use for use in uses if use.tool or use.sub_agent),
    )


def get_exported_prompt(
    agent: Agent, version: AgentVersion | None, definition: AgentDefinition
) -> PromptTemplate | None:
    """Return the prompt; one that has changed since under a name of the version."""
    if definition.words is None:
        return None
    row = agent.prompt
    if definition.source == "library" and definition.prompt != agent.prompt_id:
        row = PromptTemplate.objects.filter(pk=definition.prompt or 0).first()
    if row is not None and build_prompt_spec(row) == definition.words:
        return row
    number = version.number if version else 0
    return PromptTemplate(
        slug=f"{agent.slug[:60]}-v{number}",
        name=f"{agent.name} v{number}",
        owner=agent.owner,
        visibility=agent.visibility,
        kind=definition.prompt_kind or definition.kind,
        partials=definition.words.partials,
        **get_prompt_fields(definition.words),
    )


def export_tools(tools: Iterable[Tool], *, by: User) -> str:
    """Return tools alone as an agent file; the audit log records the export."""
    rows = sort_by_key(set(tools))
    entries = [remove_literal_secrets(build_tool_entry(row)) for row in rows]
    for row in rows:
        write_entry("exported", "tool", row, by=by)
    return render_agentfile(
        AgentFile(agentfile=1, tools=tuple(one.entry for one in entries)),
        comment=comment_on_secrets(entries),
    )


def comment_on_secrets(entries: Iterable[RemovedSecrets]) -> list[str]:
    """Return the lines that name the places of secrets that were removed."""
    places = [place for one in entries for place in one.places]
    return list_in_comment(REMOVED_SECRETS, places)


def comment_on_datasets(slugs: Sequence[str]) -> list[str]:
    """Return the lines that name datasets that were left out."""
    return list_in_comment(LEFT_OUT_DATASETS, slugs)


def list_in_comment(head: Sequence[str], names: Sequence[str]) -> list[str]:
    return [*head, *(json.dumps(name) for name in names)] if names else []


def sort_by_key(rows: Iterable[DefinitionRow]) -> list[DefinitionRow]:
    return sorted(rows, key=lambda row: row.pk)


def find_exported_agents(slugs: list[str], owner: User | None) -> list[Agent]:
    """Return the requested agents, oldest first."""
    rows = Agent.objects.select_related("provider", "prompt", "owner")
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


def include_sub_agents(
    agents: list[ExportedAgent], *, draft: bool
) -> list[ExportedAgent]:
    """Return `agents` and the agents of the same owners that they call."""
    owners = {one.agent.owner_id for one in agents}
    found = {one.agent.pk: one for one in agents}
    todo = list(agents)
    while todo:
        for use in todo.pop().uses:
            callee = use.sub_agent
            if callee and callee.pk not in found and callee.owner_id in owners:
                more = load_exported_agent(
                    callee, get_exported_version(callee, draft=draft)
                )
                found[callee.pk] = more
                todo.append(more)
    return sorted(found.values(), key=lambda one: one.agent.pk)


def build_provider_entry(row: Provider) -> ProviderEntry:
    """Return the entry of a provider, without its secrets."""
    return ProviderEntry(
        slug=row.slug,
        visibility=visibility_or_none(row.visibility),
        groups=list_sharing_groups(row),
        name=none_if_default(row.name, row.slug) or "",
        kind=row.kind,
        base_url=row.base_url,
        timeout=row.timeout,
        outage_minutes=row.outage_minutes,
        max_concurrent_runs=row.max_concurrent_runs,
        requests_per_minute=row.requests_per_minute,
        tokens_per_minute=row.tokens_per_minute,
        key_env=row.key_env,
        default_model=row.default_model,
        stream=row.stream,
    )


def build_prompt_entry(row: PromptTemplate) -> PromptEntry:
    return PromptEntry.model_validate(
        {
            "slug": row.slug,
            "visibility": visibility_or_none(row.visibility),
            "groups": list_sharing_groups(row),
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
            "groups": list_sharing_groups(row),
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
            "approvers": row.approvers.name if row.approvers else None,
            "second_person": row.second_person or None,
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


def build_agent_entry(one: ExportedAgent) -> AgentEntry:
    row, kept = one.agent, one.definition
    return AgentEntry(
        slug=row.slug,
        visibility=visibility_or_none(row.visibility),
        groups=list_sharing_groups(row),
        name=none_if_default(row.name, row.slug) or "",
        description=kept.description,
        kind=kept.kind,
        provider=one.provider.slug,
        model=kept.model,
        parameters=kept.parameters,
        prompt=one.prompt.slug if one.prompt else None,
        tools=tuple(build_tool_use_entry(use) for use in one.uses),
        executor=ExecutorOptions.model_validate(kept.executor),
        memory=kept.memory,
        suggested_questions=kept.suggested_questions,
        is_offered=row.is_offered or None,
        continues_without_client=row.continues_without_client,
        version=one.version.number if one.version else None,
        draft=one.version is None,
    )


def build_tool_use_entry(use: ExportedUse) -> ToolUseEntry:
    overrides = use.binding.overrides
    return ToolUseEntry.model_validate(
        {
            "tool": use.tool.slug if use.tool else None,
            "agent": use.sub_agent.slug if use.sub_agent else None,
            "policy": use.binding.policy,
            "overrides": get_effective_overrides(overrides, use.tool)
            if use.tool
            else overrides,
        }
    )


def list_sharing_groups(row: Owned) -> tuple[str, ...]:
    if row.pk is None or row.visibility != Visibility.GROUPS:
        return ()
    return tuple(row.groups.order_by("name").values_list("name", flat=True))


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
    """Return `value`; None if it is the default."""
    return None if value == default else value
