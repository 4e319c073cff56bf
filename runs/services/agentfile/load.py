"""Import an agent file: all of it or nothing, and twice is the same as once."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction

from runs.engine.check import Problem, problems_of
from runs.engine.types import ExecutorOptions
from runs.llm.key_variables import is_usual_place
from runs.models import Agent, AgentTool, PromptTemplate, Provider
from runs.services.agentfile import (
    AgentEntry,
    AgentFile,
    Entry,
    PromptEntry,
    ProviderEntry,
    ToolEntry,
    ToolUse,
)
from runs.services.agentfile_checks import (
    prompt_mistakes,
    provider_mistakes,
    tool_mistakes,
)
from runs.services.agentfile_text import AgentFileRefused, path_of, read_agentfile
from runs.services.errors import AgentCircle, FieldError
from runs.services.find_circle import circle_of
from runs.services.freeze_agent import freeze_agent
from runs.services.publish_agent import publish_agent
from tools.errors import ToolFailed
from tools.models import Credential, McpServer, Tool
from tools.overrides import loosenings, read_overrides
from tools.ownership import Owned
from tools.registry import find_function
from tools.services import save_tool

Row = TypeVar("Row", bound=Owned)

NOTE = "Imported from an agent file"


class Imported(NamedTuple):
    """What an import did, as `kind slug` each."""

    created: list[str]
    updated: list[str]
    published: list[str]
    missing: tuple[str, ...] = ()
    """What drafts still need, each as the rest of a sentence."""


def import_agentfile(text: str, owner: User, *, inert: bool = False) -> Imported:
    """Make or update what the file says, for `owner`; raise `AgentFileRefused`.

    The operator's import publishes agents and enables tools. An `inert` one, of a file
    from anywhere, makes drafts only: all is private, tools are switched off and get no
    credentials, agents are unpublished, and nothing that is there already is changed.
    What such a tool still needs is named, not refused.
    """
    file = read_agentfile(text)
    with transaction.atomic():
        work = Import(owner=owner, inert=inert)
        work.take(file)
        if work.errors:
            raise AgentFileRefused(work.errors)
    return Imported(work.created, work.updated, work.published, tuple(work.missing))


@dataclass
class Import:
    """One import under way."""

    owner: User
    inert: bool
    errors: list[FieldError] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    published: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def take(self, file: AgentFile) -> None:
        """Store all parts in the order in which they name one another."""
        for path, provider in self.once("providers", file.providers):
            self.put_provider(path, provider)
        for path, prompt in self.once("prompts", file.prompts):
            self.put_prompt(path, prompt)
        for path, tool in self.once("tools", file.tools):
            self.put_tool(path, tool)
        agents = [
            (path, entry, self.put_agent(path, entry))
            for path, entry in self.once("agents", file.agents)
        ]
        for path, entry, agent in agents:  # they may use one another
            if agent is not None:
                self.put_uses(path, entry, agent)
        for path, entry, agent in agents:
            if agent is not None:
                self.check_circle(path, entry, agent)
        for path, entry, agent in called_first(agents):
            if agent is not None and not self.errors:
                self.check_and_publish(path, entry, agent)

    E = TypeVar("E", bound=Entry)

    def once(self, kind: str, entries: Sequence[E]) -> Iterable[tuple[str, E]]:
        """Yield each entry with its place; refuse a slug that is there twice."""
        seen: set[str] = set()
        for index, entry in enumerate(entries):
            path = f"{kind}[{index}]"
            if entry.slug in seen:
                self.refuse(f"{path}.slug", f"{entry.slug!r} is there twice.")
            seen.add(entry.slug)
            yield path, entry

    def refuse(self, path: str, message: str) -> None:
        """Note a mistake; nothing of the file will be stored."""
        self.errors.append(FieldError(path, message))

    def put_provider(self, path: str, entry: ProviderEntry) -> None:
        """Store a provider; its key and headers are left alone."""
        fields = entry.model_dump(exclude={"slug", "visibility"})
        fields["name"] = entry.name or entry.slug
        self.note(path, provider_mistakes(entry))
        if entry.key_env:
            self.check_variable(path, entry)
        self.put(Provider, path, entry, fields)

    def check_variable(self, path: str, entry: ProviderEntry) -> None:
        """Refuse a variable that would not be read, or not go where it belongs.

        A file from anywhere names its own addresses, so of those only a kind's usual
        variable is taken, for the kind's own service.
        """
        may = Provider(owner=self.owner).may_read(entry.key_env)
        if self.inert and not is_usual_place(
            entry.kind, base_url=entry.base_url, name=entry.key_env
        ):
            may = False
        if not may:
            self.refuse(
                f"{path}.key_env",
                f"The key cannot be read from {entry.key_env!r} here. Leave key_env "
                "out and type the key in, or let an administrator own the provider and "
                "the operator list the variable in AGENTSITE_KEY_VARIABLES.",
            )

    def put_prompt(self, path: str, entry: PromptEntry) -> None:
        """Store a prompt."""
        fields = entry.model_dump(mode="json", exclude={"slug", "visibility"})
        fields["name"] = entry.name or entry.slug
        fields["template"] = entry.template or ""
        self.note(path, prompt_mistakes(entry))
        self.put(PromptTemplate, path, entry, fields)

    def put_tool(self, path: str, entry: ToolEntry) -> None:
        """Store a tool; what it leaves out comes from the function, if it is one."""
        fields = entry.model_dump(mode="json", exclude={"slug", "visibility"})
        careful = Tool.Approval.SIDE_EFFECTS if self.inert else Tool.Approval.NEVER
        defaults: dict[str, Any] = {
            "name": entry.slug,
            "description": "",
            "effect": Tool.Effect.SIDE_EFFECT,
            "approval": careful,
            "at_expiry": "",
            "return_direct": False,
            "timeout": 60.0,
            **self.declared(path, entry),
        }
        for name, value in defaults.items():
            if fields[name] is None:
                fields[name] = value
        if self.inert:
            self.leave_out(entry, fields)
        else:
            fields["credential"] = self.named(Credential, path, "credential", entry)
            fields["mcp_server"] = self.named(McpServer, path, "mcp_server", entry)
            fields["enabled"] = True
        self.note(path, self.mistakes_of(entry, fields))
        self.put(Tool, path, entry, fields, new={"enabled": not self.inert})

    def leave_out(self, entry: ToolEntry, fields: dict[str, Any]) -> None:
        """Take away what a file must not choose for a person, and name it."""
        for name, word in (("credential", "credential"), ("mcp_server", "MCP server")):
            wanted = fields.pop(name)
            row = Tool.objects.filter(slug=entry.slug, owner=self.owner).first()
            if wanted is not None and getattr(row, name, None) is None:
                self.missing.append(f"{entry.slug} needs the {word} {wanted!r}")

    def mistakes_of(
        self, entry: ToolEntry, fields: dict[str, Any]
    ) -> Iterator[FieldError]:
        """Yield what is wrong with a tool; a draft may name a function that is away."""
        for mistake in tool_mistakes(entry, fields):
            is_away = entry.kind == "function" and mistake.field == "config"
            if not (self.inert and is_away):
                yield mistake

    def declared(self, path: str, entry: ToolEntry) -> dict[str, Any]:
        """Return what a registered function says of itself."""
        if entry.kind != "function":
            return {}
        try:
            function = find_function(str(entry.config.get("function", "")))
        except ToolFailed as error:
            if self.inert:
                wanted = str(entry.config.get("function", ""))
                self.missing.append(f"{entry.slug} needs the function {wanted!r}")
            else:
                self.refuse(f"{path}.config.function", str(error))
            return {}
        return {
            "name": function.name,
            "description": function.description,
            "effect": function.effect,
            "args_schema": function.args_schema,
            "return_direct": function.return_direct,
            "timeout": function.timeout,
        }

    def put_agent(self, path: str, entry: AgentEntry) -> Agent | None:
        """Store an agent without its tools."""
        provider = self.usable(Provider, f"{path}.provider", entry.provider)
        prompt = None
        if entry.prompt is not None:
            prompt = self.usable(PromptTemplate, f"{path}.prompt", entry.prompt)
        fields = entry.model_dump(
            mode="json", exclude={"slug", "visibility", "tools", "executor"}
        )
        fields |= {
            "name": entry.name or entry.slug,
            "provider": provider,
            "prompt": prompt,
            "executor": entry.executor.model_dump(mode="json", exclude_unset=True),
        }
        return self.put(Agent, path, entry, fields) if provider else None

    def put_uses(self, path: str, entry: AgentEntry, agent: Agent) -> None:
        """Give the agent exactly these tools, in this order."""
        wanted: list[AgentTool] = []
        for index, use in enumerate(entry.tools):
            row = self.use_of(f"{path}.tools[{index}]", use, agent)
            if row is None:
                continue
            if shape_of_use(row)[:2] in [shape_of_use(other)[:2] for other in wanted]:
                self.refuse(f"{path}.tools[{index}]", "The agent has it twice.")
                continue
            row.position = index
            wanted.append(row)
        there = list(agent.uses.all())
        if [shape_of_use(row) for row in there] == [shape_of_use(r) for r in wanted]:
            return
        self.changes(f"{path}.tools", "agent", agent, is_new=False)
        agent.uses.all().delete()
        AgentTool.objects.bulk_create(wanted)

    def use_of(self, path: str, use: ToolUse, agent: Agent) -> AgentTool | None:
        """Return the row of one tool or agent in the hands of `agent`."""
        more = {"policy": use.policy, "overrides": use.overrides}
        if use.tool is not None:
            tool = self.usable(Tool, path, use.tool)
            if tool is None:
                return None
            for field, told in loosenings(read_overrides(use.overrides), tool):
                self.refuse(f"{path}.overrides.{field}", told)
            return AgentTool(agent=agent, tool=tool, **more)
        sub_agent = self.usable(Agent, path, use.agent or "")
        if sub_agent == agent:
            self.refuse(path, "An agent cannot be its own tool.")
            return None
        return (
            AgentTool(agent=agent, sub_agent=sub_agent, **more) if sub_agent else None
        )

    def check_circle(self, path: str, entry: AgentEntry, agent: Agent) -> None:
        """Refuse an agent that would call itself through others."""
        uses = [(index, use) for index, use in enumerate(entry.tools) if use.agent]
        for index, use in uses:
            rows = agent.uses.filter(sub_agent__slug=use.agent)
            names = circle_of(agent, rows.values_list("sub_agent", flat=True))
            if names:
                self.refuse(f"{path}.tools[{index}]", str(AgentCircle(names)))

    def check_and_publish(self, path: str, entry: AgentEntry, agent: Agent) -> None:
        """Refuse what could not run; publish where something has changed."""
        problems = problems_of(freeze_agent(agent))
        for problem in problems:
            self.refuse(place_in_file(path, entry, problem), problem.message)
        if problems or self.inert:
            return
        before = agent.versions.first()
        if publish_agent(agent, by=self.owner, note=NOTE) != before:
            self.published.append(f"agent {agent.slug}")

    def named(
        self, model: type[Row], path: str, name: str, entry: ToolEntry
    ) -> Row | None:
        """Return what the entry refers to in its field `name`."""
        slug = getattr(entry, name)
        return None if slug is None else self.usable(model, f"{path}.{name}", slug)

    def usable(self, model: type[Row], path: str, slug: str) -> Row | None:
        """Return the row `slug`, if the owner may use it; note a mistake if not."""
        rows: Any = model._default_manager
        # A tool of an inert import is off until a person has looked at it.
        row: Row | None = (
            rows.visible_to(self.owner).filter(archived_at=None, slug=slug).first()
        )
        if row is None:
            word = model._meta.verbose_name
            self.refuse(
                path, f"There is no {word} {slug!r} in the file or in your hands."
            )
        return row

    def put(
        self,
        model: type[Row],
        path: str,
        entry: Entry,
        fields: dict[str, Any],
        *,
        new: dict[str, Any] | None = None,
    ) -> Row | None:
        """Make or update the row of `entry`; `new` is for a new one only."""
        row = model._default_manager.filter(slug=entry.slug).first()
        if row is not None and row.owner_id != self.owner.pk:
            self.refuse(f"{path}.slug", f"{entry.slug!r} belongs to another user.")
            return None
        is_new = row is None
        if row is None:
            row = model(slug=entry.slug, owner=self.owner, **(new or {}))
        wanted = {**fields, "archived_at": None}
        if entry.visibility is not None and not self.inert:
            wanted["visibility"] = entry.visibility
        if not is_new and all(same(row, k, v) for k, v in wanted.items()):
            return row
        reached = row.reach if isinstance(row, Provider) else ()
        for name, value in wanted.items():
            setattr(row, name, value)
        if self.is_valid(path, row):
            self.changes(path, str(model._meta.verbose_name), row, is_new=is_new)
            if isinstance(row, Tool):
                save_tool(row, by=self.owner, note=NOTE)
            else:
                if isinstance(row, Provider):
                    row.forget_test(unless=reached)
                row.save()
        return row if row.pk else None

    def changes(self, path: str, word: str, row: Owned, *, is_new: bool) -> None:
        """Note what becomes of the row; an inert import changes nothing there is."""
        said = f"{word} {row.slug}"
        if is_new:
            self.created.append(said)
        elif self.inert and said not in self.created:
            self.refuse(
                f"{path}.slug",
                f"You have a {word} {row.slug!r} that is different. "
                "Give this one another slug in the file.",
            )
        elif said not in [*self.created, *self.updated]:
            self.updated.append(said)

    def is_valid(self, path: str, row: Owned) -> bool:
        """Note what the row's own fields refuse."""
        try:
            row.clean_fields(exclude=["owner"])
        except ValidationError as error:
            for name, messages in error.message_dict.items():
                self.refuse(f"{path}.{name}", " ".join(messages))
            return False
        return True

    def note(self, path: str, mistakes: Iterable[FieldError]) -> None:
        """Note mistakes of one entry."""
        for mistake in mistakes:
            self.refuse(f"{path}.{mistake.field}", mistake.message)


