"""Starting a run: inputs checked, the agent frozen, one row, one bell."""

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from runs import bell
from runs.engine.clean import clean_text
from runs.engine.types import AgentSpec
from runs.models import Agent, AgentVersion, Conversation, Run, Schedule, Spec
from runs.services.choose_turns import choose_turns
from runs.services.definition import remembers
from runs.services.errors import FieldError, InputsRefused, NotAllowed
from runs.services.freeze_agent import (
    freeze_agent,
    refuse_flaws,
    spec_of,
    spec_row,
    variables_of_spec,
)
from runs.services.move import announce
from runs.services.prepared import Prepared
from runs.services.record import question_of
from runs.services.rows import insert

LONGEST_INPUT = 1_000_000

NEWEST = Prepared(
    lambda agent: (
        AgentVersion.objects.select_related("spec")
        .filter(agent=agent)
        .order_by("-number")[:1]
    ),
    int,
)


@dataclass(frozen=True)
class Frozen:
    """What a run is made of."""

    spec: AgentSpec
    row: Spec
    version: AgentVersion | None


def start_run(
    agent: Agent,
    *,
    by: User,
    inputs: dict[str, Any],
    conversation: Conversation | None = None,
    source: str = Run.Source.PAGE,
    schedule: Schedule | None = None,
    draft: bool = False,
    is_test: bool = False,
    frozen: Frozen | None = None,
) -> Run:
    """Return a new queued run.

    The newest published version runs; the draft where there is none, or if asked for;
    or just what is `frozen` already.
    A run of an agent with memory belongs to a conversation: to a new one, if none is
    given.
    Raises `InputsRefused`, `SpecRefused` or `NotAllowed`; nothing is stored then.
    """
    if agent.archived_at is not None:
        raise NotAllowed("The agent is archived. Take it out of the archive to run it.")
    refuse_stranger(agent, by=by)
    frozen = frozen or freeze_newest(agent, draft=draft)
    has_memory = remembers(agent, frozen.version)
    inputs = checked_inputs(frozen.spec, inputs)
    _refuse_another(conversation, agent=agent, by=by)
    turn_ids = (
        choose_turns(frozen.spec, conversation)
        if conversation is not None and has_memory
        else []
    )
    title = title_of(inputs)
    is_first = conversation is None and has_memory and source != Run.Source.PARENT
    with transaction.atomic() if is_first else nullcontext():
        if is_first:
            conversation = Conversation.objects.create(
                owner=by, agent=agent, title=title, is_test=is_test
            )
        run = Run(
            owner=by,
            agent=agent,
            version=frozen.version,
            spec=frozen.row,
            conversation=conversation,
            source=source,
            schedule=schedule,
            is_test=is_test,
            title=title,
            inputs=inputs,
            turn_ids=turn_ids,
            created_at=timezone.now(),
        )
        insert(run, now=("queued_at", "rung_at"))  # one statement, one transaction
        bell.ring(run.pk)
        announce(run.pk)
    return run


def refuse_stranger(agent: Agent, *, by: User) -> None:
    """Raise `NotAllowed` where `by` may not use the agent, or no longer."""
    if by.is_superuser or agent.owner_id == by.pk:
        return
    if not Agent.objects.visible_to(by).filter(pk=agent.pk).exists():
        raise NotAllowed(
            f"You may not use the agent {agent.name!r}. Its owner can share it with "
            "you."
        )


def frozen_of(run: Run) -> Frozen:
    """Return what `run` is made of; raise `SpecRefused` where that runs no more."""
    spec = spec_of(run.spec)
    refuse_flaws(spec)
    return Frozen(spec, run.spec, run.version)


def freeze_newest(agent: Agent, *, draft: bool = False) -> Frozen:
    """Return the newest published version; the draft if there is none, or asked for."""
    version = None if draft else NEWEST.first(agent.pk)
    if version is not None:
        return Frozen(spec_of(version.spec), version.spec, version)
    spec = freeze_agent(agent)
    refuse_flaws(spec)
    return Frozen(spec, spec_row(spec), None)


def checked_inputs(spec: AgentSpec, inputs: dict[str, Any]) -> dict[str, str]:
    """Return the inputs as texts; raise `InputsRefused` naming every wrong one."""
    names = variables_of_spec(spec)
    errors = [
        FieldError(name, f"The agent takes no input {name!r}.")
        for name in inputs
        if name not in names
    ]
    for name in names:
        value = inputs.get(name)
        if value is None:
            errors.append(FieldError(name, f"The input {name!r} is missing."))
        elif not isinstance(value, str | int | float):
            errors.append(FieldError(name, f"The input {name!r} must be a text."))
        elif name == "input" and not str(value).strip():
            errors.append(FieldError(name, "Ask or tell it something: it is empty."))
        elif len(str(value)) > LONGEST_INPUT:
            errors.append(
                FieldError(
                    name,
                    f"The input {name!r} has more than {LONGEST_INPUT} characters.",
                )
            )
    if errors:
        raise InputsRefused(errors)
    return {name: clean_text(str(inputs[name])) for name in names}


def title_of(inputs: dict[str, str]) -> str:
    """Return the first line of the question, for lists."""
    lines = question_of(dict(inputs)).strip().splitlines()
    return lines[0][:200] if lines else ""


def _refuse_another(
    conversation: Conversation | None, *, agent: Agent, by: User
) -> None:
    if conversation is None:
        return
    if (conversation.agent_id, conversation.owner_id) != (agent.pk, by.pk):
        raise NotAllowed("The conversation is somebody else's, or another agent's.")
