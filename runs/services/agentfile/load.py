"""Import an agent file: all or nothing, and repeating it changes nothing."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from runs.engine.kinds.registry import AGENT_KINDS
from runs.engine.spec_validation import SpecProblem, find_spec_problems
from runs.engine.types import ExecutorOptions
from runs.evaluation.registry import EVALUATOR_KINDS, validate_evaluator_config
from runs.llm.key_variables import is_default_key_variable
from runs.models import Agent, AgentTool, Dataset, Evaluator, PromptTemplate, Provider
from runs.models.agents import INLINE_SLUG
from runs.services.agentfile.checks import (
    find_entry_kind_errors,
    find_prompt_entry_errors,
    find_provider_entry_errors,
    find_tool_entry_errors,
)
from runs.services.agentfile.evaluation import (
    compute_content_digest,
    has_unsaved_examples,
    store_examples,
    store_gate,
    store_gate_result,
)
from runs.services.agentfile.literal_secrets import find_removed_secrets
from runs.services.agentfile.schema import (
    AgentEntry,
    AgentFile,
    AgentFileEntry,
    DatasetEntry,
    EvaluatorEntry,
    PromptEntry,
    ProviderEntry,
    ToolEntry,
    ToolUseEntry,
)
from runs.services.agentfile.text import (
    AgentFileRefused,
    format_error_path,
    parse_agentfile,
)
from runs.services.agents.call_graph import find_cycle
from runs.services.agents.publish import publish_agent
from runs.services.datasets.content import DEFAULT_INPUT
from runs.services.errors import AgentCycle, FieldError, GateNotMet, RunsError
from runs.services.evaluation.judge_requests import (
    find_judge_problem,
    get_judge_provider,
)
from runs.services.evaluators.save import save_evaluator
from runs.services.providers.outages import end_outages
from runs.services.spec.freeze import freeze_agent
from tools.definition.overrides import find_loosenings, parse_overrides
from tools.definition.save import save_tool
from tools.errors import ToolFailed
from tools.models import Credential, McpServer, Tool
from tools.ownership import Owned, Visibility
from tools.registry import find_function

Row = TypeVar("Row", bound=Owned)

NOTE = "Imported from an agent file"
MESSAGE_OF_GAP = (
    "The export removed a secret here. Store it as a credential and name that in the "
    "field `credential`, or enter the value."
)
NOT_TOOL_COLUMNS = {"slug", "visibility", "groups", "approvers", "second_person"}
NOT_AGENT_COLUMNS = {
    "slug",
    "visibility",
    "groups",
    "tools",
    "executor",
    "version",
    "draft",
    "gate",
    "gate_result",
}
"""Fields of an entry that are stored in another way."""


NOT_CLEANED: dict[type, list[str]] = {Evaluator: ["config"]}
"""Fields that have been checked already, and may be empty."""


def get_note(entry: AgentEntry) -> str:
    return f"{NOTE}, version {entry.version} there" if entry.version else NOTE


class ImportResult(NamedTuple):
    """What an import created and updated, as `kind slug`."""

    created: list[str]
    updated: list[str]
    published: list[str]
    missing: tuple[str, ...] = ()
    """What drafts, or this site, still need."""
    changed_fields: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """Fields of what was updated, by its `kind slug`."""

    @property
    def has_changes(self) -> bool:
        """Whether anything was, or would be, created, updated or published."""
        return bool(self.created or self.updated or self.published)


def import_agentfile(
    text: str,
    owner: User,
    *,
    inert: bool = False,
    draft: bool = False,
    dry_run: bool = False,
) -> ImportResult:
    """Create or update what is in the file, for `owner`; raise `AgentFileRefused`.

    With `draft` no agent is published; a dry run only returns what would be done.

    The operator's import publishes agents and enables tools. An `inert` import, of
    an untrusted file, creates drafts only: everything is private, tools are
    disabled and get no credentials, agents are not published, and existing
    definitions are not changed. What such a tool still needs is listed, not
    refused.
    """
    file = parse_agentfile(text)
    return store_agentfile(file, owner, inert=inert, draft=draft, dry_run=dry_run)


def store_agentfile(
    file: AgentFile,
    owner: User,
    *,
    inert: bool = False,
    draft: bool = False,
    dry_run: bool = False,
) -> ImportResult:
    """Create or update what is in a parsed file, see `import_agentfile`."""
    work = AgentFileImport(owner=owner, inert=inert, publishes=not (inert or draft))
    with transaction.atomic():
        work.store_file(file)
        if work.errors:
            raise AgentFileRefused(work.errors)
        transaction.set_rollback(dry_run)
    return ImportResult(
        work.created,
        work.updated,
        work.published,
        tuple(work.missing),
        {name: tuple(work.changed_fields[name]) for name in work.updated},
    )


def find_different_rows(file: AgentFile, owner: User) -> list[Owned]:
    """Return definitions of `owner` that an inert import would have to change.

    Nothing is stored.
    """
    work = AgentFileImport(owner=owner, inert=True, publishes=False)
    with transaction.atomic():
        work.store_file(file)
        transaction.set_rollback(True)
    return work.different


@dataclass
class AgentFileImport:
    owner: User
    inert: bool
    publishes: bool
    errors: list[FieldError] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    published: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    changed_fields: dict[str, list[str]] = field(
        default_factory=lambda: defaultdict(list)
    )
    different: list[Owned] = field(default_factory=list)
    """What an inert import does not change."""
    prompt_slugs: dict[str, str] = field(default_factory=dict)
    """Where instructions of agents are stored, by their slug in the file."""

    def store_file(self, file: AgentFile) -> None:
        """Store all parts in the order of their references."""
        self.name_prompts(file)
        self.store_parts(file)
        agents = [
            (path, entry, self.store_agent(path, entry))
            for path, entry in self.iter_unique("agents", file.agents)
        ]
        for path, entry, agent in agents:  # they may use one another
            if agent is not None:
                self.store_agent_tools(path, entry, agent)
        for path, entry, agent in agents:
            if agent is not None:
                self.check_cycle(path, entry, agent)
                self.store_agent_gate(path, entry, agent)
        if not self.errors:
            self.publish_agents(file, sort_callees_first(agents))

    def name_prompts(self, file: AgentFile) -> None:
        """Rename instructions of agents: their slugs have the numbers of another site.

        They stay the agent's own if the file comes from here. A prompt with the slug
        of another agent would become the instructions of that agent.
        """
        for slug in [one.slug for one in file.prompts]:
            if not re.match(INLINE_SLUG, slug):
                continue
            users = [one.slug for one in file.agents if one.prompt == slug]
            number = int(slug.rpartition("-")[2][:18])
            mine = Agent.objects.filter(owner=self.owner, prompt__slug=slug)
            if not mine.filter(pk=number, slug__in=users[:1]).exists():
                stem = users[0] if users else f"prompt-{number}"
                self.prompt_slugs[slug] = f"{stem[:60]}-instructions"
            else:
                self.prompt_slugs[slug] = slug

    def store_parts(self, file: AgentFile) -> None:
        for path, provider in self.iter_unique("providers", file.providers):
            self.store_provider(path, provider)
        for path, prompt in self.iter_unique("prompts", file.prompts):
            self.store_prompt(path, prompt)
        for path, tool in self.iter_unique("tools", file.tools):
            self.store_tool(path, tool)
        for path, dataset in self.iter_unique("datasets", file.datasets):
            self.store_dataset(path, dataset)
        for path, evaluator in self.iter_unique("evaluators", file.evaluators):
            self.store_evaluator(path, evaluator)

    def store_dataset(self, path: str, entry: DatasetEntry) -> None:
        """Store a dataset; its examples become the newest version."""
        there = Dataset.objects.filter(slug=entry.slug, owner=self.owner).first()
        if there is not None and has_unsaved_examples(there):
            self.add_error(
                path,
                _(
                    "The dataset %(slug)r has unsaved changes here. Save or discard "
                    "them first."
                )
                % {"slug": entry.slug},
            )
            return
        names = dict.fromkeys(
            [*entry.inputs, *(name for one in entry.examples for name in one.inputs)]
        )
        fields = {
            "name": entry.name or entry.slug,
            "description": entry.description,
            "input_names": list(names) or [DEFAULT_INPUT],
        }
        row = self.store_row(Dataset, path, entry, fields)
        if row is None or row.pk is None:
            return
        try:
            if store_examples(row, entry, by=self.owner):
                self.note_change(path, "dataset", row, "examples")
        except RunsError as refused:
            self.add_error(f"{path}.examples", str(refused))

    def store_evaluator(self, path: str, entry: EvaluatorEntry) -> None:
        """Store an evaluator; changed settings are a revision."""
        if entry.kind not in EVALUATOR_KINDS:
            known = dict(sorted(EVALUATOR_KINDS.items()))
            self.add_errors(path, find_entry_kind_errors(entry.kind, known))
            return
        errors = validate_evaluator_config(entry.kind, entry.config)
        for name, message in errors:
            self.add_error(f"{path}.config.{name}".rstrip("."), str(message))
        if errors:
            return
        fields = entry.model_dump(mode="json", exclude={"slug", "visibility", "groups"})
        fields["name"] = entry.name or entry.slug
        row = self.store_row(Evaluator, path, entry, fields)
        if row is not None and find_judge_problem(row, owner=self.owner):
            wanted = get_judge_provider(row)
            text = _("%(slug)s needs the provider %(name)r")
            self.missing.append(text % {"slug": row.slug, "name": wanted})

    def store_agent_gate(self, path: str, entry: AgentEntry, agent: Agent) -> None:
        """Give the agent the gate of the file; without one, it keeps its own."""
        if entry.gate is None:
            return
        place = f"{path}.gate"
        dataset = self.find_usable_row(Dataset, f"{place}.dataset", entry.gate.dataset)
        evaluators = [
            self.find_usable_row(Evaluator, f"{place}.evaluators[{index}]", slug)
            for index, slug in enumerate(entry.gate.evaluators)
        ]
        found = [row for row in evaluators if row is not None]
        if dataset is None or len(found) < len(evaluators):
            return
        if store_gate(agent, entry.gate, dataset, found, by=self.owner):
            self.note_change(path, "agent", agent, "gate")

    def accept_gate_result(
        self, file: AgentFile, entry: AgentEntry, agent: Agent
    ) -> None:
        """Let a result count that belongs to this agent; others never do."""
        result = entry.gate_result
        if result is None or self.inert:
            return
        if result.content_digest != compute_content_digest(file, entry):
            text = _(
                "%(slug)s has changed since its gate was met, so the result does not "
                "count"
            )
            self.missing.append(text % {"slug": entry.slug})
        elif problem := store_gate_result(agent, result):
            self.missing.append(problem)

    def publish_agents(self, file: AgentFile, agents: "list[ImportedAgent]") -> None:
        """Publish agents; report those that cannot run, but not who calls them."""
        faulty: set[str] = set()
        for path, entry, agent in agents:
            if agent is None or faulty & {use.agent for use in entry.tools}:
                continue
            self.accept_gate_result(file, entry, agent)
            if not self.check_and_publish(path, entry, agent):
                faulty.add(entry.slug)

    E = TypeVar("E", bound=AgentFileEntry)

    def iter_unique(self, kind: str, entries: Sequence[E]) -> Iterable[tuple[str, E]]:
        """Yield each entry with its path; report a slug that is defined twice."""
        seen: set[str] = set()
        for index, entry in enumerate(entries):
            path = f"{kind}[{index}]"
            if entry.slug in seen:
                twice = _("%(slug)r is defined twice.") % {"slug": entry.slug}
                self.add_error(f"{path}.slug", twice)
            seen.add(entry.slug)
            yield path, entry

    def add_error(self, path: str, message: str) -> None:
        """Report an error; nothing of the file will be stored."""
        self.errors.append(FieldError(path, message))

    def store_provider(self, path: str, entry: ProviderEntry) -> None:
        """Store a provider; its key and headers are not changed."""
        fields = entry.model_dump(exclude={"slug", "visibility", "groups"})
        fields["name"] = entry.name or entry.slug
        self.add_errors(path, find_provider_entry_errors(entry))
        if entry.key_env:
            self.check_key_variable(path, entry)
        self.store_row(Provider, path, entry, fields)

    def check_key_variable(self, path: str, entry: ProviderEntry) -> None:
        """Report a variable that cannot be read, or whose key would go elsewhere.

        An untrusted file names its own URLs, so it may only use the default
        variable of a kind, and only with the default URL of that kind.
        """
        may = Provider(owner=self.owner).may_read(entry.key_env)
        if self.inert and not is_default_key_variable(
            entry.kind, base_url=entry.base_url, name=entry.key_env
        ):
            may = False
        if not may:
            self.add_error(
                f"{path}.key_env",
                _(
                    "The key cannot be read from the variable %(name)r. Remove "
                    "key_env and enter the key on the provider page, or make an "
                    "administrator the owner of the provider and list the variable in "
                    "AGENTSITE_KEY_VARIABLES."
                )
                % {"name": entry.key_env},
            )

    def store_prompt(self, path: str, entry: PromptEntry) -> None:
        fields = entry.model_dump(mode="json", exclude={"slug", "visibility", "groups"})
        fields["name"] = entry.name or entry.slug
        fields["template"] = entry.template or ""
        self.add_errors(path, find_prompt_entry_errors(entry))
        slug = self.prompt_slugs.get(entry.slug, entry.slug)
        self.store_row(
            PromptTemplate, path, entry.model_copy(update={"slug": slug}), fields
        )

    def store_tool(self, path: str, entry: ToolEntry) -> None:
        """Store a tool; a function tool takes missing fields from its function."""
        fields = entry.model_dump(mode="json", exclude=NOT_TOOL_COLUMNS)
        careful = Tool.Approval.SIDE_EFFECTS if self.inert else Tool.Approval.NEVER
        defaults: dict[str, Any] = {
            "name": entry.slug,
            "description": "",
            "effect": Tool.Effect.SIDE_EFFECT,
            "approval": careful,
            "at_expiry": "",
            "return_direct": False,
            "timeout": 60.0,
            **self.get_function_defaults(path, entry),
        }
        for name, value in defaults.items():
            if fields[name] is None:
                fields[name] = value
        if self.inert:
            self.drop_references(entry, fields)
        else:
            fields["credential"] = self.find_referenced_row(
                Credential, path, "credential", entry
            )
            fields["mcp_server"] = self.find_referenced_row(
                McpServer, path, "mcp_server", entry
            )
            fields["enabled"] = True
            self.find_approvers(entry, fields)
        self.add_errors(path, self.find_tool_mistakes(entry, fields))
        self.store_row(Tool, path, entry, fields, new={"enabled": not self.inert})

    def find_approvers(self, entry: ToolEntry, fields: dict[str, Any]) -> None:
        """Add the rule for approvers; a group that does not exist here is listed."""
        if entry.second_person is not None:
            fields["second_person"] = entry.second_person
        if entry.approvers is None:
            return
        group = Group.objects.filter(name=entry.approvers).first()
        if group is None:
            text = _("%(slug)s needs the group %(name)r")
            self.missing.append(text % {"slug": entry.slug, "name": entry.approvers})
        else:
            fields["approvers"] = group

    def drop_references(self, entry: ToolEntry, fields: dict[str, Any]) -> None:
        """Remove and list what a file must not choose for a user."""
        words = {"credential": _("credential"), "mcp_server": _("MCP server")}
        for name, word in words.items():
            wanted = fields.pop(name)
            row = Tool.objects.filter(slug=entry.slug, owner=self.owner).first()
            if wanted is not None and getattr(row, name, None) is None:
                text = _("%(slug)s needs the %(kind)s %(name)r")
                self.missing.append(
                    text % {"slug": entry.slug, "kind": word, "name": wanted}
                )

    def find_tool_mistakes(
        self, entry: ToolEntry, fields: dict[str, Any]
    ) -> Iterator[FieldError]:
        """Yield the problems of a tool; a draft may name a missing function."""
        for mistake in find_tool_entry_errors(entry, fields):
            is_of_function = entry.kind == "function" and mistake.field == "config"
            is_reported = mistake.message in (error.message for error in self.errors)
            if not (is_of_function and (self.inert or is_reported)):
                yield mistake
        for place in find_removed_secrets(entry.config):
            if self.inert:
                text = _("%(slug)s needs the secret of %(place)s")
                self.missing.append(text % {"slug": entry.slug, "place": place})
            else:
                yield FieldError(place, MESSAGE_OF_GAP)

    def get_function_defaults(self, path: str, entry: ToolEntry) -> dict[str, Any]:
        if entry.kind != "function":
            return {}
        try:
            function = find_function(str(entry.config.get("function", "")))
        except ToolFailed as error:
            if self.inert:
                wanted = str(entry.config.get("function", ""))
                text = _("%(slug)s needs the function %(name)r")
                self.missing.append(text % {"slug": entry.slug, "name": wanted})
            else:
                self.add_error(f"{path}.config.function", str(error))
            return {}
        return {
            "name": function.name,
            "description": function.description,
            "effect": function.effect,
            "args_schema": function.args_schema,
            "return_direct": function.return_direct,
            "timeout": function.timeout,
        }

    def store_agent(self, path: str, entry: AgentEntry) -> Agent | None:
        """Store an agent without its tools."""
        self.add_errors(path, find_entry_kind_errors(entry.kind, AGENT_KINDS))
        provider = self.find_usable_row(Provider, f"{path}.provider", entry.provider)
        prompt = None
        if entry.prompt is not None:
            prompt = self.find_prompt(f"{path}.prompt", entry.prompt)
        fields = entry.model_dump(mode="json", exclude=NOT_AGENT_COLUMNS)
        fields |= {
            "name": entry.name or entry.slug,
            "provider": provider,
            "prompt": prompt,
            "executor": entry.executor.model_dump(mode="json", exclude_unset=True),
        }
        if entry.is_offered is None or self.inert:
            del fields["is_offered"]
        return self.store_row(Agent, path, entry, fields) if provider else None

    def find_prompt(self, path: str, slug: str) -> PromptTemplate | None:
        """Return the prompt of the library or of the file; else report an error."""
        stored = self.prompt_slugs.get(slug, slug)
        if re.match(INLINE_SLUG, slug) and slug not in self.prompt_slugs:
            self.add_error(
                path,
                _(
                    "%(slug)r are the instructions of one agent. Add them to the "
                    "prompts of the file."
                )
                % {"slug": slug},
            )
            return None
        return self.find_usable_row(PromptTemplate, path, stored)

    def store_agent_tools(self, path: str, entry: AgentEntry, agent: Agent) -> None:
        """Give the agent exactly these tools, in this order."""
        wanted: list[AgentTool] = []
        for index, use in enumerate(entry.tools):
            row = self.build_agent_tool(f"{path}.tools[{index}]", use, agent)
            if row is None:
                continue
            if get_agent_tool_key(row)[:2] in [
                get_agent_tool_key(other)[:2] for other in wanted
            ]:
                self.add_error(f"{path}.tools[{index}]", _("The agent uses it twice."))
                continue
            row.position = index
            wanted.append(row)
        there = list(agent.uses.all())
        if [get_agent_tool_key(row) for row in there] == [
            get_agent_tool_key(r) for r in wanted
        ]:
            return
        self.note_change(f"{path}.tools", "agent", agent, "tools")
        agent.uses.all().delete()
        AgentTool.objects.bulk_create(wanted)

    def build_agent_tool(
        self, path: str, use: ToolUseEntry, agent: Agent
    ) -> AgentTool | None:
        more = {"policy": use.policy, "overrides": use.overrides}
        if use.tool is not None:
            tool = self.find_usable_row(Tool, path, use.tool)
            if tool is None:
                return None
            for field, message in find_loosenings(parse_overrides(use.overrides), tool):
                self.add_error(f"{path}.overrides.{field}", message)
            return AgentTool(agent=agent, tool=tool, **more)
        sub_agent = self.find_usable_row(Agent, path, use.agent or "")
        if sub_agent == agent:
            self.add_error(path, _("An agent cannot call itself."))
            return None
        return (
            AgentTool(agent=agent, sub_agent=sub_agent, **more) if sub_agent else None
        )

    def check_cycle(self, path: str, entry: AgentEntry, agent: Agent) -> None:
        """Report an agent that would call itself through others."""
        uses = [(index, use) for index, use in enumerate(entry.tools) if use.agent]
        for index, use in uses:
            rows = agent.uses.filter(sub_agent__slug=use.agent)
            names = find_cycle(agent, rows.values_list("sub_agent", flat=True))
            if names:
                self.add_error(f"{path}.tools[{index}]", str(AgentCycle(names)))

    def check_and_publish(self, path: str, entry: AgentEntry, agent: Agent) -> bool:
        """Publish a changed agent; report one that cannot run, and return False."""
        problems = find_spec_problems(freeze_agent(agent))
        for problem in problems:
            self.add_error(find_path_in_file(path, entry, problem), problem.message)
        if problems:
            return False
        if self.publishes and not entry.draft:
            before = agent.versions.first()
            try:
                newest = publish_agent(agent, by=self.owner, note=get_note(entry))
            except GateNotMet:
                text = _(
                    "%(slug)s was not published, because its gate is not met. Run the "
                    "gate on the page that publishes it"
                )
                self.missing.append(text % {"slug": entry.slug})
                return True
            if newest != before:
                self.published.append(f"agent {agent.slug}")
        return True

    def find_referenced_row(
        self, model: type[Row], path: str, name: str, entry: ToolEntry
    ) -> Row | None:
        slug = getattr(entry, name)
        return (
            None
            if slug is None
            else self.find_usable_row(model, f"{path}.{name}", slug)
        )

    def find_usable_row(self, model: type[Row], path: str, slug: str) -> Row | None:
        """Return the row `slug` if the owner may use it; else report an error."""
        rows: Any = model._default_manager
        # A tool of an inert import is off until a person has looked at it.
        row: Row | None = (
            rows.visible_to(self.owner).filter(archived_at=None, slug=slug).first()
        )
        if row is None:
            word = model._meta.verbose_name
            self.add_error(
                path,
                _("There is no %(kind)s %(slug)r in the file or available to you.")
                % {"kind": word, "slug": slug},
            )
        return row

    def store_row(
        self,
        model: type[Row],
        path: str,
        entry: AgentFileEntry,
        fields: dict[str, Any],
        *,
        new: dict[str, Any] | None = None,
    ) -> Row | None:
        """Create or update the row of `entry`; `new` is for a new row only."""
        row = model._default_manager.filter(slug=entry.slug).first()
        if row is not None and row.owner_id != self.owner.pk:
            taken = _("%(slug)r belongs to another user.") % {"slug": entry.slug}
            self.add_error(f"{path}.slug", taken)
            return None
        is_new = row is None
        if row is None:
            row = model(slug=entry.slug, owner=self.owner, **(new or {}))
        wanted = {**fields, "archived_at": None}
        if entry.visibility is not None and not self.inert:
            wanted["visibility"] = entry.visibility
        groups = self.find_groups(entry, row)
        known = {} if is_new else wanted
        changed = [k for k, v in known.items() if not has_same_value(row, k, v)]
        if is_new or changed:
            reached = row.connection_settings if isinstance(row, Provider) else ()
            for name, value in wanted.items():
                setattr(row, name, value)
            if not self.is_valid(path, row):
                return row if row.pk else None
            word = str(model._meta.verbose_name)
            self.note_change(path, word, row, *changed, is_new=is_new)
            self.save_row(row, reached)
        self.share_with_groups(path, row, groups)
        return row

    def save_row(self, row: Owned, reached: Any) -> None:
        """Save a row; a provider that was reached by other settings is untested."""
        if isinstance(row, Tool):
            save_tool(row, by=self.owner, note=NOTE)
            return
        if isinstance(row, Evaluator):
            save_evaluator(row, by=self.owner)
            return
        if isinstance(row, Provider):
            row.reset_test(unless=reached)
        row.save()
        if isinstance(row, Provider) and row.connection_settings != reached:
            transaction.on_commit(partial(end_outages, row))

    def find_groups(self, entry: AgentFileEntry, row: Owned) -> list[Group] | None:
        """Return the groups of the entry that exist here; None keeps those of the row.

        What is shared with nobody after all is listed.
        """
        if self.inert or entry.visibility != Visibility.GROUPS.value:
            return None
        groups = list(Group.objects.filter(name__in=entry.groups))
        known = {group.name for group in groups}
        self.missing += [
            _("%(slug)s needs the group %(name)r") % {"slug": entry.slug, "name": name}
            for name in entry.groups
            if name not in known
        ]
        if entry.groups:
            return groups
        if row.pk is None or not row.groups.exists():
            text = _("%(slug)s needs groups to be shared with")
            self.missing.append(text % {"slug": entry.slug})
        return None

    def share_with_groups(
        self, path: str, row: Owned, groups: list[Group] | None
    ) -> None:
        """Share the row with exactly these groups."""
        if groups is not None and set(row.groups.all()) != set(groups):
            row.groups.set(groups)
            word = str(row._meta.verbose_name)
            self.note_change(path, word, row, "groups")

    def note_change(
        self, path: str, word: str, row: Owned, *fields: str, is_new: bool = False
    ) -> None:
        """Record a created row, or changed fields; an inert import updates nothing."""
        said = f"{word} {row.slug}"
        self.changed_fields[said] += fields
        if is_new:
            self.created.append(said)
        elif self.inert and said not in self.created:
            self.different.append(row)
            self.add_error(
                f"{path}.slug",
                _(
                    "You already have a different %(kind)s %(slug)r. Use another slug "
                    "in the file."
                )
                % {"kind": word, "slug": row.slug},
            )
        elif said not in [*self.created, *self.updated]:
            self.updated.append(said)

    def is_valid(self, path: str, row: Owned) -> bool:
        try:
            row.clean_fields(exclude=["owner", *NOT_CLEANED.get(type(row), [])])
        except ValidationError as error:
            for name, messages in error.message_dict.items():
                self.add_error(f"{path}.{name}", " ".join(messages))
            return False
        return True

    def add_errors(self, path: str, mistakes: Iterable[FieldError]) -> None:
        for mistake in mistakes:
            self.add_error(f"{path}.{mistake.field}", mistake.message)


ImportedAgent = tuple[str, AgentEntry, Agent | None]
"""An agent of the file with its path and its row, None if it was refused."""


def sort_callees_first(agents: Sequence[ImportedAgent]) -> list[ImportedAgent]:
    """Return `agents`, called agents before their callers.

    The inputs of an agent, which its callers freeze, are those of its newest
    version.
    """
    left = {entry.slug: (path, entry, row) for path, entry, row in agents}
    ordered: list[ImportedAgent] = []

    def take(slug: str) -> None:
        found = left.pop(slug, None)
        if found is not None:
            for use in found[1].tools:
                take(use.agent or "")
            ordered.append(found)

    for agent in agents:
        take(agent[1].slug)
    return ordered


def has_same_value(row: Owned, name: str, value: Any) -> bool:
    there = getattr(row, name)
    if isinstance(row, Agent) and name == "executor":
        try:
            options = ExecutorOptions.model_validate(there)
        except ValueError:
            return False
        return options == ExecutorOptions.model_validate(value)
    return bool(there == value)


def get_agent_tool_key(use: AgentTool) -> tuple[Any, ...]:
    """Return what makes two uses equal."""
    return (use.tool_id, use.sub_agent_id, use.policy, use.overrides)


def find_path_in_file(path: str, entry: AgentEntry, problem: SpecProblem) -> str:
    parts = [int(p) if p.isdecimal() else p for p in problem.field.split(".")]
    if parts[:1] == ["tools"] and len(parts) > 1 and isinstance(parts[1], int):
        # Denied tools are not in the frozen agent, so indexes differ in the file.
        given = [i for i, use in enumerate(entry.tools) if use.policy != "deny"]
        return f"{path}.tools[{given[parts[1]]}]"
    return f"{path}.{format_error_path(parts)}"
