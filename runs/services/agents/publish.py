"""Publish an agent: its draft becomes a numbered version."""

from typing import NamedTuple

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from runs.engine.types import AgentSpec
from runs.evaluation.gate import GateResult
from runs.models import Agent, AgentVersion
from runs.services.agents.edit_sessions import end_edit_session
from runs.services.agents.save import get_draft_token
from runs.services.errors import (
    DraftConflict,
    FieldError,
    GateNotMet,
    SpecRefused,
    VersionConflict,
    VersionUnchanged,
    VersionUnreadable,
)
from runs.services.gates.digest import compute_gate_digest
from runs.services.gates.state import GateState, load_gate_state
from runs.services.runs.called_agents import find_called_specs
from runs.services.spec.definition import (
    build_agent_definition,
    get_agent_description,
    get_suggested_questions,
    uses_memory,
)
from runs.services.spec.freeze import freeze_agent, validate_spec
from runs.store.specs import (
    compute_spec_digest,
    dump_spec,
    get_or_create_spec,
    load_spec,
)
from tools.audit.write import write_entry
from tools.definition.freeze import list_lifted_approvals
from tools.text.visible_text import is_hidden

MIN_REASON_CHARS = 20
"""Of the reason to publish a draft that has not passed the gate."""


class PublishResult(NamedTuple):
    """The newest version, and whether this call created it."""

    version: AgentVersion
    is_new: bool


def publish_agent(agent: Agent, *, by: User | None, note: str = "") -> AgentVersion:
    """Return the new version, or the newest one if nothing has changed.

    Raises `SpecRefused` if the agent could not run.
    """
    return publish_draft(agent, by=by, note=note).version


def publish_draft(
    agent: Agent,
    *,
    by: User | None,
    note: str = "",
    seen: str | None = None,
    reason: str = "",
) -> PublishResult:
    """Publish the draft named by `seen`; raise `DraftConflict` if it has changed.

    Raises `SpecRefused` if the agent could not run, and `GateNotMet` if it has a gate
    that the draft has not passed; with a `reason` it is published and audited.
    """
    spec = freeze_agent(agent)
    validate_spec(spec)
    with transaction.atomic():
        stored = Agent.objects.select_for_update().get(pk=agent.pk)
        if seen is not None and get_draft_token(stored) != seen:
            raise DraftConflict
        end_edit_session(agent.pk)
        newest = get_latest_version(agent)
        if newest is not None and matches_version(newest, agent, spec):
            return PublishResult(newest, is_new=False)
        result = pass_gate(agent, spec, by=by, reason=reason)
        version = AgentVersion(
            number=newest.number + 1 if newest is not None else 1,
            spec=get_or_create_spec(spec),
            definition=build_agent_definition(agent).model_dump(mode="json"),
        )
        add_version(version, agent, by=by, note=note, result=result)
        return PublishResult(version, is_new=True)


def publish_again(
    version: AgentVersion,
    *,
    by: User,
    newest: int,
    note: str = "",
    reason: str = "",
) -> AgentVersion:
    """Publish what an older version has as a new version; the draft does not change.

    `newest` is the number of the version that it replaces. Raises `VersionConflict` if
    that is not, or no longer, the newest one; `VersionUnchanged` if it has the same;
    `SpecRefused` or `VersionUnreadable` if the version could not run; `GateNotMet` as
    `publish_draft` does.
    """
    agent = version.agent
    try:
        spec = load_spec(version.spec)
    except ValueError:
        raise VersionUnreadable(version.number) from None
    validate_spec(spec)
    refuse_lifted_approvals(version, spec)
    with transaction.atomic():
        Agent.objects.select_for_update().get(pk=agent.pk)
        replaced = get_latest_version(agent)
        assert replaced is not None
        if replaced.number != newest or replaced.pk == version.pk:
            raise VersionConflict(replaced.number)
        kept = (version.spec_id, version.definition)
        if kept == (replaced.spec_id, replaced.definition):
            raise VersionUnchanged(version.number, replaced.number)
        result = pass_gate(agent, spec, by=by, reason=reason, number=version.number)
        again = AgentVersion(
            number=replaced.number + 1,
            spec=version.spec,
            definition=version.definition,
        )
        note = note or _("Version %(number)d again") % {"number": version.number}
        add_version(again, agent, by=by, note=note, result=result)
        return again


