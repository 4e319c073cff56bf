"""The banner of a run page takes decisions, while other calls wait."""

import pytest

from runs.models import Decision
from tests.make import make_call, make_decision, make_run, make_step, make_user

pytestmark = pytest.mark.django_db
HX = {"HX-Request": "true"}


def make_waiting_run(owner):
    """Return the address of a banner, and the open approvals of two calls."""
    run = make_run(owner, status="awaiting_approval")
    call = make_call(run)
    steps = [
        make_step(run, call=call, status="awaiting_approval", tool_input={"people": 2})
        for _ in range(2)
    ]
    return f"/runs/{run.pk}/banner/", [make_decision(step) for step in steps]


def send(client, url, decision, **given):
    given = {"decision": decision.pk, "answer": "approve"} | given
    return client.post(url, given, headers=HX)


def test_one_of_two_decisions_leaves_the_other_form(client, ann):
    url, (first, second) = make_waiting_run(ann)

    part = send(client, url, first, edited='{"people": 3}').content.decode()

    first.refresh_from_db()
    assert (first.answer, first.edited_input) == ("approved", {"people": 3})
    assert f'id="approval-form-{first.pk}"' not in part
    assert f'id="approval-form-{second.pk}"' in part


def test_the_last_decision_leads_to_the_page(client, ann):
    url, (first, second) = make_waiting_run(ann)
    send(client, url, first)

    last = send(client, url, second)

    assert last.headers["HX-Redirect"] == url.replace("banner/", "")
    page = client.get(last.headers["HX-Redirect"]).content.decode()
    assert "The run continues." in page


def test_refused_arguments_replace_only_their_form(client, ann):
    url, (first, second) = make_waiting_run(ann)

    part = send(client, url, first, edited='{"people": 3').content.decode()

    assert "a comma or a closing bracket is missing" in part
    own, other = part.split(f'id="approval-form-{second.pk}"')
    assert "hx-preserve" not in own
    assert "hx-preserve" in other


def test_a_late_decision_is_refused_with_the_reason(client, ann):
    url, (first, _) = make_waiting_run(ann)
    send(client, url, first)

    part = send(client, url, first, edited='{"people": 3}').content.decode()

    assert "already answered" in part
    assert Decision.objects.get(pk=first.pk).edited_input is None


def test_hides_what_is_someone_elses(client, ann):
    url, (first, _) = make_waiting_run(make_user())

    assert send(client, url, first).status_code == 404
    assert Decision.objects.get(pk=first.pk).answer == ""


def test_takes_no_decision_of_another_run(client, ann):
    url, _ = make_waiting_run(ann)
    _, (other, _) = make_waiting_run(ann)

    assert send(client, url, other).status_code == 404
    assert Decision.objects.get(pk=other.pk).answer == ""
