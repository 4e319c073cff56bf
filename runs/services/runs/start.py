"""Start a run: validate inputs, freeze the agent, insert one row, enqueue it."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from runs import wakeup
from runs.engine.parsing.clean import clean_text
from runs.engine.transcript import estimate_tokens
from runs.engine.types import AgentSpec, HistoryTurn, ToolMode
from runs.models import (
    Agent,
    AgentVersion,
    Conversation,
    ProviderModel,
    Run,
    Schedule,
    Spec,
)
from runs.services.errors import FieldError, InputsRefused, NotAllowed, VersionNotFound
from runs.services.runs.conversation_runs import (
    get_conversation_turns,
    require_active_conversation,
)
from runs.services.runs.limit import check_run_limit, count_runs_ahead
from runs.services.spec.definition import uses_memory
from runs.services.spec.freeze import freeze_agent, validate_spec, variables_of_spec
from runs.services.tool_modes.select_mode import get_recorded_run
from runs.store.fast_insert import insert_row
from runs.store.fast_select import select_row
from runs.store.history import build_turns, extract_question, load_stopped_answers
from runs.store.limits import build_limit_columns
from runs.store.specs import get_or_create_spec, load_spec
from runs.store.transitions import notify_run_changed
from tools.net.trace_context import get_incoming_traceparent
from tools.text.translatable import translatable

MAX_INPUT_LENGTH = 1_000_000

MAX_CONTEXT_TURNS = 50
MAX_TURN_TOKENS = 8_000
"""Maximum estimated tokens of all earlier turns."""


@dataclass(frozen=True)
class FrozenAgent:
    """What a run runs."""

    spec: AgentSpec
    row: Spec
    version: AgentVersion | None


class EarlierTurn(NamedTuple):
    """An earlier message that came with the request, and its answer; one is set."""

    question: str | None
    answer: str | None


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
    given_turns: Sequence[EarlierTurn] = (),
    queue: str | None = None,
    tool_mode: ToolMode | None = None,
    turns_of: Run | None = None,
) -> Run:
    """Return a new queued run.

    It runs the newest published version; the draft if there is none or if `draft`
    is set; or `frozen`. A run of an agent with memory belongs to a conversation, a
    new one by default. `given_turns` reach the model in any case. `queue` is that of
    the source by default; with `Run.Queue.BULK` it delays no others. A run in a tool
    mode is a test and belongs to no conversation: it sees the earlier turns that the
    run it replays has seen, or else `turns_of`. Raises `InputsRefused`, `SpecRefused`,
    `NotAllowed` or `TooManyRuns`; nothing is stored then.
    """
    if agent.is_imported:
        raise NotAllowed(
            translatable(
                "The agent belongs to another program. Its traces can only be viewed."
            )
        )
    require_active_agent(agent)
    require_agent_access(agent, by=by)
    is_scheduled = source == Run.Source.SCHEDULE
    queue = queue or (Run.Queue.SCHEDULES if is_scheduled else Run.Queue.LIVE)
    is_limited = source in (Run.Source.PAGE, Run.Source.API, Run.Source.HOOK)
    count = check_run_limit if is_limited else count_runs_ahead
    ahead = count(by, queue=queue)
    frozen = frozen or freeze_newest_version(agent, draft=draft)
    inputs = validate_inputs(frozen.spec, inputs)
    tool_mode = tool_mode or frozen.spec.tool_mode
    recorded = get_recorded_run(tool_mode, by=by) or turns_of
    if tool_mode is not None:
        frozen = freeze_tool_mode(frozen, tool_mode)
        is_test, conversation = True, None
    has_memory = uses_memory(agent, frozen.version)
    if conversation is not None:
        _require_own_conversation(conversation, agent=agent, by=by)
        require_active_conversation(conversation)
    turn_ids = (
        select_turns(frozen.spec, conversation)
        if conversation is not None and has_memory
        else []
    )
    turns_seen_at = None
    if recorded is not None:
        turn_ids = recorded.turn_ids
        turns_seen_at = recorded.turns_seen_at or recorded.started_at
        given_turns = given_turns or recorded.given_turns or ()
    title = build_run_title(inputs)
    is_first = conversation is None and has_memory and tool_mode is None
    is_first = is_first and source != Run.Source.PARENT
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
            queue=queue,
            **build_limit_columns(frozen.spec),
            is_test=is_test,
            tool_mode=tool_mode.kind if tool_mode is not None else "",
            keep_forever=keep_forever,
            title=title,
            inputs=inputs,
            turn_ids=turn_ids,
            turns_seen_at=turns_seen_at,
            given_turns=[list(turn) for turn in given_turns] or None,
            traceparent=get_incoming_traceparent(),
            created_at=timezone.now(),
        )
        insert_row(
            run, now=("queued_at", "enqueued_at")
        )  # one statement, one transaction
        wakeup.enqueue_run(run.pk, queue=queue, ahead=ahead)
        notify_run_changed(run.pk)
    return run


def freeze_tool_mode(frozen: FrozenAgent, mode: ToolMode) -> FrozenAgent:
    if frozen.spec.tool_mode == mode:
        return frozen
    spec = frozen.spec.model_copy(update={"tool_mode": mode})
    return FrozenAgent(spec, get_or_create_spec(spec), frozen.version)


def require_active_agent(agent: Agent) -> None:
    """Raise `NotAllowed` if the agent is archived."""
    if agent.archived_at is not None:
        raise NotAllowed(translatable("The agent is archived. Unarchive it to run it."))


def require_agent_access(agent: Agent, *, by: User) -> None:
    """Raise `NotAllowed` if `by` may not use the agent."""
    if by.is_superuser or agent.owner_id == by.pk:
        return
    if not Agent.objects.visible_to(by).filter(pk=agent.pk).exists():
        raise NotAllowed(
            translatable(
                'You cannot use the agent "%(name)s". Ask its owner to share it with '
                "you.",
                name=agent.name,
            )
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


def freeze_version(agent: Agent, number: int) -> FrozenAgent:
    """Return a published version; raise `VersionNotFound`."""
    version = agent.versions.select_related("spec").filter(number=number).first()
    if version is None:
        raise VersionNotFound(agent.name, number)
    return FrozenAgent(load_spec(version.spec), version.spec, version)


def _get_newest_version(agent: Agent) -> AgentVersion | None:
    return select_row(AgentVersion, ("spec",), newest_by="number", agent=agent.pk)


def validate_inputs(spec: AgentSpec, inputs: dict[str, Any]) -> dict[str, str]:
    """Return the inputs as text; raise `InputsRefused` with every error."""
    names = variables_of_spec(spec)
    errors = [
        FieldError(
            name,
            translatable('The agent does not have the input "%(name)s".', name=name),
        )
        for name in inputs
        if name not in names
    ]
    for name in names:
        value = inputs.get(name)
        if value is None:
            message = translatable('The input "%(name)s" is missing.', name=name)
        elif not isinstance(value, str | int | float):
            message = translatable('The input "%(name)s" must be text.', name=name)
        elif name == "input" and not str(value).strip():
            message = translatable("Enter a message.")
        elif len(str(value)) > MAX_INPUT_LENGTH:
            message = translatable(
                'The input "%(name)s" is too long. Enter at most %(limit)s characters.',
                name=name,
                limit=MAX_INPUT_LENGTH,
            )
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
    conversation: Conversation, *, agent: Agent, by: User
) -> None:
    if (conversation.agent_id, conversation.owner_id) != (agent.pk, by.pk):
        raise NotAllowed(
            _("The conversation belongs to another user or another agent.")
        )


def select_turns(spec: AgentSpec, conversation: Conversation) -> list[int]:
    """Return the ids of the newest turns that fit, oldest first.

    Runs that failed or have not ended are skipped, and canceled ones of whose answer
    nothing was written.
    """
    status = [Run.Status.SUCCEEDED, Run.Status.LIMIT_REACHED, Run.Status.CANCELED]
    turns = get_conversation_turns(conversation).filter(status__in=status)
    runs = list(turns.order_by("-pk")[:MAX_CONTEXT_TURNS])
    written = load_stopped_answers(runs)
    left, chosen = get_turn_token_budget(spec), []
    for run in runs:
        if run.status == Run.Status.CANCELED and run.pk not in written:
            continue
        turns_of_run = build_turns(run, written=written.get(run.pk))
        left -= sum(estimate_turn_tokens(turn) for turn in turns_of_run)
        if left < 0:
            break
        chosen.append(run.pk)
    return chosen[::-1]


def get_turn_token_budget(spec: AgentSpec) -> int:
    """Return the maximum tokens of earlier turns: at most half of the context."""
    card = ProviderModel.objects.filter(
        provider=spec.model.provider_id or 0, name=spec.model.model
    ).first()
    sizes = (spec.executor.context_tokens, card.context_tokens if card else None)
    return min([MAX_TURN_TOKENS, *(size // 2 for size in sizes if size)])


def estimate_turn_tokens(turn: HistoryTurn) -> int:
    return sum(
        estimate_tokens((text or "").encode()) for text in (turn.question, turn.answer)
    )
