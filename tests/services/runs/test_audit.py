"""What people decide about runs and definitions is in the audit log."""

import pytest

from runs.services.accounts.tokens import create_token, revoke_token
from runs.services.agents.publish import publish_agent
from runs.services.approvals.answer import approve_step, reject_step, settle_outcome
from runs.services.runs.cancel import cancel_run
from runs.services.runs.resume import resume_run
from tests.make import (
    make_agent,
    make_decision,
    make_provider,
    make_run,
    make_step,
    make_tool,
    make_user,
)
from tools.audit.entry import AuditEntry

pytestmark = pytest.mark.django_db


def asked(question="approval"):
    """Return an open question about a call of a waiting run."""
    waits = {"approval": "awaiting_approval", "outcome": "awaiting_decision"}
    run = make_run(status=waits[question])
    step = make_step(
        run, status="awaiting_approval" if question == "approval" else "unknown",
        tool="send_mail", tool_input={"to": "ann"},
    )  # fmt: skip
    return make_decision(step, question=question)


def newest(noun):
    return AuditEntry.objects.filter(noun=noun).first()


def test_an_approval_is_kept_with_the_edited_arguments():
    decision, bob = asked(), make_user("bob", is_superuser=True)
    approve_step(decision, by=bob, edited_input={"to": "cleo"}, reason="wrong person")

    entry = newest("tool call")
    assert (entry.by, entry.action, entry.note) == ("bob", "approved", "wrong person")
    assert entry.thing == f"send_mail, call 0 of run {decision.step.run_id}"
    assert entry.changes == {"arguments": [{"to": "ann"}, {"to": "cleo"}]}


def test_a_no_is_kept_with_its_reason():
    reject_step(asked(), by=make_user("bob", is_superuser=True), reason="not now")

    assert (newest("tool call").action, newest("tool call").note) == (
        "rejected",
        "not now",
    )


def test_an_answer_about_an_unknown_outcome_is_kept():
    settle_outcome(
        asked("outcome"), by=make_user("bob", is_superuser=True), answer="retry"
    )

    assert newest("tool call").action == "settled: retry"


def test_stopping_and_resuming_by_a_person_is_kept():
    bob = make_user("bob", is_superuser=True)
    run, over = make_run(status="queued"), make_run(status="failed")

    cancel_run(run, by=bob)
    assert (newest("run").by, newest("run").action) == ("bob", "canceled")
    assert newest("run").thing_number == run.pk

    resume_run(over, by=bob, limits={"max_iterations": 40})
    assert (newest("run").action, newest("run").thing_number) == ("resumed", over.pk)
    assert newest("run").changes == {"max_iterations": [None, 40]}


def test_publishing_an_agent_is_kept():
    agent = make_agent(name="Planner")

    publish_agent(agent, by=agent.owner)

    assert newest("agent version").action == "published"
    assert newest("agent version").thing == "Planner v1"


def test_a_tool_given_to_an_agent_is_kept():
    agent = make_agent(name="Planner", tools=(make_tool(name="weather"),))
    use = agent.uses.get()
    use.policy = "ask"
    use.save()

    assert newest("agent tool").thing == "Planner: weather"
    assert newest("agent tool").changes == {"policy": ["default", "ask"]}


def test_tokens_are_kept_without_themselves():
    token = create_token(ann := make_user(), "nightly")
    revoke_token(row := ann.api_tokens.get())

    kept = AuditEntry.objects.filter(noun="API token")
    assert [entry.action for entry in kept] == ["revoked", "made"]
    assert token not in str(list(kept.values()))
    assert row.digest not in str(list(kept.values()))


def test_a_providers_key_is_kept_as_a_word():
    provider = make_provider()
    provider.set_key("sk-123")
    provider.save()

    assert newest("provider").changes == {"sealed_key": ["", "[secret]"]}
