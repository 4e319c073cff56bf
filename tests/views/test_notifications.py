"""E-mail settings of a person, and links that answer one approval."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import password_changed
from django.test import Client
from django.utils import timezone

from runs.models import AgentStep, ApprovalLink, Decision, Notification, Preferences
from runs.services.approvals.answer import reject_step
from runs.services.approvals.by_link import create_approval_link
from runs.services.notifications import send
from tests.make import make_decision, make_run, make_step, make_user
from tests.support.threads import at_once
from tools.models import AuditEntry

pytestmark = pytest.mark.django_db


def asked(user: User, to: str = "<b>Eve</b>", **fields) -> Decision:
    run = make_run(user, status="awaiting_approval")
    step = make_step(
        run,
        tool="send_money",
        tool_input={"to": to},
        status="awaiting_approval",
    )
    return make_decision(step, **fields)


def link_to(decision: Decision, user: User) -> str:
    return f"/approve/{create_approval_link(decision, user)}/"


ANSWER = {"answer": "approve", "shown": "0" * 64}


def test_the_page_shows_the_exact_call_and_changes_nothing():
    ann = make_user("ann")
    decision = asked(ann)
    address = link_to(decision, ann)

    answer = Client().get(address)
    Client().head(address)

    page = answer.content.decode()
    assert answer.status_code == 200
    assert "Approve send_money?" in page
    assert "&lt;b&gt;Eve&lt;/b&gt;" in page
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    decision.refresh_from_db()
    assert decision.answer == ""
    assert ApprovalLink.objects.get().used_at is None


@pytest.mark.parametrize(
    ("word", "result", "status"),
    [("approve", "approved", "planned"), ("reject", "rejected", "rejected")],
)
def test_a_link_answers_once_as_its_person_and_is_audited(word, result, status):
    ann = make_user("ann")
    decision = asked(ann)
    address = link_to(decision, ann)

    first = Client().post(address, ANSWER | {"answer": word, "reason": "ok"})
    second = Client().post(address, ANSWER | {"answer": word})

    decision.refresh_from_db()
    assert (first.status_code, second.status_code) == (200, 404)
    assert (decision.answer, decision.by) == (result, ann)
    assert AgentStep.objects.get().status == status
    entry = AuditEntry.objects.filter(action=result).get()
    assert (entry.by, entry.way) == ("ann", "link")


@pytest.mark.django_db(transaction=True)
def test_of_two_clicks_at_once_one_answers():
    ann = make_user("ann")
    address = link_to(asked(ann), ann)
    found = []

    at_once(*[lambda: found.append(Client().post(address, ANSWER).status_code)] * 2)

    assert sorted(found) == [200, 404]


def test_a_form_needs_its_token():
    ann = make_user("ann")
    strict = Client(enforce_csrf_checks=True)

    assert strict.post(link_to(asked(ann), ann), ANSWER).status_code == 403


@pytest.mark.parametrize(
    "spoil",
    [
        lambda link: ApprovalLink.objects.update(
            expires_at=timezone.now() - timedelta(seconds=1)
        ),
        lambda link: ApprovalLink.objects.update(used_at=timezone.now()),
        lambda link: User.objects.filter(pk=link.user_id).update(is_active=False),
        lambda link: reject_step(link.decision, by=link.user),
        lambda link: Decision.objects.update(
            expires_at=timezone.now() - timedelta(seconds=1)
        ),
        lambda link: ApprovalLink.objects.update(user=make_user("stranger")),
        lambda link: Decision.objects.update(second_person=True),
        lambda link: Decision.objects.update(question="outcome"),
    ],
    ids=[
        *("expired", "used", "disabled", "answered"),
        *("decision-expired", "other-person", "second-person", "outcome"),
    ],
)
def test_other_links_open_and_answer_nothing(spoil):
    ann = make_user("ann")
    decision = asked(ann)
    address = link_to(decision, ann)
    spoil(ApprovalLink.objects.get())
    before = Decision.objects.values("answer", "by").get()

    assert Client().get(address).status_code == 404
    assert Client().post(address, ANSWER).status_code == 404
    assert Decision.objects.values("answer", "by").get() == before


def test_an_answer_to_another_call_is_refused_and_the_link_stays_valid():
    ann = make_user("ann")
    decision = asked(ann)
    address = link_to(decision, ann)

    answer = Client().post(address, ANSWER | {"shown": "1" * 64})

    decision.refresh_from_db()
    assert answer.status_code == 200
    assert decision.answer == ""
    assert Client().post(address, ANSWER).status_code == 200


def test_arguments_too_long_to_be_shown_are_not_approved_by_a_link():
    ann = make_user("ann")
    decision = asked(ann, to="x" * 100_000)
    address = link_to(decision, ann)

    answer = Client().post(address, ANSWER)

    decision.refresh_from_db()
    assert "too long to be approved by a link" in answer.content.decode()
    assert decision.answer == ""
    assert ApprovalLink.objects.get().used_at is None


def test_a_new_address_ends_open_links_of_the_person_alone(client, ann):
    User.objects.filter(pk=ann.pk).update(email="ann@mail.example")
    decision, bob = asked(ann), make_user("bob")
    for person in (ann, bob):
        create_approval_link(decision, person)

    client.post("/account/notifications/", {"email": "ann@mail.example"})
    assert ApprovalLink.objects.count() == 2
    client.post("/account/notifications/", {"email": "other@mail.example"})
    assert ApprovalLink.objects.get().user == bob


def test_the_page_reads_no_whole_runs(client, ann, django_assert_max_num_queries):
    run = make_run(ann)
    Notification.objects.create(
        user=ann, kind="run", key="run:1", run=run, created_at=timezone.now()
    )
    with django_assert_max_num_queries(20) as queries:
        page = client.get("/account/notifications/").content.decode()

    assert f"/runs/{run.pk}/" in page
    found = [one["sql"] for one in queries.captured_queries]
    assert not any('"runs_run"."inputs"' in sql for sql in found)


def test_too_many_test_messages_are_refused(client, ann, settings, monkeypatch):
    settings.EMAIL_IS_ON = True
    monkeypatch.setattr(send, "MAX_PER_HOUR", 1)
    User.objects.filter(pk=ann.pk).update(email="ann@mail.example")
    for _ in range(2):
        answer = client.post("/account/notifications/test/", follow=True)

    assert "Too many test messages" in answer.content.decode()
    assert Notification.objects.count() == 1


def test_neither_word_saves_nothing():
    ann = make_user("ann")
    answer = Client().post(link_to(asked(ann), ann), {"shown": "0" * 64})

    assert "Select Approve or Reject" in answer.content.decode()
    assert Decision.objects.get().answer == ""


def test_a_new_password_ends_links(client, ann):
    create_approval_link(asked(ann), ann)
    password_changed("another-Passw0rd", ann)

    assert not ApprovalLink.objects.exists()


def test_settings_are_saved(client, ann, settings):
    settings.EMAIL_IS_ON = True
    sent = {"email": "ann@mail.example", "emails_approvals": "on"}

    client.post("/account/notifications/", sent)

    ann.refresh_from_db()
    stored = Preferences.objects.get(user=ann)
    assert ann.email == "ann@mail.example"
    assert (stored.emails_approvals, stored.emails_failures) == (True, False)
    assert (
        'value="ann@mail.example"'
        in client.get("/account/notifications/").content.decode()
    )


@pytest.mark.parametrize(
    ("email", "says"),
    [("", "Enter the address"), ("no address", "valid email")],
)
def test_a_missing_or_wrong_address_is_explained(client, ann, email, says):
    sent = {"email": email, "emails_failures": "on"}

    page = client.post("/account/notifications/", sent).content.decode()

    assert says.lower() in page.lower()
    assert not Preferences.objects.filter(emails_failures=True).exists()


def test_a_test_message_is_sent_to_the_stored_address(client, ann, settings):
    settings.EMAIL_IS_ON = True
    client.post("/account/notifications/test/")
    assert not Notification.objects.exists()
    User.objects.filter(pk=ann.pk).update(email="ann@mail.example")
    client.post("/account/notifications/test/")

    page = client.get("/account/notifications/").content.decode()
    assert Notification.objects.get().user == ann
    assert re.search("Waiting", page)


def test_a_site_without_mail_says_so(client, ann):
    assert (
        "does not send e-mail" in client.get("/account/notifications/").content.decode()
    )
