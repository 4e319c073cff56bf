"""The state of an agent's draft: when it was saved, how it differs from versions."""

from dataclasses import dataclass, field
from typing import NamedTuple

from runs.forms.agents.agent import AgentForm
from runs.models import Agent, AgentVersion
from runs.services.agents.publish import get_latest_version, matches_version
from runs.services.agents.save import get_draft_token
from runs.services.spec.freeze import variables_of_spec
from runs.views.agents.versions import list_changes_since, load_agent_state


class DraftFieldError(NamedTuple):
    """An error and its field; the field is empty for the whole agent."""

    field: str
    label: str
    text: str


@dataclass(frozen=True)
class DraftState:
    """The state of the draft, as shown at the top of the agent's page."""

    agent: Agent
    newest: AgentVersion | None = None
    difference_count: int = 0
    """Number of differences from the newest version."""
    is_published: bool = False
    """Whether the draft equals the newest version."""
    mistakes: list[DraftFieldError] = field(default_factory=list)
    unsaved_fields: list[str] = field(default_factory=list)
    """Labels of fields that were not stored."""
    is_refused: bool = False
    """Whether nothing was stored, because of errors."""
    has_conflict: bool = False
    """Whether this save was refused because a later draft was saved elsewhere."""
    seen: str | None = None
    """Token of a refused save; it must not count as the later draft's."""
    variables: tuple[str, ...] = ()
    """Variables that a run of the draft requires."""

    @property
    def token(self) -> str:
        """Token of the stored draft."""
        return get_draft_token(self.agent)

    @property
    def seen_token(self) -> str:
        """Token of the draft on the page, which saving, publishing and testing send."""
        return (self.seen or "none") if self.has_conflict else self.token

    @property
    def next_number(self) -> int:
        return self.newest.number + 1 if self.newest else 1


def get_draft_state(
    agent: Agent,
    form: AgentForm | None = None,
    *,
    is_refused: bool = False,
    has_conflict: bool = False,
    seen: str | None = None,
) -> DraftState:
    """Return the state of the stored draft, with the errors of `form`."""
    newest, spec = get_latest_version(agent), form.stored_spec if form else None
    draft = load_agent_state(agent, None, draft=spec)
    return DraftState(
        agent=agent,
        newest=newest,
        difference_count=len(list_changes_since(agent, newest, draft)),
        is_published=newest is not None and matches_version(newest, agent, draft.spec),
        mistakes=list_draft_errors(form) if form else [],
        unsaved_fields=[get_field_label(form, name) for name in form.unsaved_fields()]
        if form
        else [],
        is_refused=is_refused,
        has_conflict=has_conflict,
        seen=seen,
        variables=variables_of_spec(draft.spec),
    )


def list_draft_errors(form: AgentForm) -> list[DraftFieldError]:
    """Return the errors in the order of the form."""
    if not form.is_bound:
        return []
    found = [
        DraftFieldError(name, get_field_label(form, name), str(error))
        for name in form.fields
        for error in form.errors.get(name, [])
    ]
    return found + [
        DraftFieldError("", "", str(error)) for error in form.non_field_errors()
    ]


def get_field_label(form: AgentForm, name: str) -> str:
    return str(form.fields[name].label or name.capitalize())
