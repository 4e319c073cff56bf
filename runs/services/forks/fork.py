"""Fork a run: rows before a step are copied, what follows is new."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs import wakeup
from runs.engine.effects import CallModel, CallTools
from runs.engine.parsing.clean import clean_text
from runs.engine.types import AgentSpec, Reply
from runs.models import Agent, AgentStep, ModelCall, Resume, Run, Spec
from runs.services.conversations.messages import create_branch, is_in_own_conversation
from runs.services.errors import CannotFork, NotAllowed
from runs.services.forks.edits import (
    ForkEdits,
    build_edited_inputs,
    build_edited_spec,
    with_limits,
)
from runs.services.forks.point import ForkPoint
from runs.services.runs.limit import check_run_limit
from runs.services.runs.replay import replay_history
from runs.services.runs.start import (
    MAX_INPUT_LENGTH,
    build_run_title,
    require_agent_access,
)
from runs.services.spec.freeze import use_model
from runs.store.commits import build_agent_step
from runs.store.fast_insert import insert_row
from runs.store.history import is_discarded_reply, load_history
from runs.store.limits import build_limit_columns
from runs.store.specs import get_or_create_spec, load_spec
from runs.store.step_media import copy_step_media
from runs.store.transitions import notify_run_changed
from tools.audit.write import write_entry

COPIED_SEQ = 1
"""The seq of the copied rows: all existed when the fork began."""
BATCH_SIZE = 500


@dataclass(frozen=True)
class CopiedRows:
    """The rows of a run that a fork of it reuses."""

    calls: Sequence[ModelCall]
    steps: Sequence[AgentStep]
    resumes: Sequence[Resume]

    @property
    def rounds(self) -> int:
        """The round of the newest reply that counts."""
        resumes = list(self.resumes)
        return max(
            (
                call.round
                for call in self.calls
                if not is_discarded_reply(call, resumes)
            ),
            default=0,
        )


def fork_run(
    point: ForkPoint, *, by: User, edits: ForkEdits, source: str = Run.Source.PAGE
) -> Run:
    """Return a new queued run that continues from `point` with `edits`.

    Earlier replies and results are copied and cost nothing. At a model call the
    model is called again, unless its reply is edited; at a step the result is kept,
    edited, or the tool called again. A fork of one's own conversation continues in
    a branch of it. Raises `CannotFork`, `SpecRefused`, `InputsRefused`,
    `NotAllowed` or `TooManyRuns`; nothing is stored then.
    """
    run = point.run
    _check_fork_allowed(point, by=by, edits=edits)
    ahead = check_run_limit(by)
    kept = _load_copied_rows(point, edits)
    spec = build_edited_spec(
        get_spec_at_call(run, kept.resumes, number=len(kept.calls)), edits, run=run
    )
    if spec.prices is None and edits.model is not None:
        spec = use_model(spec, spec.model)
    if edits.calls_again and not has_forked_tool(spec, point):
        raise CannotFork(
            _("The fork does not have the tool of this call. Enter a result instead.")
        )
    most = spec.executor.max_iterations
    if most is not None and most <= kept.rounds and not _may_end_at_fork(edits):
        raise CannotFork(
            ngettext(
                "The fork keeps %(count)s round. Enter a higher limit.",
                "The fork keeps %(count)s rounds. Enter a higher limit.",
                kept.rounds,
            )
            % {"count": kept.rounds}
        )
    inputs = build_edited_inputs(spec, edits, run=run)
    with transaction.atomic():
        row = run.spec if spec == load_spec(run.spec) else get_or_create_spec(spec)
        fork = _build_fork(point, by=by, edits=edits, kept=kept, spec=row)
        fork.source = source
        for column, value in build_limit_columns(spec).items():
            setattr(fork, column, value)
        if inputs != run.inputs:
            _change_inputs(fork, point, inputs)
        if run.conversation is not None and is_in_own_conversation(run, by):
            fork.conversation = create_branch(run.conversation, at=run)
        insert_row(fork, now=("queued_at", "enqueued_at"))
        _copy_rows(fork, point, kept, edits)
        _plan_missing_steps(fork)
        write_entry(
            "forked",
            "run",
            f"run {run.pk} at step {point.row}",
            number=fork.pk,
            by=by,
            note=", ".join(edits.changed_fields),
        )
        wakeup.enqueue_run(fork.pk, ahead=ahead)
        notify_run_changed(fork.pk)
    return fork


def get_spec_at_call(run: Run, resumes: Iterable[Resume], *, number: int) -> AgentSpec:
    """Return the spec at the model call `number`, with the limits of resumes."""
    spec = load_spec(run.spec)
    for resume in resumes:
        if resume.limits and resume.at_number <= number:
            executor = with_limits(spec.executor, resume.limits)
            spec = spec.model_copy(update={"executor": executor})
    return spec


def has_forked_tool(spec: AgentSpec, point: ForkPoint) -> bool:
    """Whether the tool of the selected step can be called under `spec`."""
    return point.step is not None and point.step.tool in {t.name for t in spec.tools}


def may_edit_agent(agent: Agent, user: User) -> bool:
    """Whether `user` may edit the agent, and so its prompt or model in a fork."""
    return Agent.objects.editable_by(user).filter(pk=agent.pk).exists()


def _check_fork_allowed(point: ForkPoint, *, by: User, edits: ForkEdits) -> None:
    agent = point.run.agent
    if agent.archived_at is not None:
        raise NotAllowed(_("The agent is archived. Unarchive it to run it."))
    require_agent_access(agent, by=by)
    if edits.needs_edit_permission and not may_edit_agent(agent, by):
        raise NotAllowed(
            _(
                "Only users who can edit the agent can change the prompt, the model, "
                "the tools or a reply in a fork."
            )
        )
    message = edits.observation if point.step is not None else edits.reply_text
    if message is not None and len(message) > MAX_INPUT_LENGTH:
        raise CannotFork(
            _("Enter at most %(limit)s characters.") % {"limit": MAX_INPUT_LENGTH}
        )
    if edits.reply_text is not None and (point.call is None or point.step is not None):
        raise CannotFork(_("Select a model reply to edit it."))
    wants_step = edits.observation is not None or edits.calls_again
    if wants_step and point.step is None:
        raise CannotFork(
            _("Select a tool call to edit its result or call the tool again.")
        )
    if point.step is not None and not wants_step and not point.step.is_answered:
        raise CannotFork(
            _("This call has no result. Enter one, or call the tool again.")
        )


def _may_end_at_fork(edits: ForkEdits) -> bool:
    """Whether the round limit may be reached: an edited reply may be the answer."""
    return edits.reply_text is not None


def _load_copied_rows(point: ForkPoint, edits: ForkEdits) -> CopiedRows:
    run, count = point.run, point.number
    if point.step is not None or edits.reply_text is not None:
        count += 1
    steps = AgentStep.objects.filter(run=run, index__lt=point.at_index)
    rows = steps.select_related("model_call").defer("model_call__reply")
    kept = list(rows.order_by("index"))
    kept += [row for row in point.siblings if _is_copied(row, point, edits)]
    resumes = Resume.objects.filter(run=run, at_number__lte=count)
    return CopiedRows(
        calls=list(
            ModelCall.objects.filter(run=run, number__lt=count).order_by("number")
        ),
        steps=kept,
        resumes=[one for one in resumes if one.at_index <= point.at_index],
    )


def _is_copied(row: AgentStep, point: ForkPoint, edits: ForkEdits) -> bool:
    """Whether a step of the forked reply is answered in the fork."""
    if point.step is not None and row.pk == point.step.pk:
        return not edits.calls_again
    return row.is_answered


def _build_fork(
    point: ForkPoint, *, by: User, edits: ForkEdits, kept: CopiedRows, spec: Spec
) -> Run:
    run = point.run
    return Run(
        owner=by,
        agent=run.agent,
        version=run.version,
        spec=spec,
        forked_from=run,
        fork_index=len(kept.steps),
        fork_row=point.row,
        fork_edits=edits.changed_fields,
        is_test=run.is_test,
        tool_mode=run.tool_mode,
        title=run.title,
        inputs=run.inputs,
        earlier_inputs=run.earlier_inputs,
        turn_ids=run.turn_ids,
        given_turns=run.given_turns,
        turns_seen_at=run.turns_seen_at or run.started_at,
        seq=COPIED_SEQ,
        next_index=len(kept.steps),
        next_number=len(kept.calls),
        rounds=kept.rounds,
        created_at=timezone.now(),
    )


def _change_inputs(fork: Run, point: ForkPoint, inputs: dict[str, Any]) -> None:
    """Give `fork` other inputs; its copied calls keep theirs."""
    earlier = [*(point.run.earlier_inputs or []), [fork.next_number, point.run.inputs]]
    fork.inputs, fork.title, fork.earlier_inputs = (
        inputs,
        build_run_title(inputs),
        earlier,
    )


def _copy_rows(fork: Run, point: ForkPoint, kept: CopiedRows, edits: ForkEdits) -> None:
    specs = _SpecsByCall(point.run, kept.resumes)
    calls = [_copy_call(fork, call, specs) for call in kept.calls]
    if edits.reply_text is not None:
        _edit_reply(calls[-1], edits)
    ModelCall.objects.bulk_create(calls, batch_size=BATCH_SIZE)
    by_number = {call.number: call for call in calls}
    steps = [_copy_step(fork, row, by_number, point, edits) for row in kept.steps]
    AgentStep.objects.bulk_create(steps, batch_size=BATCH_SIZE)
    copy_step_media(steps)
    for resume in kept.resumes:
        Resume.objects.create(
            run=fork,
            at_index=resume.at_index,
            at_number=resume.at_number,
            by=resume.by,
        )


class _SpecsByCall:
    """The spec of each call, with the limits of resumes."""

    def __init__(self, run: Run, resumes: Sequence[Resume]) -> None:
        self.run, self.resumes = run, resumes
        self.rows_by_limits: dict[int, Spec] = {}

    def get_spec_id(self, call: ModelCall) -> int:
        if call.spec_id is not None:
            return call.spec_id
        limits = [r for r in self.resumes if r.limits and r.at_number <= call.number]
        if not limits:
            return self.run.spec_id
        if len(limits) not in self.rows_by_limits:
            spec = get_spec_at_call(self.run, limits, number=call.number)
            self.rows_by_limits[len(limits)] = get_or_create_spec(spec)
        return self.rows_by_limits[len(limits)].pk


def _copy_call(fork: Run, call: ModelCall, specs: _SpecsByCall) -> ModelCall:
    original, spec_id = call.pk, specs.get_spec_id(call)
    call.pk, call._state.adding = None, True
    call.run, call.spec_id = fork, spec_id
    call.copied_from_id, call.is_copied, call.cost = original, True, 0
    call.created_seq = call.changed_seq = COPIED_SEQ
    return call


def _edit_reply(call: ModelCall, edits: ForkEdits) -> None:
    """Replace the model's reply by a person's text.

    With calls it keeps the native message: providers refuse calls without the reasoning
    or signatures that came with them, and adapters send nothing else of it back.
    """
    old = Reply.model_validate(call.reply)
    reply = Reply(
        text=clean_text(edits.reply_text or ""),
        tool_calls=edits.reply_calls,
        finish_reason="tool_calls" if edits.reply_calls else "stop",
        usage=old.usage,
        model=old.model,
        native=old.native if edits.reply_calls else None,
    )
    call.reply = reply.model_dump(mode="json", exclude_defaults=True)
    call.is_edited = True


def _copy_step(
    fork: Run,
    row: AgentStep,
    calls: dict[int, ModelCall],
    point: ForkPoint,
    edits: ForkEdits,
) -> AgentStep:
    call = calls[row.model_call.number]
    is_chosen = point.step is not None and row.pk == point.step.pk
    row.copied_from_id = row.pk
    row.pk, row._state.adding = None, True
    row.run, row.model_call, row.is_copied = fork, call, True
    row.elapsed, row.attempts, row.usage = 0.0, min(row.attempts, 1), None
    row.created_seq = row.changed_seq = COPIED_SEQ
    if is_chosen and edits.observation is not None:
        _edit_observation(row, edits)
    return row


def _edit_observation(row: AgentStep, edits: ForkEdits) -> None:
    row.is_edited, row.duration = True, None
    row.observation = clean_text(edits.observation or "")
    row.value = None if edits.has_failed else row.observation
    row.status = (
        AgentStep.Status.FAILED if edits.has_failed else AgentStep.Status.SUCCEEDED
    )
    row.ended_at = row.ended_at or timezone.now()


def _plan_missing_steps(fork: Run) -> None:
    """Add the steps a kept reply has not made yet; refuse if the replay diverges."""
    effect = replay_history(fork, load_history(fork))
    if effect is None:
        return
    if isinstance(effect, CallModel):
        if effect.at_index != fork.next_index:
            raise CannotFork(
                _(
                    "With these changes the earlier steps no longer lead to this step. "
                    "Keep the context limits as they were."
                )
            )
        return
    _insert_missing_steps(fork, effect)


def _insert_missing_steps(fork: Run, effect: CallTools) -> None:
    have = set(fork.steps.values_list("index", flat=True))
    last = fork.calls.order_by("-number").first()
    end = effect.steps[-1].index + 1
    if last is None or end != len(have | {step.index for step in effect.steps}):
        raise CannotFork(_("These changes do not fit the steps that the fork keeps."))
    for step in effect.steps:
        if step.index not in have:
            insert_row(build_agent_step(last, step, seq=COPIED_SEQ, may_start=False))
    fork.next_index, fork.rounds = end, effect.round
    fork.save(update_fields=["next_index", "rounds"])
