"""Answering what a run asks a person."""

import json
import re
import threading
from functools import partial

import pytest
from django.contrib.auth.models import Group

from runs.models import AgentStep, Decision, Run
from runs.services.approvals.answer import (
    approve_step,
    reject_step,
    revoke_allowance,
    settle_outcome,
)
from runs.services.approvals.granted import APPROVED_CALL_CHANGED
from runs.services.errors import (
    AlreadyDecided,
    ArgumentsRefused,
    NotAllowed,
    ShownCallChanged,
)
from runs.services.health.invariants import check_invariants
from tests.fakes.model_server import model_server
from tests.make import make_decision, make_run, make_step, make_user
from tests.support.threads import at_once
from tests.worker import functions
from tests.worker.run_parts import agent_on, ask_before, call, calls, executed, go_on
from tools.audit.entry import AuditEntry

pytestmark = pytest.mark.django_db(transaction=True)


def asking(server, *, to: str = "ann"):
    """Return a run that waits for a yes before it sends a mail."""
    agent = agent_on(server, "send_mail")
    ask_before(agent, "send_mail")
    return executed(agent)


def test_nothing_runs_before_the_approval():
    functions.mails.clear()
    with model_server(script=[call("send_mail", to="ann")]) as server:
        run = asking(server)

    assert (run.status, functions.mails) == ("awaiting_approval", [])
    assert run.lease_until is None
    shown = run.steps.get().decisions.get().shown
    target = "Python function tests.worker.functions:send_mail"
    assert shown == {
        "tool": "send_mail",
        "tool_input": {"to": "ann"},
        "target": target,
    }


def test_an_approved_call_runs_once_and_the_run_goes_on():
    functions.mails.clear()
    with model_server(script=[call("send_mail", to="ann"), "Sent."]) as server:
        run = asking(server)
        approve_step(run.steps.get().decisions.get(), by=run.owner)
        go_on(run)

    assert (run.status, functions.mails) == ("succeeded", ["ann"])


def test_edited_arguments_are_what_runs():
    functions.mails.clear()
    with model_server(script=[call("send_mail", to="ann"), "Sent."]) as server:
        run = asking(server)
        decision = run.steps.get().decisions.get()
        approve_step(decision, by=run.owner, edited_input={"to": "bob"})
        go_on(run)

    assert functions.mails == ["bob"]


def test_the_model_reads_why_a_call_was_rejected():
    functions.mails.clear()
    with model_server(script=[call("send_mail", to="ann"), "Fine."]) as server:
        run = asking(server)
        decision = run.steps.get().decisions.get()
        reject_step(decision, by=run.owner, reason="Ann is on leave.")
        go_on(run)

    assert (run.status, functions.mails) == ("succeeded", [])
    assert "Ann is on leave." in server.requests[-1].raw.decode()


def test_calls_that_need_no_approval_run_first():
    reply = calls(call("send_mail", to="ann"), call("add", a=1, b=2))
    with model_server(script=[reply]) as server:
        agent = agent_on(server, "send_mail", "add")
        ask_before(agent, "send_mail")
        run = executed(agent)

    statuses = list(run.steps.values_list("tool", "status"))
    assert statuses == [("send_mail", "awaiting_approval"), ("add", "succeeded")]


def test_the_second_answer_is_refused():
    run = make_run(status="awaiting_approval")
    decision = make_decision(make_step(run, status="awaiting_approval"))
    approve_step(decision, by=run.owner)

    with pytest.raises(AlreadyDecided):
        reject_step(decision, by=make_user(is_superuser=True))
    decision.refresh_from_db()
    assert decision.answer == "approved"


def test_the_run_waits_for_the_last_answer():
    run = make_run(status="awaiting_approval")
    first, second = (
        make_decision(make_step(run, status="awaiting_approval")) for _ in range(2)
    )
    approve_step(first, by=run.owner)
    run.refresh_from_db()
    assert run.status == "awaiting_approval"

    approve_step(second, by=run.owner)
    run.refresh_from_db()
    assert run.status == "queued"


