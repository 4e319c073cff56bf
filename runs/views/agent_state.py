"""How the draft of an agent stands: saved when, how far from what is published."""

from dataclasses import dataclass, field
from typing import NamedTuple

from django.utils import timezone

from runs.forms.agent import AgentForm
from runs.models import Agent, AgentVersion
from runs.services.freeze_agent import variables_of_spec
from runs.services.publish_agent import holds, newest_of
from runs.services.save_agent import token_of
from runs.views.agent_versions import changed_since, state_of


class Mistake(NamedTuple):
    """A sentence, and the field it belongs to; empty for the whole agent."""

    field: str
    label: str
    text: str


@dataclass(frozen=True)
class DraftState:
    """What the head of the agent's page says about the draft."""

    agent: Agent
    newest: AgentVersion | None = None
    places: int = 0
    """In which it differs from the newest version, as far as they are shown."""
    is_published: bool = False
    """Whether runs use the draft as it is."""
    mistakes: list[Mistake] = field(default_factory=list)
    unstored: list[str] = field(default_factory=list)
    """Names of fields that were not stored."""
    has_moved: bool = False
    """A later draft was saved elsewhere; this one was refused."""
    seen: str | None = None
    """What a refused save had seen; it must not pass for the later draft."""
    variables: tuple[str, ...] = ()
    """What a run of the draft is asked for."""

    @property
    def token(self) -> str:
        """What the next save must bring."""
        return token_of(self.agent)

    @property
    def next_number(self) -> int:
        """The number that publishing would give."""
        return self.newest.number + 1 if self.newest else 1

    @property
    def is_fresh(self) -> bool:
        """Whether it was saved just now."""
        return (timezone.now() - self.agent.updated_at).total_seconds() < 5


def draft_state(
    agent: Agent,
    form: AgentForm | None = None,
    *,
    has_moved: bool = False,
    seen: str | None = None,
) -> DraftState:
    """Return the state of the stored draft, with what is wrong in `form`."""
    newest, draft = newest_of(agent), state_of(agent, None)
    return DraftState(
        agent=agent,
        newest=newest,
        places=len(changed_since(agent, newest, draft)),
        is_published=newest is not None and holds(newest, agent, draft.spec),
        mistakes=mistakes_of(form) if form else [],
        unstored=[label_of(form, name) for name in form.unstored()] if form else [],
        has_moved=has_moved,
        seen=seen,
        variables=variables_of_spec(draft.spec),
    )


def mistakes_of(form: AgentForm) -> list[Mistake]:
    """Return what is wrong, in the order of the form."""
    if not form.is_bound:
        return []
    found = [
        Mistake(name, label_of(form, name), str(error))
        for name in form.fields
        for error in form.errors.get(name, [])
    ]
    return found + [Mistake("", "", str(error)) for error in form.non_field_errors()]


def label_of(form: AgentForm, name: str) -> str:
    """Return what a field is called on the page."""
    return str(form.fields[name].label or name.capitalize())
