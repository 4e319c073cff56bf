"""Forking a run: what came before a row is copied, what comes after is new."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from runs import bell
from runs.engine.clean import clean_text
from runs.engine.effects import CallModel, CallTools
from runs.engine.types import AgentSpec, Reply
from runs.models import Agent, AgentStep, ModelCall, Resume, Run, Spec
from runs.services.branch_talk import is_own_turn, new_branch
from runs.services.commits import step_of
from runs.services.errors import CannotFork, NotAllowed
from runs.services.fork_edits import (
    ForkEdits,
    edited_inputs,
    edited_spec,
    with_limits,
)
from runs.services.fork_point import ForkPoint
from runs.services.freeze_agent import spec_of, spec_row
from runs.services.move import announce
from runs.services.prices_of import prices_of
from runs.services.record import is_set_aside, read_record
from runs.services.replay import replay
from runs.services.rows import insert
from runs.services.start_run import LONGEST_INPUT, refuse_stranger, title_of
from tools.audit.write import write_entry

SEQ = 1
"""What the copied rows are stamped with: all were there when the fork began."""
BATCH = 500


@dataclass(frozen=True)
class Kept:
    """The rows of a run that a fork of it reuses."""

    calls: Sequence[ModelCall]
    steps: Sequence[AgentStep]
    resumes: Sequence[Resume]

    @property
    def rounds(self) -> int:
        """The round of the newest reply that counts."""
        resumes = list(self.resumes)
        return max(
            (call.round for call in self.calls if not is_set_aside(call, resumes)),
            default=0,
        )


def fork_run(
    point: ForkPoint, *, by: User, edits: ForkEdits, source: str = Run.Source.PAGE
) -> Run:
    """Return a new queued run that goes on from `point` with `edits`.

    Earlier replies and results are copied and cost nothing. At a model call the model
    is asked anew, unless its reply is edited; at a step the result is kept, edited, or
    the tool called again. A turn of one's own conversation goes on in a branch of it.
    Raises `CannotFork`, `SpecRefused`, `InputsRefused` or `NotAllowed`; nothing is
    stored then.
    """
    run = point.run
    _refuse(point, by=by, edits=edits)
    kept = _kept(point, edits)
    spec = edited_spec(
        spec_then(run, kept.resumes, number=len(kept.calls)), edits, run=run
    )
    if spec.prices is None and edits.model is not None:
        spec = spec.model_copy(update={"prices": prices_of(spec.model)})
    if edits.calls_again and not has_tool(spec, point):
        raise CannotFork(
            "The fork does not have the tool of this call. Write its result instead."
        )
    most = spec.executor.max_iterations
    if most is not None and most <= kept.rounds and not _ends_here(edits):
        raise CannotFork(
            f"The fork keeps {kept.rounds} round{'s' * (kept.rounds != 1)}. "
            "Give it a limit above that."
        )
    inputs = edited_inputs(spec, edits, run=run)
    with transaction.atomic():
        row = run.spec if spec == spec_of(run.spec) else spec_row(spec)
        fork = _fork_row(point, by=by, edits=edits, kept=kept, spec=row)
        fork.source = source
        if inputs != run.inputs:
            _change_inputs(fork, point, inputs)
        if run.conversation is not None and is_own_turn(run, by):
            fork.conversation = new_branch(run.conversation, at=run)
        insert(fork, now=("queued_at", "rung_at"))
        _copy(fork, point, kept, edits)
        _plan(fork)
        write_entry(
            "forked",
            "run",
            f"run {run.pk} at step {point.row}",
            number=fork.pk,
            by=by,
            note=", ".join(edits.words),
        )
        bell.ring(fork.pk)
        announce(fork.pk)
    return fork


def spec_then(run: Run, resumes: Iterable[Resume], *, number: int) -> AgentSpec:
    """Return the spec as it counted at the model call `number`, resumes included."""
    spec = spec_of(run.spec)
    for resume in resumes:
        if resume.limits and resume.at_number <= number:
            executor = with_limits(spec.executor, resume.limits)
            spec = spec.model_copy(update={"executor": executor})
    return spec


def has_tool(spec: AgentSpec, point: ForkPoint) -> bool:
    """Whether the tool of the chosen step can be called under `spec`."""
    return point.step is not None and point.step.tool in {t.name for t in spec.tools}


def may_edit_agent(agent: Agent, user: User) -> bool:
    """Whether `user` may change prompt, model, tools or reply in a fork."""
    return Agent.objects.editable_by(user).filter(pk=agent.pk).exists()


def _refuse(point: ForkPoint, *, by: User, edits: ForkEdits) -> None:
    agent = point.run.agent
    if agent.archived_at is not None:
        raise NotAllowed("The agent is archived. Take it out of the archive to run it.")
    refuse_stranger(agent, by=by)
    if edits.need_the_agent and not may_edit_agent(agent, by):
        raise NotAllowed(
            "Only who may edit the agent can fork with another prompt, model, reply "
            "or other tools."
        )
    told = edits.observation if point.step is not None else edits.reply_text
    if told is not None and len(told) > LONGEST_INPUT:
        raise CannotFork(f"The text has more than {LONGEST_INPUT} characters.")
    if edits.reply_text is not None and (point.call is None or point.step is not None):
        raise CannotFork("Only at a reply of the model can the reply be changed.")
    wants_step = edits.observation is not None or edits.calls_again
    if wants_step and point.step is None:
        raise CannotFork("Only at a tool call can its result be changed.")
    if point.step is not None and not wants_step and not point.step.is_answered:
        raise CannotFork("This call has no result. Write one, or call the tool again.")


def _ends_here(edits: ForkEdits) -> bool:
    """Whether the limit of rounds may be reached: a written reply may be the answer."""
    return edits.reply_text is not None


def _kept(point: ForkPoint, edits: ForkEdits) -> Kept:
    run, count = point.run, point.number
    if point.step is not None or edits.reply_text is not None:
        count += 1
    steps = AgentStep.objects.filter(run=run, index__lt=point.at_index)
    rows = steps.select_related("model_call").defer("model_call__reply")
    kept = list(rows.order_by("index"))
    kept += [row for row in point.siblings if _is_kept(row, point, edits)]
    resumes = Resume.objects.filter(run=run, at_number__lte=count)
    return Kept(
        calls=list(
            ModelCall.objects.filter(run=run, number__lt=count).order_by("number")
        ),
        steps=kept,
        resumes=[one for one in resumes if one.at_index <= point.at_index],
    )


def _is_kept(row: AgentStep, point: ForkPoint, edits: ForkEdits) -> bool:
    """Whether a step of the reply in question is answered in the fork."""
    if point.step is not None and row.pk == point.step.pk:
        return not edits.calls_again
    return row.is_answered


def _fork_row(
    point: ForkPoint, *, by: User, edits: ForkEdits, kept: Kept, spec: Spec
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
        fork_edits=edits.words,
        is_test=run.is_test,
        title=run.title,
        inputs=run.inputs,
        earlier_inputs=run.earlier_inputs,
        turn_ids=run.turn_ids,
        turns_seen_at=run.turns_seen_at or run.started_at,
        seq=SEQ,
        next_index=len(kept.steps),
        next_number=len(kept.calls),
        rounds=kept.rounds,
        created_at=timezone.now(),
    )


def _change_inputs(fork: Run, point: ForkPoint, inputs: dict[str, Any]) -> None:
    """Give `fork` other inputs; its reused calls remember theirs."""
    earlier = [*(point.run.earlier_inputs or []), [fork.next_number, point.run.inputs]]
    fork.inputs, fork.title, fork.earlier_inputs = inputs, title_of(inputs), earlier


def _copy(fork: Run, point: ForkPoint, kept: Kept, edits: ForkEdits) -> None:
    specs = _Specs(point.run, kept.resumes)
    calls = [_call(fork, call, specs) for call in kept.calls]
    if edits.reply_text is not None:
        _edit_reply(calls[-1], edits)
    ModelCall.objects.bulk_create(calls, batch_size=BATCH)
    by_number = {call.number: call for call in calls}
    AgentStep.objects.bulk_create(
        [_step(fork, row, by_number, point, edits) for row in kept.steps],
        batch_size=BATCH,
    )
    for resume in kept.resumes:
        Resume.objects.create(
            run=fork,
            at_index=resume.at_index,
            at_number=resume.at_number,
            by=resume.by,
        )


class _Specs:
    """Which spec each call was made with; limits of resumes are part of it."""

    def __init__(self, run: Run, resumes: Sequence[Resume]) -> None:
        self.run, self.resumes = run, resumes
        self.known: dict[int, Spec] = {}

    def of(self, call: ModelCall) -> int:
        """Return the id of the spec row."""
        if call.spec_id is not None:
            return call.spec_id
        limits = [r for r in self.resumes if r.limits and r.at_number <= call.number]
        if not limits:
            return self.run.spec_id
        if len(limits) not in self.known:
            spec = spec_then(self.run, limits, number=call.number)
            self.known[len(limits)] = spec_row(spec)
        return self.known[len(limits)].pk


def _call(fork: Run, call: ModelCall, specs: _Specs) -> ModelCall:
    original, spec_id = call.pk, specs.of(call)
    call.pk, call._state.adding = None, True
    call.run, call.spec_id = fork, spec_id
    call.copied_from_id, call.is_copied, call.cost = original, True, 0
    call.created_seq = call.changed_seq = SEQ
    return call


def _edit_reply(call: ModelCall, edits: ForkEdits) -> None:
    """Put a person's words in the place of the model's; its own message goes."""
    old = Reply.model_validate(call.reply)
    reply = Reply(
        text=clean_text(edits.reply_text or ""),
        tool_calls=edits.reply_calls,
        finish_reason="tool_calls" if edits.reply_calls else "stop",
        usage=old.usage,
        model=old.model,
    )
    call.reply = reply.model_dump(mode="json", exclude_defaults=True)
    call.is_edited = True


def _step(
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
    row.created_seq = row.changed_seq = SEQ
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


def _plan(fork: Run) -> None:
    """Add the steps a kept reply still has to make; refuse where it all goes astray."""
    effect = replay(fork, read_record(fork))
    if effect is None:
        return
    if isinstance(effect, CallModel):
        if effect.at_index != fork.next_index:
            raise CannotFork(
                "With these changes the earlier steps do not lead to this place any "
                "more. Leave the limits of the context as they were."
            )
        return
    _add_steps(fork, effect)


def _add_steps(fork: Run, effect: CallTools) -> None:
    have = set(fork.steps.values_list("index", flat=True))
    last = fork.calls.order_by("-number").first()
    end = effect.steps[-1].index + 1
    if last is None or end != len(have | {step.index for step in effect.steps}):
        raise CannotFork("These changes do not fit the steps that are kept.")
    for step in effect.steps:
        if step.index not in have:
            insert(step_of(last, step, seq=SEQ, may_start=False))
    fork.next_index, fork.rounds = end, effect.round
    fork.save(update_fields=["next_index", "rounds"])
