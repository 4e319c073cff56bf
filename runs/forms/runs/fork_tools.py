"""The tools of a fork: those the run has, those one may add, and what was chosen."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from runs.engine.types import AgentSpec
from runs.models import Run
from runs.services.agents.call_graph import find_callable_agents
from runs.services.spec.freeze import (
    AGENT_KIND,
    DEFAULT_AGENT_DESCRIPTION,
    build_agent_tool_spec,
)
from tools.definition.freeze import freeze_tool
from tools.models import Tool
from tools.spec import ToolSpec

MAX_TOOLS = 60
"""Tools beside the run's own that are offered."""
MAX_AGENTS = 30


@dataclass(frozen=True)
class ForkToolRow:
    """A tool, and what the fork may do with it."""

    spec: ToolSpec
    permission: str
    """allow, ask or off."""

    @property
    def is_agent(self) -> bool:
        return self.spec.kind == AGENT_KIND

    @property
    def description(self) -> str:
        """What the model reads; of an agent without a description, its translation."""
        text = self.spec.description
        begin, end = DEFAULT_AGENT_DESCRIPTION.split("{name}")
        if not (self.is_agent and text.startswith(begin) and text.endswith(end)):
            return text
        name = text.removeprefix(begin).removesuffix(end)
        return _("Asks the agent %(agent)s and returns its answer.") % {"agent": name}

    @property
    def field(self) -> str:
        """Name of the radio buttons."""
        return f"{'agent' if self.is_agent else 'tool'}-{self.spec.name}"


class ForkTools:
    """What a fork's form offers of tools and agents, with what was sent."""

    def __init__(
        self,
        spec: AgentSpec,
        typed: Mapping[str, str],
        *,
        run: Run,
        user: User,
        may_edit: bool,
    ) -> None:
        self.spec, self.typed = spec, typed
        self.run, self.user, self.may_edit = run, user, may_edit

    @property
    def are_changed(self) -> bool:
        """Whether another choice was sent than the run has."""
        if not self.typed:
            return False
        known = {tool.name: current_permission(tool) for tool in self.spec.tools}
        return any(
            known.get(row.spec.name, "off") != row.permission for row in self.rows()
        )

    def rows(self) -> list[ForkToolRow]:
        """Return the run's tools, then the others one may add."""
        rows = [ForkToolRow(tool, current_permission(tool)) for tool in self.spec.tools]
        known = {tool.name for tool in self.spec.tools}
        others = [*self._other_tools(), *self._other_agents()]
        rows += [ForkToolRow(s, "off") for s in others if s.name not in known]
        return [replace(row, permission=self._typed_permission(row)) for row in rows]

    def edited_tools(self) -> tuple[ToolSpec, ...] | None:
        """Return the selected tools; None if they are those of the run."""
        rows = [row for row in self.rows() if row.permission != "off"]
        new = tuple(
            row.spec.model_copy(update={"asks": row.permission == "ask"})
            for row in rows
        )
        return None if new == self.spec.tools else new

    def _typed_permission(self, row: ForkToolRow) -> str:
        typed = self.typed.get(row.field, "")
        return typed if typed in {"allow", "ask", "off"} else row.permission

    def _other_tools(self) -> Iterator[ToolSpec]:
        if not self.may_edit:
            return
        theirs = Tool.objects.usable_by(self.run.agent.owner)
        mine = Tool.objects.usable_by(self.user).filter(pk__in=theirs.values("pk"))
        have = [tool.tool_id for tool in self.spec.tools if tool.tool_id]
        for tool in mine.exclude(pk__in=have).order_by("name")[:MAX_TOOLS]:
            yield freeze_tool(tool)

    def _other_agents(self) -> Iterator[ToolSpec]:
        if self.may_edit:
            have = [tool.config.get("agent_id") for tool in self.spec.tools]
            rows = find_callable_agents(self.run.agent, self.user).select_related(
                "prompt"
            )
            for agent in rows.exclude(pk__in=filter(None, have))[:MAX_AGENTS]:
                yield build_agent_tool_spec(agent)


def current_permission(tool: ToolSpec) -> str:
    return "ask" if tool.asks else "allow"
