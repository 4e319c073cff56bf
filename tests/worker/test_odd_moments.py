"""Moments in which something else happens at the same time."""

import time
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from runs.models import AgentStep, ModelAttempt, Run
from runs.redis_streams import TextDeltaWriter
from runs.services.approvals.answer import approve_step, settle_outcome
from runs.services.runs.cancel import cancel_run
from runs.services.runs.resume import resume_run
from runs.store.claims import ClaimedRun, WorkerState, worker_state
from runs.store.commits import RunCanceled, increment_seq, raise_if_canceled
from runs.store.sanitizer import Sanitizer
from runs.store.transitions import transition
from runs.worker.execute_run import RunDriver, execute_run
from runs.worker.heartbeat import flush_tool_usage
from tests.fakes.model_server import model_server
from tests.make import make_decision, make_run, make_step
from tests.worker import functions
from tests.worker.run_parts import (
    FAULTS,
    agent_on,
    ask_before,
    call,
    calls,
    executed,
    function_tool,
    go_on,
    started,
)
from tools.models import Tool

KEY = "sk-very-secret-1234"

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_stop_that_comes_while_a_run_parks_is_noticed():
    run = make_run(status="running", fence=1)
    claim = ClaimedRun(run.pk, 1)
    cancel_run(run)

    increment_seq(claim)
    with pytest.raises(RunCanceled):
        raise_if_canceled(claim)


def test_a_stop_during_the_last_call_before_a_question_ends_the_run():
    reply = calls(call("send_mail", to="ann"), call("stop_me"))
    with model_server(script=[reply]) as server:
        agent = agent_on(server, "send_mail", "stop_me")
        ask_before(agent, "send_mail")
        run = executed(agent)

    assert run.status == "canceled"
    assert set(run.steps.values_list("status", flat=True)) == {"canceled", "succeeded"}


def test_a_run_goes_back_when_the_database_fails_a_reading(monkeypatch):
    def away(self):
        raise OperationalError("the server closed the connection")

    with model_server(script=["Done."]) as server:
        run = started(agent_on(server))
        monkeypatch.setattr(RunDriver, "drive", away)
        go_on(run)
        assert run.status == "queued"
        monkeypatch.undo()
        go_on(run)

    assert (run.status, run.output) == ("succeeded", "Done.")


def test_suspects_run_one_at_a_time(monkeypatch):
    rung = list[int]()
    with model_server(script=["Done."] * 2) as server:
        agent = agent_on(server)
        one, two = started(agent), started(agent)
        gone = {"lease_until": "2020-01-01T00:00:00Z", "recoveries": 1}
        Run.objects.update(status="running", **gone)
        with worker_state.crash_slot:  # another one has it
            execute_run(one.pk)
        assert Run.objects.get(pk=one.pk).fence == one.fence
        monkeypatch.setattr("runs.wakeup.enqueue_run", lambda pk, **_: rung.append(pk))
        execute_run(two.pk)

    assert Run.objects.get(pk=two.pk).status == "succeeded"
    assert rung == [one.pk]


def test_a_resumed_run_makes_the_calls_that_its_end_had_cancelled():
    script = [call("add", a=1, b=2), "It is 3."]
    with model_server(script=script) as server:
        run = executed(agent_on(server, "add"))
        AgentStep.objects.filter(run=run).update(status="canceled", observation="")
        run.calls.filter(number=1).delete()
        Run.objects.filter(pk=run.pk).update(
            status="failed", output=None, next_number=1, error_code="internal"
        )
        server.script = ["It is 3 now."]
        run.refresh_from_db()
        resume_run(run, by=None)
        go_on(run)

    assert (run.status, run.output) == ("succeeded", "It is 3 now.")
    assert run.steps.get().observation == "3"


def test_a_resumed_run_asks_again_for_what_was_never_approved():
    run = make_run(status="awaiting_decision")
    run.spec.body["tools"] = [{"name": "send_mail", "asks": True}]
    run.spec.save()
    lost = make_step(run, tool="pay", status="unknown", effect="side_effect")
    waits = make_step(run, tool="send_mail", status="awaiting_approval")
    settle_outcome(make_decision(lost, question="outcome"), by=run.owner, answer="fail")
    run.refresh_from_db()
    resume_run(run, by=run.owner)

    waits.refresh_from_db()
    assert waits.status == "awaiting_approval"


def test_an_error_text_that_no_database_takes_does_not_stop_the_heart():
    with model_server(script=[call("refuse_oddly"), "Fine."]) as server:
        run = executed(agent_on(server, "refuse_oddly"))
        flush_tool_usage()

    assert run.status == "succeeded"
    assert Tool.objects.get(name="refuse_oddly").last_error != ""


def test_a_sweep_that_looked_too_early_revives_nothing():
    run = make_run(status="waiting", available_at=timezone.now())
    Run.objects.filter(pk=run.pk).update(status="failed", ended_at=timezone.now())

    assert not transition(run, to="queued", only_from=("waiting",))


def test_a_late_thread_does_not_take_the_lease_of_its_successor_along():
    here, older, newer = (
        WorkerState(),
        ClaimedRun(run_id=1, fence=1),
        ClaimedRun(run_id=1, fence=2),
    )

    here.add_claim(newer)
    here.add_claim(older)
    here.remove_claim(older)

    assert here.list_claims() == [newer]


