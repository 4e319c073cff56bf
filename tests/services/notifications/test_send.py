"""E-mail: who is notified of what, once, by a real mail server, whatever it says."""

import re
from datetime import timedelta
from typing import ClassVar

import pytest
from django.contrib.auth.models import Group, User
from django.core.mail.backends.base import BaseEmailBackend
from django.utils import timezone

from runs.models import ApprovalLink, Notification, Preferences, Run
from runs.services.approvals.answer import reject_step
from runs.services.notifications import send as sending
from runs.services.notifications.send import (
    RETRY_DELAYS,
    TooManyTests,
    claim_due_notification,
    request_test_mail,
    send_due_notifications,
)
from runs.services.schedules.fire import fire_due_schedules
from runs.services.search.index_runs import index_runs
from runs.store.mail import notifications as writing
from runs.store.mail.notifications import notify_of_decisions
from tests.fakes.smtp_server import mail_server
from tests.make import (
    make_decision,
    make_run,
    make_schedule,
    make_step,
    make_user,
)

pytestmark = pytest.mark.django_db

EVERYTHING = {
    "emails_approvals": True,
    "emails_failures": True,
    "emails_schedules": True,
}


@pytest.fixture(autouse=True)
def on(settings):
    settings.EMAIL_IS_ON = True


def reader(name: str = "ann", **wanted: bool) -> User:
    """Make a person with an address who wants messages; all, if none is named."""
    user = make_user(name, email=f"{name}@mail.example")
    Preferences.objects.create(user=user, **(wanted or EVERYTHING))
    return user


def open_decision(owner: User, **fields):
    run = make_run(owner, status="awaiting_approval")
    step = make_step(run, tool="send_money", status="awaiting_approval")
    decision = make_decision(step, **fields)
    notify_of_decisions(run, [decision])
    return decision


def sent(settings):
    with mail_server(settings) as server:
        send_due_notifications()
    return server


def test_an_approval_is_announced_with_a_link_and_without_arguments(settings):
    settings.PUBLIC_URL = "https://agents.example"
    decision = open_decision(reader())

    server = sent(settings)

    (mail,) = server.received
    body = mail.get_content()
    assert mail["To"] == "ann@mail.example"
    assert mail["Subject"].endswith("needs approval to call send_money")
    assert mail["Auto-Submitted"] == "auto-generated"
    assert f"https://agents.example/approvals/{decision.pk}/" in body
    assert re.search(r"https://agents\.example/approve/[\w-]{43}/", body)
    assert "2 + 2" not in body
    assert Notification.objects.get().status == "sent"


def test_only_those_who_may_answer_are_notified(settings):
    group = Group.objects.create(name="approvers")
    owner, bob = reader("owner"), reader("bob")
    bob.groups.add(group)
    reader("stranger")
    open_decision(owner, approvers=group)

    assert [mail["To"] for mail in sent(settings).received] == ["bob@mail.example"]


def test_the_owner_is_not_asked_where_a_second_person_must_answer(settings):
    group = Group.objects.create(name="approvers")
    owner = reader("owner")
    owner.groups.add(group)
    open_decision(owner, approvers=group, second_person=True)

    assert not Notification.objects.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"is_active": False},
        {"email": ""},
    ],
)
def test_people_without_account_or_address_get_nothing(settings, change):
    owner = reader()
    User.objects.filter(pk=owner.pk).update(**change)
    open_decision(owner)

    assert not Notification.objects.exists()


def test_nothing_is_written_for_those_who_want_nothing():
    open_decision(reader(emails_failures=True))

    assert not Notification.objects.exists()


def test_a_site_without_mail_writes_nothing(settings):
    settings.EMAIL_IS_ON = False
    open_decision(reader())

    assert not Notification.objects.exists()


def test_what_was_answered_meanwhile_is_not_sent(settings):
    owner = reader()
    decision = open_decision(owner)
    reject_step(decision, by=owner)

    assert sent(settings).received == []
    assert Notification.objects.get().status == "dropped"


def test_a_failed_run_is_announced_once_without_secrets(settings):
    secret = "sk-abcdefghijklmnopqrstuvwxyz123456"
    owner = reader()
    run = make_run(owner, status="failed", error_message=f"No {secret}")
    make_run(owner, status="failed", is_test=True)
    make_run(owner, status="succeeded")
    make_run(make_user(), status="failed")
    index_runs()
    Run.objects.update(indexed=False)
    index_runs()

    (mail,) = sent(settings).received
    assert mail["Subject"].endswith(f"run {run.pk} failed")
    assert secret not in mail.get_content()
    assert f"/runs/{run.pk}/" in mail.get_content()


def test_a_run_that_failed_long_ago_is_not_announced():
    long_ago = timezone.now() - timedelta(days=2)
    make_run(reader(), status="failed", ended_at=long_ago)
    index_runs()

    assert not Notification.objects.exists()