@pytest.mark.parametrize(
    ("answer", "step_status", "run_status"),
    [
        pytest.param("happened", "succeeded", "queued", id="happened"),
        pytest.param("retry", "planned", "queued", id="retry"),
        pytest.param("skip", "skipped", "queued", id="skip"),
        pytest.param("fail", "unknown", "failed", id="fail"),
    ],
)
def test_an_unknown_outcome_has_four_answers(answer, step_status, run_status):
    run = make_run(status="awaiting_decision")
    step = make_step(run, status="unknown", effect="side_effect")
    decision = make_decision(step, question="outcome")

    settle_outcome(decision, by=run.owner, answer=answer, result="done by hand")
    run.refresh_from_db()
    step.refresh_from_db()
    assert (step.status, run.status) == (step_status, run_status)


def test_failing_the_run_closes_its_other_steps():
    run = make_run(status="awaiting_decision")
    lost, planned, asking = (
        make_step(run, status=status, effect="side_effect")
        for status in ("unknown", "planned", "awaiting_approval")
    )
    decision = make_decision(lost, question="outcome")
    other = make_decision(asking)

    settle_outcome(decision, by=run.owner, answer="fail")
    statuses = list(run.steps.values_list("status", flat=True))
    other.refresh_from_db()
    assert statuses == ["unknown", "canceled", "canceled"]
    assert (other.answer, other.by) == ("withdrawn", run.owner)
    planned.refresh_from_db()
    run.refresh_from_db()
    assert planned.changed_seq == run.seq


def test_an_unknown_answer_is_refused():
    run = make_run(status="awaiting_decision")
    decision = make_decision(make_step(run, status="unknown"), question="outcome")

    with pytest.raises(NotAllowed):
        settle_outcome(decision, by=run.owner, answer="perhaps")


def test_the_model_is_given_what_really_ran():
    functions.mails.clear()
    with model_server(script=[call("send_mail", to="ann"), "Sent."]) as server:
        run = asking(server)
        decision = run.steps.get().decisions.get()
        approve_step(
            decision, by=run.owner, edited_input={"to": "bob"}, reason="Ann left."
        )
        go_on(run)

    message = run.steps.get().observation
    assert message.startswith("A person changed the arguments of this call.")
    assert '{"to": "bob"}' in message
    assert "Ann left." in message
    assert "sent to bob" in message
    assert json.loads(server.requests[-1].raw)["messages"][-1]["content"] == message


@pytest.mark.parametrize(
    ("edited", "said"),
    [
        pytest.param({}, "'to' is a required property", id="missing"),
        pytest.param({"to": 3}, "to: 3 is not of type 'string'", id="wrong type"),
        pytest.param(
            {"to": "b", "cc": "c"},
            "cc: The tool does not have this argument",
            id="unknown",
        ),
        pytest.param("bob", "Enter a JSON object.", id="no object"),
    ],
)
def test_changed_arguments_must_fit_the_tool(edited, said):
    with model_server(script=[call("send_mail", to="ann")]) as server:
        decision = asking(server).steps.get().decisions.get()

    with pytest.raises(ArgumentsRefused, match=re.escape(said)):
        approve_step(decision, by=decision.step.run.owner, edited_input=edited)
    decision.refresh_from_db()
    assert decision.answer == ""


def test_only_what_was_shown_can_be_approved():
    run = make_run(status="awaiting_approval")
    decision = make_decision(make_step(run, status="awaiting_approval"))

    with pytest.raises(ShownCallChanged):
        approve_step(decision, by=run.owner, shown="another digest")


def test_a_call_that_was_changed_after_the_approval_is_not_run():
    functions.mails.clear()
    with model_server(script=[call("send_mail", to="ann"), "Odd."]) as server:
        run = asking(server)
        approve_step(run.steps.get().decisions.get(), by=run.owner)
        run.steps.update(tool_input={"to": "eve"})
        go_on(run)

    assert functions.mails == []
    assert run.steps.get().observation == APPROVED_CALL_CHANGED