def test_a_successful_call_of_a_tool_with_retries_is_made_once():
    functions.counted.clear()
    with model_server(script=[call("count_call", label="a"), "Once."]) as server:
        agent = agent_on(server, "count_call")
        Tool.objects.update(retries=3)
        run = executed(agent)

    assert (run.steps.get().status, functions.counted) == ("succeeded", ["a"])


def test_a_failed_call_of_a_tool_with_retries_is_made_again():
    functions.counted.clear()
    with model_server(script=[call("count_call", label="b"), "Twice."]) as server:
        agent = agent_on(server, "count_call")
        Tool.objects.update(retries=3)
        run = executed(agent)

    assert (run.steps.get().status, functions.counted) == ("succeeded", ["b", "b"])


def test_a_slow_tool_that_is_tried_again_keeps_its_lease():
    deadlines = []
    with model_server(script=[call("hang"), "Slow."]) as server:
        agent = agent_on(server, "hang")
        Tool.objects.update(retries=2)
        run = started(agent)
        hold = worker_state.add_claim
        try:
            worker_state.add_claim = lambda claim: (
                deadlines.append(claim),
                hold(claim),
            )
            began = time.monotonic()
            go_on(run)
        finally:
            worker_state.add_claim = hold

    assert run.steps.get().status == "failed"
    assert time.monotonic() - began > 0.85  # three times 0.3 s
    assert deadlines[0].deadline is None


def test_the_tries_of_a_call_end_with_the_runs_time():
    with model_server(script=[call("hang")]) as server:
        agent = agent_on(server, "hang", executor={"max_execution_time": 0.6})
        Tool.objects.update(retries=5)
        run = executed(agent)

    assert (run.status, run.stop_reason) == ("limit_reached", "time")


def test_an_approved_tool_that_prints_the_key_does_not_store_it():
    script = [call("echo_back", text=KEY), "Said."]
    with model_server(script=script) as server:
        agent = agent_on(server, "echo_back")
        agent.provider.set_key(KEY)
        agent.provider.save()
        ask_before(agent, "echo_back")
        run = executed(agent)
        decision = run.steps.get().decisions.get()
        approve_step(
            decision, by=run.owner, edited_input={"text": "sk-very-secret-1234"}
        )
        go_on(run)

    assert KEY not in run.steps.get().observation


def test_a_secret_split_between_two_pieces_is_not_shown():
    stream = Sanitizer([KEY]).stream()
    shown = "".join(
        map(stream.feed, ["My key is sk-very-", "secret-1234", ", keep it."])
    )

    assert shown == "My key is [secret removed], keep it."


def test_text_that_only_begins_like_a_secret_is_shown_when_it_goes_on():
    stream = Sanitizer([KEY]).stream()

    assert stream.feed("ask") == "a"
    assert stream.feed("ing") == "sking"


def test_a_summary_is_not_shown_as_the_answer_that_is_written(monkeypatch):
    shown = []
    write = TextDeltaWriter.write
    monkeypatch.setattr(
        TextDeltaWriter,
        "write",
        lambda self, piece: (shown.append((self.number, piece)), write(self, piece)),
    )
    script = [call("add", a=2, b=3), call("add", a=3, b=4), "It added.", "Seven."]
    with model_server(script=script) as server:
        options = {"context_tokens": 1, "context_method": "summary"}
        run = executed(agent_on(server, "add", executor=options))

    purposes = list(run.calls.values_list("purpose", flat=True))
    assert purposes == ["plan", "plan", "summary", "plan"]
    assert "".join(piece for number, piece in shown if number == 3) == "Seven."
    assert {number for number, _ in shown} == {3}


async def boast(exchange) -> None:
    """Answer with a count of tokens that nobody can have used."""
    message = {"role": "assistant", "content": "Done."}
    await exchange.send_json(
        {
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 2**40, "completion_tokens": 2**40},
        }
    )


def test_tokens_beyond_belief_do_not_fail_the_run():
    with model_server(script=[{"fault": "boast"}], faults={"boast": boast}) as server:
        agent = agent_on(server)
        agent.provider.stream = False
        agent.provider.save()
        run = executed(agent)

    assert run.status == "succeeded"
    assert run.input_tokens > 1000


def test_a_resume_starts_the_attempts_anew():
    with model_server(script=[{"fault": "503"}, "Done."], faults=FAULTS) as server:
        run = make_failed_run(agent_on(server))
        resume_run(run, by=None)
        go_on(run)

    assert (run.status, run.output) == ("succeeded", "Done.")
    assert list(run.attempts.values_list("attempt", flat=True)) == [1, 2, 3, 4, 5, 6]


def make_failed_run(agent) -> Run:
    """Make a run that has used up its five attempts."""
    run = started(agent)
    long_ago = timezone.now() - timedelta(hours=1)
    for attempt in range(1, 6):
        ModelAttempt.objects.create(
            run=run,
            number=0,
            attempt=attempt,
            code="overloaded",
            message="no",
            started_at=long_ago,
            elapsed=0.1,
            created_seq=1,
        )
    Run.objects.filter(pk=run.pk).update(
        status="failed", ended_at=long_ago, started_at=long_ago, fence=1
    )
    run.refresh_from_db()
    return run


def test_makers_know_the_functions():
    assert function_tool(make_run().owner, "echo_back").name == "echo_back"