def test_a_schedule_that_cannot_start_is_announced(settings):
    past = timezone.now() - timedelta(minutes=1)
    schedule = make_schedule(reader(), name="Nightly", next_at=past)
    schedule.agent.archived_at = past
    schedule.agent.save()
    fire_due_schedules()

    (mail,) = sent(settings).received
    assert mail["Subject"] == "Schedule Nightly could not start a run"
    assert "archived" in mail.get_content()


def test_a_flood_ends_at_a_number_per_hour(monkeypatch):
    monkeypatch.setattr(writing, "MAX_PER_HOUR", 2)
    owner = reader()
    for _ in range(4):
        open_decision(owner)

    assert Notification.objects.count() == 2


def test_a_subject_is_one_line(settings):
    owner = reader()
    decision = open_decision(owner)
    agent = decision.step.run.agent
    agent.name = "A\r\nBcc: x@y.example"
    agent.save()

    (mail,) = sent(settings).received
    assert mail["Bcc"] is None
    assert mail["Subject"].startswith("A Bcc: x@y.example")


def test_the_language_is_that_of_the_reader(settings):
    owner = reader()
    Preferences.objects.filter(user=owner).update(language="zh-hans")
    request_test_mail(owner)

    assert len(sent(settings).received) == 1


def test_a_mail_server_that_is_away_loses_nothing(settings):
    request_test_mail(reader())
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    send_due_notifications()

    row = Notification.objects.get()
    assert (row.status, row.attempts) == ("waiting", 1)
    assert "could not be reached" in row.error
    assert row.available_at > timezone.now()
    Notification.objects.update(available_at=timezone.now() - timedelta(seconds=1))
    assert len(sent(settings).received) == 1


def test_a_refused_address_is_given_up(settings):
    request_test_mail(reader())
    with mail_server(settings) as server:
        server.refusals["RCPT"] = "550 no such person"
        send_due_notifications()

    row = Notification.objects.get()
    assert (row.status, row.available_at) == ("failed", None)
    assert row.error.endswith("no such person")


def test_a_busy_server_is_tried_again_and_at_last_given_up(settings):
    request_test_mail(reader())
    with mail_server(settings) as server:
        server.refusals["DATA"] = "451 try later"
        for _ in range(len(RETRY_DELAYS) + 1):
            assert Notification.objects.get().status == "waiting"
            past = timezone.now() - timedelta(seconds=1)
            Notification.objects.update(available_at=past)
            send_due_notifications()

    assert Notification.objects.get().status == "failed"
    assert "451: try later" in Notification.objects.get().error


def test_a_claimed_message_is_left_to_its_worker():
    request_test_mail(reader())
    Notification.objects.update(available_at=timezone.now() - timedelta(seconds=1))

    assert claim_due_notification() is not None
    assert claim_due_notification() is None


class AttemptsBackend(BaseEmailBackend):
    """Records the attempts of all messages whenever one is sent."""

    seen: ClassVar[list[list[int]]] = []

    def send_messages(self, email_messages):
        rows = Notification.objects.order_by("pk")
        self.seen.append(list(rows.values_list("attempts", flat=True)))
        return len(email_messages)


def test_a_message_is_claimed_only_just_before_it_is_sent(settings):
    settings.EMAIL_BACKEND = f"{__name__}.AttemptsBackend"
    AttemptsBackend.seen.clear()
    user = reader()
    for _ in range(2):
        request_test_mail(user)

    assert send_due_notifications() == 2
    assert AttemptsBackend.seen == [[1, 0], [1, 1]]


class BrokenBackend(BaseEmailBackend):
    """Fails as no mail server does."""

    def send_messages(self, email_messages):
        raise RuntimeError("secret text")


def test_a_message_that_cannot_be_sent_is_given_up_and_holds_up_no_other(settings):
    settings.EMAIL_BACKEND = f"{__name__}.BrokenBackend"
    user = reader()
    for _ in range(2):
        request_test_mail(user)
    past = timezone.now() - timedelta(seconds=1)
    for _ in range(len(RETRY_DELAYS) + 1):
        Notification.objects.update(available_at=past)
        assert send_due_notifications() == 2

    assert set(Notification.objects.values_list("status", "available_at", "error")) == {
        ("failed", None, "Internal error (RuntimeError), see the log.")
    }


def test_test_messages_end_at_a_number_per_hour(monkeypatch):
    monkeypatch.setattr(sending, "MAX_PER_HOUR", 2)
    user = reader()
    request_test_mail(user)
    request_test_mail(user)

    with pytest.raises(TooManyTests):
        request_test_mail(user)
    request_test_mail(reader("bob"))
    Notification.objects.update(created_at=timezone.now() - timedelta(hours=2))
    request_test_mail(user)


def test_an_unknown_outcome_has_no_link_that_answers(settings):
    open_decision(reader(), question="outcome")

    (mail,) = sent(settings).received
    assert "/approve/" not in mail.get_content()
    assert not ApprovalLink.objects.exists()
