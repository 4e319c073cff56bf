"""A run of thousands of steps, as a worker would have left it."""

import json
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.utils import timezone

from runs.engine.digest import digest_request
from runs.engine.types import ExecutorOptions, ModelSettings
from runs.models import AgentStep, ModelCall, Run
from runs.services.runs.replay import replay_history
from runs.store.history import RunHistory
from runs.store.specs import load_spec
from tests.make import make_run, make_spec
from tools.spec import ToolSpec

CALLS_A_ROUND = 2
AT_ONCE = 1_000
COST = Decimal("0.0004")
"""Of a reply."""
LOOK_UP = ToolSpec(
    name="look_up",
    description="Looks a word up.",
    args_schema={
        "type": "object",
        "properties": {"word": {"type": "string"}},
        "required": ["word"],
    },
    kind="function",
    effect="read",
)


def make_big_run(owner: Any, *, steps: int, **fields: Any) -> Run:
    """Make a run with `steps` tool calls, two for each reply; every 97th fails."""
    spec = make_spec(
        tools=(LOOK_UP,),
        executor=ExecutorOptions(max_iterations=10_000, loop_guard=None),
        model=ModelSettings(model="model-a", stream=False),
        prices={"input": 0.4, "output": 1.0},
    )
    began = timezone.now() - timedelta(seconds=steps + 1)
    rounds = steps // CALLS_A_ROUND
    status = fields.setdefault("status", "succeeded")
    replies = rounds + (status == "succeeded")
    run = make_run(
        owner,
        spec=spec,
        started_at=began,
        queued_at=began,
        title=f"Look up {steps} words",
        next_number=replies,
        next_index=rounds * CALLS_A_ROUND,
        rounds=replies,
        model_calls=replies,
        input_tokens=900 * replies,
        output_tokens=40 * replies,
        cost=COST * replies,
        seq=rounds + 1,
        **fields,
    )
    calls = [call_of(run, number, began) for number in range(rounds)]
    if status == "succeeded":
        calls.append(last_call(run, rounds, began))
    rows = [
        step_of(run, calls[index // CALLS_A_ROUND], index, began)
        for index in range(rounds * CALLS_A_ROUND)
    ]
    add_digests(run, calls, rows)
    ModelCall.objects.bulk_create(calls, AT_ONCE)
    AgentStep.objects.bulk_create(rows, AT_ONCE)
    return run


def add_digests(run: Run, calls: list[ModelCall], rows: list[AgentStep]) -> None:
    """Give each call the digest of what the engine sends there."""
    digests: list[str] = []
    steps = {row.index: row for row in rows}
    record = RunHistory(load_spec(run.spec), (), (), list(calls), steps, run.inputs)
    replay_history(
        run, record, passed=lambda asked: digests.append(digest_request(asked.request))
    )
    for call, digest in zip(calls, digests, strict=True):
        call.digest = digest


def call_of(run: Run, number: int, began: datetime) -> ModelCall:
    """Return the reply that asks for two words."""
    first = number * CALLS_A_ROUND
    asked = [
        {
            "id": f"call_{index}",
            "name": "look_up",
            "arguments": json.dumps({"word": f"word {index}"}),
        }
        for index in range(first, first + CALLS_A_ROUND)
    ]
    text = f"I look up the words {first} and {first + 1}, and compare what they mean."
    return ModelCall(
        run=run,
        number=number,
        at_index=first,
        round=number + 1,
        reply={"text": text, "tool_calls": asked, "model": "model-a"},
        settings=run.spec.body["model"],
        model="model-a",
        input_tokens=900,
        output_tokens=40,
        cost=COST,
        started_at=began + timedelta(seconds=2 * number),
        first_token=0.3,
        elapsed=1.0,
        created_seq=number + 1,
        changed_seq=number + 1,
    )


def last_call(run: Run, number: int, began: datetime) -> ModelCall:
    """Return the reply with the answer."""
    call = call_of(run, number, began)
    call.reply = {"text": "All words are looked up.", "model": "model-a"}
    return call


def step_of(run: Run, call: ModelCall, index: int, began: datetime) -> AgentStep:
    """Return one word looked up."""
    start = began + timedelta(seconds=2 * call.number + 1 + 0.4 * (index % 2))
    has_failed = index % 97 == 96
    text = "No such word." if has_failed else f"word {index} means {index * 7}. " * 12
    return AgentStep(
        run=run,
        index=index,
        model_call=call,
        round=call.round,
        tool="look_up",
        tool_input={"word": f"word {index}"},
        call_id=f"call_{index}",
        effect="read",
        status="failed" if has_failed else "succeeded",
        observation=text,
        attempts=1,
        started_at=start,
        ended_at=start + timedelta(seconds=0.35),
        elapsed=0.35,
        duration=0.35,
        created_seq=call.number + 1,
        changed_seq=call.number + 1,
    )