def test_a_planned_call_without_approval_asks():
    functions.mails.clear()
    with model_server(script=[call("send_mail", to="ann")]) as server:
        run = asking(server)
        approve_step(run.steps.get().decisions.get(), by=run.owner)
        Decision.objects.all().delete()
        go_on(run)

    assert (run.status, functions.mails) == ("awaiting_approval", [])
    assert run.steps.get().status == "awaiting_approval"


def test_numbers_a_database_writes_otherwise_are_still_the_same_call():
    script = [call("pay_out", amount=1e16, rate=1.50), "Paid."]
    with model_server(script=script) as server:
        agent = agent_on(server, "pay_out")
        ask_before(agent, "pay_out")
        run = executed(agent)
        approve_step(run.steps.get().decisions.get(), by=run.owner)
        go_on(run)

    assert run.steps.get().status == "succeeded"


def test_an_answer_by_somebody_else_is_refused():
    run = make_run(status="awaiting_approval")
    decision = make_decision(make_step(run, status="awaiting_approval"))

    with pytest.raises(NotAllowed):
        approve_step(decision, by=make_user())


def test_a_group_of_the_tool_answers_and_the_owner_does_not():
    functions.mails.clear()
    billing = Group.objects.create(name="billing")
    mara = make_user("mara")
    mara.groups.add(billing)
    with model_server(script=[call("send_mail", to="ann"), "Sent."]) as server:
        agent = agent_on(server, "send_mail")
        ask_before(agent, "send_mail")
        agent.uses.get().tool.__class__.objects.update(approvers=billing)
        run = executed(agent)
        decision = run.steps.get().decisions.get()
        with pytest.raises(NotAllowed):
            approve_step(decision, by=run.owner)
        approve_step(decision, by=mara)
        go_on(run)

    assert functions.mails == ["ann"]


@pytest.mark.parametrize("has_group", [True, False], ids=["group", "administrators"])
def test_a_tool_that_requires_a_second_person_is_not_approved_by_who_started(has_group):
    functions.mails.clear()
    billing = Group.objects.create(name="billing")
    with model_server(script=[call("send_mail", to="ann"), "Sent."]) as server:
        agent = agent_on(server, "send_mail")
        agent.owner.groups.add(billing)
        tools = agent.uses.get().tool.__class__.objects
        tools.update(
            approval="side_effects",
            second_person=True,
            approvers=billing if has_group else None,
        )
        agent.uses.update(policy="allow")
        run = executed(agent)
        decision = run.steps.get().decisions.get()
        for owner in (run.owner, make_admin(run.owner)):
            with pytest.raises(NotAllowed):
                approve_step(decision, by=owner)
        mara = make_user("mara", is_superuser=not has_group)
        mara.groups.add(billing)
        approve_step(decision, by=mara)
        go_on(run)

    assert functions.mails == ["ann"]


def make_admin(user):
    user.is_superuser = True
    user.save()
    return user


def test_an_approval_for_the_whole_run_covers_calls_now_and_later():
    functions.mails.clear()
    both = calls(call("send_mail", to="a"), call("send_mail", id="2", to="b"))
    script = [both, call("send_mail", to="c"), "Sent."]
    with model_server(script=script) as server:
        run = asking(server)
        first = run.steps.first().decisions.get()
        approve_step(first, by=run.owner, alike=True, reason="all fine")
        go_on(run)

    assert (run.status, sorted(functions.mails)) == ("succeeded", ["a", "b", "c"])
    last = run.steps.last().decisions.get()
    assert (last.answer, last.by, last.reason) == ("approved", run.owner, "all fine")
    assert last.allowance == run.allowances.get()
    assert list(check_invariants()) == []


def test_decisions_by_an_allowance_keep_the_group_of_approvers():
    billing = Group.objects.create(name="billing")
    mara = make_user("mara")
    mara.groups.add(billing)
    script = [call("send_mail", to="a"), call("send_mail", to="b"), "Sent."]
    with model_server(script=script) as server:
        agent = agent_on(server, "send_mail")
        ask_before(agent, "send_mail")
        agent.uses.get().tool.__class__.objects.update(approvers=billing)
        run = executed(agent)
        approve_step(run.steps.get().decisions.get(), by=mara, alike=True)
        go_on(run)

    later = run.steps.last().decisions.get()
    assert (later.allowance, later.by) == (run.allowances.get(), mara)
    assert later.approvers == billing
    assert later not in Decision.objects.answerable_by(run.owner)