Put = tuple[str, AgentEntry, Agent | None]
"""An agent of the file with its place and its row, None where it was refused."""


def called_first(agents: Sequence[Put]) -> list[Put]:
    """Return `agents`, those that others call before their callers.

    An agent's inputs, which its callers freeze, are those of its newest version.
    """
    left = {entry.slug: (path, entry, row) for path, entry, row in agents}
    ordered: list[Put] = []

    def take(slug: str) -> None:
        found = left.pop(slug, None)
        if found is not None:
            for use in found[1].tools:
                take(use.agent or "")
            ordered.append(found)

    for _, entry, _ in agents:
        take(entry.slug)
    return ordered


def same(row: Owned, name: str, value: Any) -> bool:
    """Whether the row has this value already."""
    there = getattr(row, name)
    if isinstance(row, Agent) and name == "executor":
        try:
            options = ExecutorOptions.model_validate(there)
        except ValueError:
            return False
        return options == ExecutorOptions.model_validate(value)
    return bool(there == value)


def shape_of_use(use: AgentTool) -> tuple[Any, ...]:
    """Return what makes two uses equal; their order counts, not their numbers."""
    return (use.tool_id, use.sub_agent_id, use.policy, use.overrides)


def place_in_file(path: str, entry: AgentEntry, problem: Problem) -> str:
    """Return where in the file a flaw of the frozen agent was written."""
    parts = [int(p) if p.isdecimal() else p for p in problem.field.split(".")]
    if parts[:1] == ["tools"] and len(parts) > 1 and isinstance(parts[1], int):
        # Denied tools are not in the frozen agent, so the file counts otherwise.
        given = [i for i, use in enumerate(entry.tools) if use.policy != "deny"]
        return f"{path}.tools[{given[parts[1]]}]"
    return f"{path}.{path_of(parts)}"
