"""Questions nobody answers in time."""

import pytest

from runs.models import Decision
from runs.services.approvals.answer import approve_step
from runs.services.approvals.expire import EXPIRED_OBSERVATION, expire_approvals
from runs.services.health.invariants import check_invariants
from runs.services.runs.resume import resume_run
from runs.worker.sweep import sweep
from tests.fakes.model_server import model_server
from tests.make import make_decision, make_run, make_step
from tests.worker import functions
from tests.worker.run_parts import agent_on, ask_before, call, executed, go_on

pytestmark = pytest.mark.django_db(transaction=True)

LONG_AGO, FAR_OFF = "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"


def asking(server, **overrides):
    """Return a run that waits for a yes, with its question."""
    agent = agent_on(server, "send_mail")
    ask_before(agent, "send_mail")
    agent.uses.update(overrides=overrides)
    run = executed(agent)
    return run, run.steps.get().decisions.get()


def test_a_question_says_when_it_expires_and_what_then():
    with model_server(script=[call("send_mail", to="a")]) as server:
        _, question = asking(server, approval_hours=2, at_expiry="stop")

    hours = (question.expires_at - question.asked_at).total_seconds() / 3600
    assert (round(hours, 1), question.at_expiry) == (2.0, "stop")


def test_zero_hours_wait_for_ever():
    with model_server(script=[call("send_mail", to="a")]) as server:
        _, question = asking(server, approval_hours=0)

    assert question.expires_at is None


def test_the_call_is_rejected_and_the_model_informed():
    functions.mails.clear()
    with model_server(script=[call("send_mail", to="a"), "Fine."]) as server:
        run, question = asking(server)
        Decision.objects.update(expires_at=LONG_AGO)
        assert expire_approvals() == 1
        assert expire_approvals() == 0
        go_on(run)

    question.refresh_from_db()
    assert (question.answer, question.by) == ("expired", None)
    assert (run.status, functions.mails) == ("succeeded", [])
    assert EXPIRED_OBSERVATION in server.requests[-1].raw.decode()


def test_the_run_stops_where_it_was_said_and_asks_again_when_resumed():
    with model_server(script=[call("send_mail", to="a")]) as server:
        run, _ = asking(server, at_expiry="stop")
        Decision.objects.update(expires_at=LONG_AGO)
        sweep(free=0)
        run.refresh_from_db()
        assert (run.status, run.stop_reason) == ("limit_reached", "expired")
        assert list(check_invariants()) == []

        resume_run(run, by=run.owner)
        go_on(run)

    assert run.status == "awaiting_approval"
    assert Decision.objects.open().count() == 1


def test_a_question_with_time_left_stays_open():
    step = make_step(make_run(status="awaiting_approval"), status="awaiting_approval")
    make_decision(step, expires_at=FAR_OFF)

    assert expire_approvals() == 0


def test_an_answer_comes_before_the_expiry():
    run = make_run(status="awaiting_approval")
    question = make_decision(
        make_step(run, status="awaiting_approval"), expires_at=LONG_AGO
    )
    approve_step(question, by=run.owner)

    assert expire_approvals() == 0
    question.refresh_from_db()
    assert question.answer == "approved"
