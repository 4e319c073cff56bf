"""The tools of a fork: those the run has, those one may add, and what was chosen."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from django.contrib.auth.models import User

from runs.engine.types import AgentSpec
from runs.models import Run
from runs.services.callable_agents import callable_agents
from runs.services.freeze_agent import AGENT_KIND, agent_tool_spec
from tools.models import Tool
from tools.services.tool_spec_of import tool_spec_of
from tools.spec import ToolSpec

MOST_TOOLS = 60
"""Tools beside the run's own that are offered."""
MOST_AGENTS = 30


@dataclass(frozen=True)
class ToolRow:
    """A tool, and what the fork may do with it."""

    spec: ToolSpec
    chosen: str
    """allow, ask or off."""

    @property
    def is_agent(self) -> bool:
        """Whether it is another agent."""
        return self.spec.kind == AGENT_KIND

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
        known = {tool.name: choice_of(tool) for tool in self.spec.tools}
        return any(known.get(row.spec.name, "off") != row.chosen for row in self.rows())

    def rows(self) -> list[ToolRow]:
        """Return the run's tools, then the others one may add."""
        rows = [ToolRow(tool, choice_of(tool)) for tool in self.spec.tools]
        known = {tool.name for tool in self.spec.tools}
        others = [*self._others(), *self._other_agents()]
        rows += [ToolRow(s, "off") for s in others if s.name not in known]
        return [replace(row, chosen=self._typed(row)) for row in rows]

    def edit(self) -> tuple[ToolSpec, ...] | None:
        """Return the chosen tools; None where they are those of the run."""
        rows = [row for row in self.rows() if row.chosen != "off"]
        new = tuple(
            row.spec.model_copy(update={"asks": row.chosen == "ask"}) for row in rows
        )
        return None if new == self.spec.tools else new

    def _typed(self, row: ToolRow) -> str:
        typed = self.typed.get(row.field, "")
        return typed if typed in {"allow", "ask", "off"} else row.chosen

    def _others(self) -> Iterator[ToolSpec]:
        if not self.may_edit:
            return
        theirs = Tool.objects.usable_by(self.run.agent.owner)
        mine = Tool.objects.usable_by(self.user).filter(pk__in=theirs.values("pk"))
        have = [tool.tool_id for tool in self.spec.tools if tool.tool_id]
        for tool in mine.exclude(pk__in=have).order_by("name")[:MOST_TOOLS]:
            yield tool_spec_of(tool)

    def _other_agents(self) -> Iterator[ToolSpec]:
        if self.may_edit:
            have = [tool.config.get("agent_id") for tool in self.spec.tools]
            rows = callable_agents(self.run.agent, self.user).select_related("prompt")
            for agent in rows.exclude(pk__in=filter(None, have))[:MOST_AGENTS]:
                yield agent_tool_spec(agent)


def choice_of(tool: ToolSpec) -> str:
    """Return what the run may do with a tool of its own."""
    return "ask" if tool.asks else "allow"
