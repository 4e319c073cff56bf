"""Start the child run of an agent that another agent called: once per step."""

from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone

from runs import wakeup
from runs.engine.types import ToolMode
from runs.models import Agent, AgentStep, Run
from runs.services.errors import NotAllowed
from runs.services.runs.called_agents import freeze_child
from runs.services.runs.start import (
    build_run_title,
    freeze_tool_mode,
    validate_inputs,
)
from runs.services.spec.freeze import variables_of_spec
from runs.services.tool_modes.select_mode import get_tool_mode
from runs.store.claims import ClaimedRun
from runs.store.commits import increment_seq, raise_if_canceled
from runs.store.fast_insert import insert_row, update_row
from runs.store.limits import build_limit_columns
from runs.store.trace_ids import build_tool_traceparent
from runs.store.transitions import get_ancestor_ids, notify_run_changed
from tools.spec import ToolSpec


def start_child_run(
    run: Run, claim: ClaimedRun, step: AgentStep, spec: ToolSpec
) -> None:
    """Start the child run of `step`; do nothing if it has one.

    In a transaction of the caller, which begins with the fence. Runs the newest
    published version of the agent, or the draft if there is none; in an experiment,
    what that was when the experiment was created. Raises
    `NotAllowed`, `InputsRefused` or `SpecRefused`, with a message for the model.
    """
    seq = increment_seq(claim)
    raise_if_canceled(claim)
    if Run.objects.filter(parent_step=step).exists():
        return
    agent = get_callable_agent(spec, by=run.agent.owner)
    check_child_limits(run, agent)
    frozen = freeze_child(run, agent)
    if run.tool_mode:
        frozen = freeze_tool_mode(frozen, get_child_mode(run))
    names = variables_of_spec(frozen.spec)
    inputs = validate_inputs(frozen.spec, parse_child_inputs(step.tool_input, names))
    child = Run(
        owner=run.owner,
        agent=agent,
        version=frozen.version,
        spec=frozen.row,
        parent_step=step,
        source=Run.Source.PARENT,
        queue=run.queue,
        **build_limit_columns(frozen.spec),
        is_test=run.is_test,
        tool_mode=run.tool_mode,
        keep_forever=run.keep_forever,
        title=build_run_title(inputs),
        inputs=inputs,
        traceparent=build_tool_traceparent(run, step.index),
        created_at=timezone.now(),
    )
    insert_row(child, now=("queued_at", "enqueued_at"))
    wakeup.enqueue_run(child.pk, queue=child.queue)
    notify_run_changed(child.pk)
    step.changed_seq = seq
    if step.status != AgentStep.Status.STARTED:
        step.status, step.started_at = AgentStep.Status.STARTED, datetime.now(UTC)
        step.attempts += 1
    update_row(step, ("status", "started_at", "attempts", "changed_seq"))
    notify_run_changed(run.pk)


def get_child_mode(run: Run) -> ToolMode:
    """Return the mode of a child: only a run that holds calls back has children."""
    mode = get_tool_mode(run)
    if mode is None or mode.kind != "hold_back":
        raise NotAllowed("A replay starts no other runs.")
    return mode


def get_callable_agent(spec: ToolSpec, *, by: User) -> Agent:
    """Return the agent behind a tool; raise `NotAllowed` if `by` may not use it.

    `by` is the owner of the calling agent. Other users who run the calling agent
    need no access to this one.
    """
    rows = Agent.objects.select_related("owner", "provider", "prompt")
    agent = rows.filter(pk=spec.config.get("agent_id") or 0).first()
    if agent is None:
        raise NotAllowed(f"The agent {spec.name!r} no longer exists.")
    if agent.archived_at is not None:
        raise NotAllowed(f"The agent {agent.name!r} is archived.")
    if not agent.owner.is_active:
        raise NotAllowed(
            f"The account of the owner of the agent {agent.name!r} is disabled."
        )
    if not Agent.objects.usable_by(by).filter(pk=agent.pk).exists():
        raise NotAllowed(
            f"The owner of this agent can no longer use the agent {agent.name!r}."
        )
    return agent


def check_child_limits(run: Run, agent: Agent) -> None:
    """Raise `NotAllowed` if the run is too deep or has called too many agents."""
    if len(get_ancestor_ids(run)) >= settings.AGENT_DEPTH:
        raise NotAllowed(
            f"The agent {agent.name!r} was not called: agents may call one another "
            f"{format_levels(settings.AGENT_DEPTH)} deep, and this run is at the last "
            "level. Continue without another agent."
        )
    if Run.objects.filter(parent_step__run=run).count() >= settings.CHILD_RUNS:
        raise NotAllowed(
            f"The agent {agent.name!r} was not called: a run may call other agents "
            f"{settings.CHILD_RUNS} times, and it has. Continue with what you have."
        )


def format_levels(number: int) -> str:
    return "1 level" if number == 1 else f"{number} levels"


def parse_child_inputs(given: Any, names: tuple[str, ...]) -> dict[str, Any]:
    if isinstance(given, dict):
        return given
    return {names[0]: given} if names else {}
