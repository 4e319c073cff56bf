"""Executing a run in this thread, against a model server on loopback."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import AgentStep, Resume, Run
from runs.services.runs.rebuild_prompt import rebuild_prompt
from runs.services.runs.resume import resume_run
from runs.store.claims import worker_state
from runs.store.recovery import MAX_RECOVERIES
from runs.worker import run_tools
from tests.fakes.model_server import model_server
from tests.worker.functions import mails
from tests.worker.run_parts import (
    FAULTS,
    agent_on,
    call,
    calls,
    executed,
    function_tool,
    go_on,
    started,
)

pytestmark = pytest.mark.django_db(transaction=True)


def test_stores_each_step_and_the_answer():
    with model_server(script=[call("add", a=1, b=2), "It is 3."]) as server:
        run = executed(agent_on(server, "add"))

    assert (run.status, run.output) == ("succeeded", "It is 3.")
    step = run.steps.get()
    assert (step.tool, step.tool_input, step.observation, step.status) == (
        "add",
        {"a": 1, "b": 2},
        "3",
        "succeeded",
    )
    assert run.calls.count() == run.model_calls == 2


def test_counts_what_it_has_used():
    with model_server(script=["Done."]) as server:
        run = executed(agent_on(server))

    call_row = run.calls.get()
    assert run.input_tokens == call_row.input_tokens > 0
    assert run.output_tokens == call_row.output_tokens > 0


def test_runs_a_react_agent_without_functions():
    script = ['Action: add\nAction Input: {"a": 2, "b": 2}', "Final Answer: 4"]
    with model_server(script=script) as server:
        run = executed(agent_on(server, "add", kind="react"))

    assert (run.status, run.output) == ("succeeded", "4")


def test_says_why_the_run_failed():
    with model_server(script=[{"fault": "401"}], faults=FAULTS) as server:
        run = executed(agent_on(server))

    assert (run.status, run.error_code) == ("failed", "auth")
    assert "key" in run.error_message


def test_keeps_a_failed_attempt_and_tries_again():
    with model_server(script=[{"fault": "503"}, "Done."], faults=FAULTS) as server:
        run = executed(agent_on(server))

    assert (run.status, run.output) == ("succeeded", "Done.")
    attempt = run.attempts.get()
    assert (attempt.status, attempt.code) == (503, "overloaded")
    assert attempt.retry_in is not None


def test_parks_for_a_long_wait():
    with model_server(script=[{"fault": "wait"}], faults=FAULTS) as server:
        run = executed(agent_on(server))

    assert run.status == "waiting"
    assert run.available_at > timezone.now() + timedelta(seconds=30)
    assert run.lease_until is None


def test_stops_at_its_limit_and_says_so():
    script = [call("add", a=1, b=1), call("add", a=1, b=1)]
    with model_server(script=script) as server:
        run = executed(agent_on(server, "add", executor={"max_iterations": 2}))

    assert (run.status, run.stop_reason) == ("limit_reached", "iterations")
    assert run.steps.count() == 2


def test_does_nothing_when_delivered_twice():
    with model_server(script=["Done."]) as server:
        run = executed(agent_on(server))
        seq = run.seq
        go_on(run)

    assert (run.seq, run.fence) == (seq, 1)


def test_runs_the_calls_of_one_reply_side_by_side_in_call_order():
    reply = calls(*(call("meet", id=n, who=n) for n in ("x", "y", "z")))
    with model_server(script=[reply, "Met."]) as server:
        run = executed(agent_on(server, "meet"))

    assert [step.observation for step in run.steps.all()] == ["x", "y", "z"]


def test_runs_more_calls_than_fit_at_once():
    reply = calls(*(call("add", id=f"c{n}", a=n, b=0) for n in range(30)))
    with model_server(script=[reply, "Added."]) as server:
        run = executed(agent_on(server, "add"))

    assert [s.observation for s in run.steps.all()] == [str(n) for n in range(30)]
    assert set(run.steps.values_list("attempts", flat=True)) == {1}


def test_tells_the_model_that_a_tool_took_too_long():
    with model_server(script=[call("hang"), "Too slow."]) as server:
        run = executed(agent_on(server, "hang"))

    step = run.steps.get()
    assert step.status == "failed"
    assert "0.3 s" in step.observation


def test_stores_what_no_database_takes():
    with model_server(script=[call("odd"), "x\x00y"]) as server:
        run = executed(agent_on(server, "odd"))

    assert run.status == "succeeded"
    assert "\x00" not in run.steps.get().observation + run.output


def test_never_stores_the_key():
    with model_server(script=["Your key is sk-very-secret-1234."]) as server:
        agent = agent_on(server)
        agent.provider.set_key("sk-very-secret-1234")
        agent.provider.save()
        run = executed(agent)

    stored = f"{run.output} {run.calls.get().reply} {run.spec.body}"
    assert "sk-very-secret-1234" not in stored
    assert "Bearer sk-very-secret-1234" in str(server.requests[-1].headers)


def test_refuses_a_tool_that_was_switched_off_after_the_start():
    with model_server(script=[call("add", a=1, b=2), "No tool."]) as server:
        agent = agent_on(server, "add")
        run = started(agent)
        agent.uses.get().tool.__class__.objects.update(enabled=False)
        go_on(run)

    step = run.steps.get()
    assert step.status == "failed"
    assert "3" not in step.observation


def lose_worker(run: Run, *, status: str = "started") -> None:
    """Leave `run` as a worker leaves it that dies while its last step runs."""
    AgentStep.objects.filter(run=run).update(status=status, observation="", attempts=1)
    Run.objects.filter(pk=run.pk).update(
        status="running", ended_at=None, lease_until="2020-01-01T00:00:00Z", output=None
    )
    run.calls.filter(number__gt=0).delete()
    Run.objects.filter(pk=run.pk).update(next_number=1, model_calls=1)


def test_runs_a_reading_call_again_after_its_worker_died():
    script = [call("add", a=1, b=2), "It is 3.", "It is 3 again."]
    with model_server(script=script) as server:
        run = executed(agent_on(server, "add"))
        lose_worker(run)
        go_on(run)

    step = run.steps.get()
    assert (run.status, run.output) == ("succeeded", "It is 3 again.")
    assert (step.observation, step.attempts) == ("3", 2)
    assert len(server.requests) == 3


def test_asks_a_person_whether_a_side_effect_happened():
    script = [call("send_mail", to="ann"), "Sent."]
    with model_server(script=script) as server:
        run = executed(agent_on(server, "send_mail"))
        lose_worker(run)
        go_on(run)

    assert run.status == "awaiting_decision"
    step = run.steps.get()
    assert step.status == "unknown"
    assert step.decisions.get().question == "outcome"


@pytest.mark.parametrize("names", [["send_mail"], ["send_mail", "add"]])
def test_a_worker_that_was_frozen_before_a_side_effect_leaves_it_to_others(
    names, monkeypatch
):
    def freeze():
        for claim in worker_state.list_claims():
            claim.last_write_at -= 1000

    monkeypatch.setattr(run_tools, "release_connection", freeze)
    arguments = {"send_mail": {"to": "ann"}, "add": {"a": 1, "b": 2}}
    reply = calls(*(call(name, **arguments[name]) for name in names))
    mails.clear()
    with model_server(script=[reply]) as server:
        run = executed(agent_on(server, *names))

    assert mails == []
    assert run.status == "running"
    assert run.steps.get(tool="send_mail").status == "started"


def test_a_side_effect_begins_where_the_reply_is_old_and_the_run_still_ours(
    monkeypatch,
):
    answer = run_tools.ToolRunner.run_calls

    def answered_late(self, effect, rows):
        self.claim.last_write_at -= 1000
        return answer(self, effect, rows)

    monkeypatch.setattr(run_tools.ToolRunner, "run_calls", answered_late)
    mails.clear()
    with model_server(script=[call("send_mail", to="ann"), "Sent."]) as server:
        run = executed(agent_on(server, "send_mail"))

    assert (run.status, mails) == ("succeeded", ["ann"])


def test_gives_a_run_up_that_kills_its_worker_again_and_again():
    with model_server(script=[call("add", a=1, b=2), "Never asked."]) as server:
        run = executed(agent_on(server, "add"))
        lose_worker(run)
        Run.objects.filter(pk=run.pk).update(recoveries=MAX_RECOVERIES - 1)
        go_on(run)

    assert (run.status, run.error_code) == ("failed", "crashed_repeatedly")
    assert run.steps.count() == 1


def test_a_zombie_writes_nothing(monkeypatch):
    monkeypatch.setattr("tools.sandbox.abandoned_calls.QUICK_SECONDS", 60.0)
    with model_server(script=[call("steal"), "Late."]) as server:
        run = executed(agent_on(server, "steal"))

    assert (run.status, run.fence) == ("running", 2)
    assert not run.calls.exists()
    assert not run.steps.exists()


def test_a_resumed_run_keeps_its_steps_and_asks_no_reply_twice():
    script = [call("add", a=1, b=1), call("add", a=2, b=2), "Done."]
    with model_server(script=script) as server:
        agent = agent_on(server, "add", executor={"max_iterations": 1})
        run = executed(agent)
        resume_run(run, by=agent.owner, limits={"max_iterations": 5})
        go_on(run)

    assert (run.status, run.output) == ("succeeded", "Done.")
    assert [step.observation for step in run.steps.all()] == ["2", "4"]
    assert len(server.requests) == 3
    assert Resume.objects.get(run=run).at_index == 1


def test_every_prompt_can_be_rebuilt_as_it_was_sent():
    script = [call("add", a=1, b=1), call("add", a=2, b=2), "Done."]
    with model_server(script=script) as server:
        run = executed(agent_on(server, "add"))

    rebuilt = [rebuild_prompt(row) for row in run.calls.all()]
    assert [prompt.matches_digest for prompt in rebuilt if prompt] == [True] * 3
    sent = server.requests[-1].body["messages"]
    assert len(rebuilt[-1].request.messages) == len(sent)


def test_a_changed_record_is_not_shown_as_what_was_sent():
    with model_server(script=[call("add", a=1, b=1), "Done."]) as server:
        run = executed(agent_on(server, "add"))
    run.steps.update(observation="forged")

    assert not rebuild_prompt(run.calls.get(number=1)).matches_digest


def test_uses_the_frozen_tool_after_an_edit():
    with model_server(script=[call("add", a=1, b=2), "3"]) as server:
        agent = agent_on(server, "add")
        run = started(agent)
        agent.executor = {"max_iterations": 0}
        agent.save()
        go_on(run)

    assert run.status == "succeeded"


def test_makers_name_a_registered_function(django_user_model):
    owner = django_user_model.objects.create_user("maker")

    assert function_tool(owner, "add").args_schema["required"] == ["a", "b"]
