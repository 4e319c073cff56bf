"""The reply and the outcome of a quick call that only reads are one commit."""

import pytest
from django.db.models import F

from runs.models import AgentStep, Run
from runs.services.runs.cancel import cancel_run
from runs.worker import run_tools
from tests.fakes.model_server import model_server
from tests.worker.run_parts import agent_on, call, calls, executed, go_on, started
from tools.sandbox import abandoned_calls

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def patient(monkeypatch):
    """Let no call of a function count as slow because the machine is busy."""
    monkeypatch.setattr(abandoned_calls, "QUICK_SECONDS", 60.0)


def committed_at_once(run: Run) -> list[bool]:
    """Return for each step whether it was stored together with its outcome."""
    return [step.created_seq == step.changed_seq for step in run.steps.all()]


def test_a_quick_read_is_stored_with_its_reply(patient):
    with model_server(script=[call("add", a=1, b=2), "3."]) as server:
        run = executed(agent_on(server, "add"))

    assert committed_at_once(run) == [True]
    assert run.steps.get().status == "succeeded"
    assert run.seq == 3  # the claim, the reply with its outcome, the end


def test_the_intent_of_a_side_effect_is_stored_before_the_call():
    with model_server(script=[call("send_mail", to="bob"), "Sent."]) as server:
        run = executed(agent_on(server, "send_mail"))

    assert committed_at_once(run) == [False]


def test_several_calls_are_stored_before_they_run():
    script = [calls(call("add", a=1, b=2), call("add", a=3, b=4, id="c2")), "3, 7."]
    with model_server(script=script) as server:
        run = executed(agent_on(server, "add"))

    assert committed_at_once(run) == [False, False]


@pytest.mark.slow
def test_a_slow_read_is_shown_while_it_runs(monkeypatch):
    monkeypatch.setattr(abandoned_calls, "QUICK_SECONDS", 1.0)
    with model_server(script=[call("status_of_own_step"), "So."]) as server:
        run = executed(agent_on(server, "status_of_own_step"))

    step = run.steps.get()
    assert (step.observation, step.progress) == ("started", "looking")
    assert committed_at_once(run) == [False]


def test_a_run_that_lost_a_worker_stores_a_call_before_it_runs():
    with model_server(script=[call("add", a=1, b=2), "3."]) as server:
        run = started(agent_on(server, "add"))
        Run.objects.filter(pk=run.pk).update(recoveries=F("recoveries") + 1)
        run = go_on(run)

    assert committed_at_once(run) == [False]


def test_a_reply_is_kept_if_the_run_is_canceled_during_its_call():
    with model_server(script=[call("cancel_own_run"), "Never."]) as server:
        run = executed(agent_on(server, "cancel_own_run"))

    assert run.status == "canceled"
    assert (run.calls.count(), run.steps.get().status) == (1, "canceled")


def test_a_reply_is_kept_if_the_run_is_canceled_before_its_call(monkeypatch):
    take_reply = run_tools.ToolRunner.take_reply

    def cancel_then(runner, reply, effect):
        rows = take_reply(runner, reply, effect)
        cancel_run(runner.run, by=runner.run.owner)
        runner.claim.end("canceled")
        return rows

    monkeypatch.setattr(run_tools.ToolRunner, "take_reply", cancel_then)
    with model_server(script=[call("add", a=1, b=2), "Never."]) as server:
        run = executed(agent_on(server, "add"))

    assert run.status == "canceled"
    assert AgentStep.objects.get(run=run).status == "canceled"


@pytest.mark.slow
def test_a_slow_call_of_a_lost_run_is_no_outcome(monkeypatch):
    monkeypatch.setattr(abandoned_calls, "QUICK_SECONDS", 1.0)
    with model_server(script=[call("steal_slowly"), "Late."]) as server:
        run = executed(agent_on(server, "steal_slowly"))

    assert (run.status, run.fence) == ("running", 2)
    assert not run.steps.exists()
