"""The request of a model call told again from the rows of its rounds.

A replay decides every round anew: it reads each reply, fits and checks each input. What
came of that is on record, so this takes it from there. It knows nothing of limits that
a resume has changed, so only the digest says whether it is what was sent.
"""

from collections.abc import Iterator
from typing import NamedTuple

from django.db.models import TextField
from django.db.models.functions import Cast
from pydantic_core import from_json

from runs.engine.rounds import Rounds
from runs.engine.transcript import Shown
from runs.engine.types import AgentAction, AgentSpec, ModelRequest, Reply
from runs.engine.types import AgentStep as Step
from runs.models import AgentStep, ModelCall
from runs.services.freeze_agent import spec_of
from runs.services.kept_rounds import KeptRounds
from runs.services.record import turns_of


class Retold(NamedTuple):
    """A request, and the one of the round before it, where there is one."""

    request: ModelRequest
    before: ModelRequest | None
    rounds: KeptRounds


def retell(call: ModelCall, *, kept: KeptRounds | None = None) -> Retold | None:
    """Return what `call` sent, by its rows; None where they do not tell it.

    Goes on with the rounds in `kept`, which are nobody else's meanwhile.
    """
    purpose = ModelCall.Purpose(call.purpose)
    if purpose == ModelCall.Purpose.SUMMARY:
        return None
    run, spec = call.run, spec_used(call)
    plan = call_before(call) if purpose == ModelCall.Purpose.PLAN else None
    begin = len(call.left_out) if plan is None else len(plan.left_out)
    if kept is None or kept.begin != begin:
        rounds = Rounds(spec, run.inputs, turns=turns_of(run), resumes=())
        kept = KeptRounds(rounds, begin)
    rounds, shows = kept.rounds, call.round - 1 - begin
    try:
        if rounds.progress.rounds < shows:
            for reply, steps in rounds_of(call, begin + rounds.progress.rounds):
                rounds.retell(reply, steps)
    except ValueError:  # a reply that asks for more calls, or fewer, than it has steps
        return None
    if not 0 <= shows <= rounds.progress.rounds:
        return None

    def shown(one: ModelCall) -> Shown:
        first, count = len(one.left_out), one.round - 1
        return Shown(first - begin, count - begin, summary_at(one, rounds))

    transcript = rounds.transcript
    if purpose == ModelCall.Purpose.EARLY_STOP:
        return Retold(transcript.last_request(shown(call)), None, kept)
    before = None if plan is None else transcript.request(shown(plan))
    return Retold(transcript.request(shown(call)), before, kept)


def spec_used(call: ModelCall) -> AgentSpec:
    """Return what the call was made under; a copied one may have its own."""
    is_other = call.is_copied and call.spec is not None
    return spec_of(call.spec if is_other and call.spec else call.run.spec)


def call_before(call: ModelCall) -> ModelCall | None:
    """Return the call of the round before; one at the same step was set aside."""
    calls = ModelCall.objects.filter(run=call.run_id, purpose=call.purpose)
    earlier = calls.filter(number__lt=call.number, at_index__lt=call.at_index)
    return earlier.defer("reply", "settings").order_by("-number").first()


def rounds_of(call: ModelCall, begin: int) -> Iterator[tuple[Reply, tuple[Step, ...]]]:
    """Yield the replies with steps before `call`, after the first `begin` rounds.

    One at a time, for there may be thousands, and what was read is not needed again.
    """
    rows = AgentStep.objects.filter(
        run=call.run_id, index__lt=call.at_index, round__gt=begin
    ).annotate(given=Cast("tool_input", TextField()))
    answered: dict[int, list[_Answered]] = {}
    for pk, *row in rows.order_by("index").values_list(
        "model_call_id", "tool", "given", "call_id", "observation"
    ):
        answered.setdefault(pk, []).append(_Answered(*row))
    calls = ModelCall.objects.filter(
        run=call.run_id, number__lt=call.number, round__gt=begin
    )
    replies = calls.annotate(text=Cast("reply", TextField())).order_by("number")
    for pk, text in replies.values_list("pk", "text"):
        if pk in answered:
            yield Reply.model_validate_json(text), tuple(map(_step, answered.pop(pk)))


class _Answered(NamedTuple):
    """The columns of a step that tell it."""

    tool: str
    given: str
    call_id: str
    observation: str


def _step(row: _Answered) -> Step:
    action = AgentAction(
        tool=row.tool, tool_input=from_json(row.given), call_id=row.call_id or None
    )
    return Step(action=action, observation=row.observation)


def summary_at(call: ModelCall, rounds: Rounds) -> str:
    """Return the newest summary that stands for rounds `call` does not show."""
    if rounds.progress.options.context_method != "summary":
        return ""
    calls = ModelCall.objects.filter(
        run=call.run_id, number__lt=call.number, purpose=ModelCall.Purpose.SUMMARY
    )
    replies = calls.order_by("-number").values_list("reply", flat=True)
    texts = (rounds.kind.tidy(Reply.model_validate(one).text) for one in replies)
    return next(filter(None, texts), "")
