"""Frozen specs as rows."""

import pytest

from runs.engine.types import AgentSpec, ExecutorOptions, LoopGuard
from runs.models import Spec
from runs.services.spec.freeze import freeze_agent
from runs.store.specs import dump_spec, load_spec
from tests.make import make_agent


@pytest.mark.parametrize("guard", [None, LoopGuard(), LoopGuard(hint=1, stop=9)])
def test_a_stored_spec_keeps_its_loop_guard(guard):
    spec = AgentSpec(kind="react", executor=ExecutorOptions(loop_guard=guard))

    assert load_spec(Spec(body=dump_spec(spec))) == spec


def test_a_stored_spec_without_a_loop_guard_has_none():
    assert dump_spec(AgentSpec(kind="react"))["executor"] == {"loop_guard": {}}

    for body in ({"kind": "react"}, {"kind": "react", "executor": {}}):
        assert load_spec(Spec(body=body)).executor.loop_guard is None


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("executor", "guard"),
    [
        ({}, LoopGuard()),
        ({"max_iterations": 3}, LoopGuard()),
        ({"loop_guard": None}, None),
    ],
)
def test_each_new_agent_has_a_loop_guard_unless_it_says_otherwise(executor, guard):
    agent = make_agent(executor=executor)

    assert freeze_agent(agent).executor.loop_guard == guard
