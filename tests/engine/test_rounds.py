"""Rounds that are told again from what became of them."""

import pytest

from runs.engine.digest import digest_of
from runs.engine.rounds import Rounds
from runs.engine.transcript import Shown
from runs.engine.types import AgentAction, AgentStep
from tests.engine.make import drive, make_reply, make_spec

ACTION = "I look.\nAction: echo\nAction Input: x\nObservation: made up"


@pytest.mark.parametrize(
    ("kind", "reply"),
    [
        ("react", make_reply(ACTION)),
        ("tool-calling", make_reply("I look.", ("echo", {"input": "x"}))),
    ],
)
def test_a_round_told_again_leads_to_the_same_request(kind, reply):
    spec = make_spec(kind)
    driven = drive(spec, [reply, make_reply("Final Answer: end")])
    rounds = Rounds(spec, {"input": "q"}, turns=(), resumes=())
    call_id = reply.tool_calls[0].id if reply.tool_calls else None
    action = AgentAction(tool="echo", tool_input="x", call_id=call_id)

    rounds.retell(reply, (AgentStep(action=action, observation="echo: x"),))

    told = rounds.transcript.request(Shown(0, 1))
    assert digest_of(told) == driven.digests[1]
    assert rounds.progress.rounds == 1