def refuse_lifted_approvals(version: AgentVersion, spec: AgentSpec) -> None:
    """Raise `SpecRefused` if a tool of the version now requires an approval."""
    for name in list_lifted_approvals(spec.tools):
        message = _(
            '"%(tool)s" requires approval now, and version %(number)d calls it '
            "without. Restore version %(number)d to the draft, and publish the draft."
        ) % {"tool": name, "number": version.number}
        raise SpecRefused([FieldError("tools", message)])


def add_version(
    version: AgentVersion,
    agent: Agent,
    *,
    by: User | None,
    note: str,
    result: GateResult | None,
) -> None:
    version.agent, version.by, version.note = agent, by, note[:200]
    version.gate_result = result.model_dump(mode="json") if result else None
    version.save()


def pass_gate(
    agent: Agent,
    spec: AgentSpec,
    *,
    by: User | None,
    reason: str,
    number: int | None = None,
) -> GateResult | None:
    """Return what the gate says of the draft, or of a version; None without a gate.

    Raises `GateNotMet` unless it is met or there is a reason, which is audited.
    """
    state = load_gate_state(agent, spec)
    if state.gate is None:
        return None
    result = state.result or GateResult()
    if not state.allows_publishing:
        if sum(not is_hidden(char) for char in reason) < MIN_REASON_CHARS:
            if reason:
                raise GateNotMet(describe_short_reason())
            raise GateNotMet(describe_refusal(state, number))
        result = result.model_copy(update={"reason": reason})
        write_entry(
            "overrode", "gate", agent.name, number=state.gate.pk, by=by, note=reason
        )
    return result.model_copy(
        update={
            "requirements": compute_gate_digest(state.gate),
            "called_specs": find_called_specs(spec),
        }
    )


def describe_short_reason() -> str:
    text = _("Enter a reason of at least %(count)d characters.")
    return text % {"count": MIN_REASON_CHARS}


def describe_refusal(state: GateState, number: int | None) -> str:
    """Say why the draft, or the version with a number, is not published."""
    if state.status == "running":
        return _("Not published: the experiment of the gate has not ended yet.")
    if number is None:
        return _describe_refused_draft(state)
    text = (
        _(
            "Not published: version %(number)d does not meet the gate. To publish it "
            "anyway, enter a reason."
        )
        if state.status == "not_met"
        else _(
            "Not published: the gate requires an experiment with version %(number)d. "
            "Run it, or publish anyway with a reason."
        )
    )
    return text % {"number": number}


def _describe_refused_draft(state: GateState) -> str:
    if state.status == "not_met":
        return _(
            "Not published: the draft does not meet the gate. Fix the draft, or "
            "publish anyway with a reason."
        )
    return _(
        "Not published: the gate requires an experiment with this draft. Run "
        "it, or publish anyway with a reason."
    )


def get_latest_version(agent: Agent) -> AgentVersion | None:
    """Return the version that runs of `agent` use."""
    return agent.versions.select_related("spec").first()


def is_published(agent: Agent) -> bool:
    newest = get_latest_version(agent)
    return newest is not None and matches_version(newest, agent, freeze_agent(agent))


def matches_version(version: AgentVersion, agent: Agent, spec: AgentSpec) -> bool:
    """Whether publishing the draft, frozen as `spec`, would repeat `version`."""
    kept = (
        uses_memory(agent, version),
        get_agent_description(agent, version),
        get_suggested_questions(agent, version),
    )
    return version.spec.digest == compute_spec_digest(dump_spec(spec)) and kept == (
        agent.memory,
        agent.description,
        tuple(agent.suggested_questions),
    )
