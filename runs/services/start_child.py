"""Starting the run of an agent that another agent called: once for each step."""

from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone

from runs import bell
from runs.models import Agent, AgentStep, Run
from runs.services.commits import raise_seq, refuse_if_cancelled
from runs.services.errors import NotAllowed
from runs.services.freeze_agent import variables_of_spec
from runs.services.held import Held
from runs.services.move import ancestors_of, announce
from runs.services.rows import insert, update
from runs.services.start_run import checked_inputs, freeze_newest, title_of
from tools.spec import ToolSpec


def start_child(run: Run, held: Held, step: AgentStep, spec: ToolSpec) -> None:
    """Start the child run of `step`, or do nothing where it has one.

    In a transaction of the caller, which begins with the fence. The newest published
    version of the agent runs, the draft where there is none. Raises `NotAllowed`,
    `InputsRefused` or `SpecRefused`, with a sentence for the model.
    """
    seq = raise_seq(held)
    refuse_if_cancelled(held)
    if Run.objects.filter(parent_step=step).exists():
        return
    agent = agent_to_call(spec, by=run.agent.owner)
    refuse_too_many(run, agent)
    frozen = freeze_newest(agent)
    names = variables_of_spec(frozen.spec)
    inputs = checked_inputs(frozen.spec, inputs_in(step.tool_input, names))
    child = Run(
        owner=run.owner,
        agent=agent,
        version=frozen.version,
        spec=frozen.row,
        parent_step=step,
        source=Run.Source.PARENT,
        is_test=run.is_test,
        title=title_of(inputs),
        inputs=inputs,
        created_at=timezone.now(),
    )
    insert(child, now=("queued_at", "rung_at"))
    bell.ring(child.pk)
    announce(child.pk)
    step.changed_seq = seq
    if step.status != AgentStep.Status.STARTED:
        step.status, step.started_at = AgentStep.Status.STARTED, datetime.now(UTC)
        step.attempts += 1
    update(step, ("status", "started_at", "attempts", "changed_seq"))
    announce(run.pk)


def agent_to_call(spec: ToolSpec, *, by: User) -> Agent:
    """Return the agent behind a tool; raise `NotAllowed` where `by` may not use it.

    `by` gave it to the calling agent: that agent's owner. Who merely runs the calling
    agent need not see this one.
    """
    rows = Agent.objects.select_related("owner", "provider", "prompt")
    agent = rows.filter(pk=spec.config.get("agent_id") or 0).first()
    if agent is None:
        raise NotAllowed(f"The agent {spec.name!r} does not exist any more.")
    if agent.archived_at is not None:
        raise NotAllowed(f"The agent {agent.name!r} was archived.")
    if not agent.owner.is_active:
        raise NotAllowed(
            f"The owner of the agent {agent.name!r} has no access any more."
        )
    if not Agent.objects.usable_by(by).filter(pk=agent.pk).exists():
        raise NotAllowed(
            f"The owner of this agent may not use the agent {agent.name!r} any more."
        )
    return agent


def refuse_too_many(run: Run, agent: Agent) -> None:
    """Raise `NotAllowed` where the run is too deep, or has called enough agents."""
    if len(ancestors_of(run)) >= settings.AGENT_DEPTH:
        raise NotAllowed(
            f"The agent {agent.name!r} was not asked: agents may call one another "
            f"{levels(settings.AGENT_DEPTH)} deep, and this run is at the last one. Do "
            "it without another agent."
        )
    if Run.objects.filter(parent_step__run=run).count() >= settings.CHILD_RUNS:
        raise NotAllowed(
            f"The agent {agent.name!r} was not asked: one run may call other agents "
            f"{settings.CHILD_RUNS} times, and it has. Go on with what there is."
        )


def levels(number: int) -> str:
    """Say how many levels."""
    return "1 level" if number == 1 else f"{number} levels"


def inputs_in(given: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the inputs of a run from what the model wrote."""
    if isinstance(given, dict):
        return given
    return {names[0]: given} if names else {}
