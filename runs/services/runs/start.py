"""Start a run: validate inputs, freeze the agent, insert one row, enqueue it."""

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from runs import wakeup
from runs.engine.parsing.clean import clean_text
from runs.engine.types import AgentSpec
from runs.models import Agent, AgentVersion, Conversation, Run, Schedule, Spec
from runs.services.errors import FieldError, InputsRefused, NotAllowed
from runs.services.runs.limit import check_run_limit
from runs.services.runs.select_turns import select_turns
from runs.services.spec.definition import uses_memory
from runs.services.spec.freeze import freeze_agent, validate_spec, variables_of_spec
from runs.store.fast_insert import insert_row
from runs.store.fast_select import select_row
from runs.store.history import extract_question
from runs.store.specs import get_or_create_spec, load_spec
from runs.store.transitions import notify_run_changed

MAX_INPUT_LENGTH = 1_000_000


@dataclass(frozen=True)
class FrozenAgent:
    """What a run runs."""

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
    frozen: FrozenAgent | None = None,
    keep_forever: bool = False,
) -> Run:
    """Return a new queued run.

    It runs the newest published version; the draft if there is none or if `draft`
    is set; or `frozen`. A run of an agent with memory belongs to a conversation, a
    new one by default. Raises `InputsRefused`, `SpecRefused`, `NotAllowed` or
    `TooManyRuns`; nothing is stored then.
    """
    if agent.archived_at is not None:
        raise NotAllowed(_("The agent is archived. Unarchive it to run it."))
    require_agent_access(agent, by=by)
    if source in (Run.Source.PAGE, Run.Source.API):
        check_run_limit(by)
    frozen = frozen or freeze_newest_version(agent, draft=draft)
    has_memory = uses_memory(agent, frozen.version)
    inputs = validate_inputs(frozen.spec, inputs)
    _require_own_conversation(conversation, agent=agent, by=by)
    turn_ids = (
        select_turns(frozen.spec, conversation)
        if conversation is not None and has_memory
        else []
    )
    title = build_run_title(inputs)
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
            keep_forever=keep_forever,
            title=title,
            inputs=inputs,
            turn_ids=turn_ids,
            created_at=timezone.now(),
        )
        insert_row(
            run, now=("queued_at", "enqueued_at")
        )  # one statement, one transaction
        wakeup.enqueue_run(run.pk)
        notify_run_changed(run.pk)
    return run


def require_agent_access(agent: Agent, *, by: User) -> None:
    """Raise `NotAllowed` if `by` may not use the agent."""
    if by.is_superuser or agent.owner_id == by.pk:
        return
    if not Agent.objects.visible_to(by).filter(pk=agent.pk).exists():
        raise NotAllowed(
            _(
                'You cannot use the agent "%(name)s". Ask its owner to share it with '
                "you."
            )
            % {"name": agent.name}
        )


def load_frozen_agent(run: Run) -> FrozenAgent:
    """Return what `run` runs; raise `SpecRefused` if it is no longer valid."""
    spec = load_spec(run.spec)
    validate_spec(spec)
    return FrozenAgent(spec, run.spec, run.version)


def freeze_newest_version(agent: Agent, *, draft: bool = False) -> FrozenAgent:
    """Return the newest published version; the draft if none or if `draft` is set."""
    version = None if draft else _get_newest_version(agent)
    if version is not None:
        return FrozenAgent(load_spec(version.spec), version.spec, version)
    spec = freeze_agent(agent)
    validate_spec(spec)
    return FrozenAgent(spec, get_or_create_spec(spec), None)


def _get_newest_version(agent: Agent) -> AgentVersion | None:
    return select_row(AgentVersion, ("spec",), newest_by="number", agent=agent.pk)


def validate_inputs(spec: AgentSpec, inputs: dict[str, Any]) -> dict[str, str]:
    """Return the inputs as text; raise `InputsRefused` with every error."""
    names = variables_of_spec(spec)
    errors = [
        FieldError(
            name, _('The agent does not have the input "%(name)s".') % {"name": name}
        )
        for name in inputs
        if name not in names
    ]
    for name in names:
        value = inputs.get(name)
        if value is None:
            message = _('The input "%(name)s" is missing.') % {"name": name}
        elif not isinstance(value, str | int | float):
            message = _('The input "%(name)s" must be text.') % {"name": name}
        elif name == "input" and not str(value).strip():
            message = _("Enter a message.")
        elif len(str(value)) > MAX_INPUT_LENGTH:
            message = _(
                'The input "%(name)s" is too long. Enter at most %(limit)s characters.'
            ) % {"name": name, "limit": MAX_INPUT_LENGTH}
        else:
            continue
        errors.append(FieldError(name, message))
    if errors:
        raise InputsRefused(errors)
    return {name: clean_text(str(inputs[name])) for name in names}


def build_run_title(inputs: dict[str, str]) -> str:
    """Return the first line of the message, for lists."""
    lines = extract_question(dict(inputs)).strip().splitlines()
    return lines[0][:200] if lines else ""


def _require_own_conversation(
    conversation: Conversation | None, *, agent: Agent, by: User
) -> None:
    if conversation is None:
        return
    if (conversation.agent_id, conversation.owner_id) != (agent.pk, by.pk):
        raise NotAllowed(
            _("The conversation belongs to another user or another agent.")
        )