@pytest.mark.parametrize("change", ["second person", "group", "left"])
def test_an_allowance_ends_where_its_giver_may_no_longer_approve(change):
    functions.mails.clear()
    billing = Group.objects.create(name="billing")
    script = [call("send_mail", to="a"), call("send_mail", to="b")]
    with model_server(script=script) as server:
        agent = agent_on(server, "send_mail")
        ask_before(agent, "send_mail")
        tools = agent.uses.get().tool.__class__.objects
        giver = agent.owner
        if change == "left":
            tools.update(approvers=billing)
            giver = make_user("mara")
            giver.groups.add(billing)
        run = executed(agent)
        approve_step(run.steps.get().decisions.get(), by=giver, alike=True)
        if change == "second person":
            tools.update(second_person=True)
        elif change == "group":
            tools.update(approvers=billing)
        else:
            giver.groups.clear()
        go_on(run)

    assert (run.status, functions.mails) == ("awaiting_approval", ["a"])
    later = run.steps.last().decisions.get()
    assert (later.answer, later.by) == ("", None)


def test_an_answer_for_all_calls_leaves_those_that_need_other_people():
    both = calls(call("send_mail", to="a"), call("send_mail", id="2", to="b"))
    with model_server(script=[both]) as server:
        run = asking(server)
    first, second = Decision.objects.order_by("pk")
    Decision.objects.filter(pk=second.pk).update(second_person=True)

    approve_step(first, by=run.owner, alike=True)

    second.refresh_from_db()
    assert second.answer == ""


def test_an_approval_that_was_taken_back_asks_again():
    functions.mails.clear()
    script = [call("send_mail", to="a"), call("send_mail", to="b")]
    with model_server(script=script) as server:
        run = asking(server)
        approve_step(run.steps.get().decisions.get(), by=run.owner, alike=True)
        allowance = run.allowances.get()
        assert revoke_allowance(allowance, by=run.owner)
        assert not revoke_allowance(allowance, by=run.owner)
        go_on(run)

    assert (run.status, functions.mails) == ("awaiting_approval", ["a"])


def test_an_unknown_outcome_is_asked_about_before_what_needs_an_approval():
    reply = calls(call("send_mail", to="a"), call("add", a=1, b=2))
    with model_server(script=[reply, "Done."]) as server:
        agent = agent_on(server, "send_mail", "add")
        ask_before(agent, "add")
        run = executed(agent)
        lost, waits = run.steps.all()
        Decision.objects.all().delete()
        AgentStep.objects.filter(pk=lost.pk).update(
            status="started", observation="", elapsed=None
        )
        AgentStep.objects.filter(pk=waits.pk).update(status="awaiting_approval")
        Run.objects.filter(pk=run.pk).update(status="queued")
        go_on(run)
        assert run.status == "awaiting_decision"
        settle_outcome(lost.decisions.get(), by=run.owner, answer="skip")
        go_on(run)

    assert run.status == "awaiting_approval"
    assert [d.step_id for d in Decision.objects.open()] == [waits.pk]
    assert list(check_invariants()) == []


def test_two_people_at_once_decide_once():
    run = make_run(status="awaiting_approval")
    decision = make_decision(make_step(run, status="awaiting_approval"))
    everyone_sees_it, refused = threading.Barrier(4, timeout=30), []

    def click(answer):
        own = Decision.objects.select_related("step__run__spec").get(pk=decision.pk)
        everyone_sees_it.wait()
        try:
            answer(own, by=run.owner)
        except AlreadyDecided as error:
            refused.append(error)

    at_once(*(partial(click, answer) for answer in (approve_step, reject_step) * 2))

    decision.refresh_from_db()
    run.refresh_from_db()
    assert len(refused) == 3
    assert decision.answer in ("approved", "rejected")
    assert run.status == "queued"
    assert AuditEntry.objects.filter(noun="tool call").count() == 1
