"""`/api/v1/approvals`: what runs ask people, and the answers."""

import pytest

from runs.models import AgentStep
from tests.api.make_client import Api, fields_of
from tests.make import make_decision, make_run, make_step, make_user

pytestmark = pytest.mark.django_db


def asking(**fields):
    """Make an open question about a call that pays."""
    run = make_run(status="awaiting_approval")
    call = {"tool": "pay", "tool_input": {"amount": 49}}
    step = make_step(run, status="awaiting_approval", effect="side_effect", **call)
    shown = {**call, "target": "POST https://bank.example.com/pay"}
    return make_decision(step, **{"shown": shown, **fields})


def owner_of(question):
    return question.step.run.owner


def test_lists_open_approvals_with_the_exact_call():
    question = asking()

    found = Api(owner_of(question)).get("approvals").json()["data"]

    assert [one["id"] for one in found] == [question.pk]
    assert found[0]["arguments"] == {"amount": 49}
    assert found[0]["target"] == "POST https://bank.example.com/pay"
    assert (found[0]["answer"], found[0]["digest"]) == (None, "0" * 64)


def test_lists_answered_ones_and_those_of_one_run():
    question = asking(answer="rejected", at="2026-01-01T00:00:00Z", reason="no")
    api = Api(owner_of(question))

    answered = api.get("approvals?status=answered").json()["data"]
    other = api.get("approvals?status=answered&run=1000000").json()["data"]

    assert [(one["answer"], one["reason"]) for one in answered] == [("rejected", "no")]
    assert (api.get("approvals").json()["data"], other) == ([], [])


@pytest.mark.parametrize("query", ["status=all", "run=x", "page=2"])
def test_refuses_queries_it_does_not_know(query):
    answer = Api(make_user()).get(f"approvals?{query}")

    assert (answer.status_code, fields_of(answer)) == (422, [query.split("=")[0]])


@pytest.mark.parametrize("status", ["open", "answered"])
@pytest.mark.parametrize(
    "at", ["0001-01-01T00:00:00%2B14:00", "9999-12-31T23:59:59-12:00"]
)
def test_refuses_a_cursor_outside_of_the_calendar(status, at):
    answer = Api(make_user()).get(f"approvals?status={status}&cursor={at}~1")

    assert (answer.status_code, fields_of(answer)) == (422, ["cursor"])


def test_an_approved_call_runs():
    question = asking()

    answer = Api(owner_of(question)).post(
        f"approvals/{question.pk}/approve", {"digest": "0" * 64, "alike": True}
    )

    shape = answer.json()
    assert (answer.status_code, shape["answer"]) == (200, "approved")
    assert shape["for_the_whole_run"]
    assert shape["by"] == owner_of(question).get_username()
    assert AgentStep.objects.select_related("run").get().run.status == "queued"


def test_edited_arguments_run_instead():
    question = asking()

    answer = Api(owner_of(question)).post(
        f"approvals/{question.pk}/approve", {"arguments": {"amount": 9}}
    )

    assert answer.json()["edited_arguments"] == {"amount": 9}
    assert AgentStep.objects.get().tool_input == {"amount": 9}


def test_a_rejection_tells_the_model_why():
    question = asking()

    Api(owner_of(question)).post(
        f"approvals/{question.pk}/reject", {"reason": "too much"}
    )

    assert "too much" in AgentStep.objects.get().observation


def test_an_unknown_outcome_is_settled():
    run = make_run(status="awaiting_decision")
    question = make_decision(make_step(run, status="unknown"), question="outcome")

    answer = Api(run.owner).post(
        f"approvals/{question.pk}/settle", {"answer": "happened", "result": "sent"}
    )

    assert answer.json()["answer"] == "happened"
    assert AgentStep.objects.get().observation == "sent"


def test_the_second_answer_is_a_conflict():
    question = asking()
    api = Api(owner_of(question))
    api.post(f"approvals/{question.pk}/reject")

    answer = api.post(f"approvals/{question.pk}/approve")

    assert (answer.status_code, fields_of(answer)) == (409, ["answer"])


@pytest.mark.parametrize(
    ("way", "body", "status", "fields"),
    [
        ("approve", {"digest": "1" * 64}, 409, ["digest"]),
        ("approve", {"colour": 1}, 422, ["colour"]),
        ("approve", {"alike": "yes"}, 422, ["alike"]),
        ("settle", {"answer": "happened"}, 403, ["answer"]),
        ("settle", {}, 422, ["answer"]),
    ],
)
def test_refuses_and_answers_nothing(way, body, status, fields):
    question = asking()

    answer = Api(owner_of(question)).post(f"approvals/{question.pk}/{way}", body)

    assert (answer.status_code, fields_of(answer)) == (status, fields)
    question.refresh_from_db()
    assert question.answer == ""


def test_arguments_that_do_not_fit_are_named():
    question = asking()
    spec = question.step.run.spec
    schema = {"type": "object", "properties": {"amount": {"type": "integer"}}}
    spec.body["tools"] = [{"name": "pay", "asks": True, "args_schema": schema}]
    spec.save()

    answer = Api(owner_of(question)).post(
        f"approvals/{question.pk}/approve", {"arguments": {"amount": "much"}}
    )

    assert (answer.status_code, fields_of(answer)) == (422, ["arguments.amount"])


def test_a_stranger_gets_404_and_a_caller_without_token_401():
    question = asking()

    assert Api(make_user()).get(f"approvals/{question.pk}").status_code == 404
    answer = Api(make_user()).post(f"approvals/{question.pk}/approve")
    assert answer.status_code == 404
    question.refresh_from_db()
    assert question.answer == ""
