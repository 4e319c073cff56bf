"""Sending by hand."""

import pytest

from runs.models import Delivery
from runs.services.deliver import settle, take
from runs.services.post_delivery import Posted
from runs.services.send_again import send_again, send_test
from tests.make import make_delivery, make_webhook

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def rung(monkeypatch, django_capture_on_commit_callbacks):
    """Write down what is rung for, and not ring."""
    found = []
    monkeypatch.setattr("runs.bell.ring_delivery", found.append)
    return found


def test_a_test_is_on_its_way_at_once(rung):
    made = send_test(make_webhook())

    assert (made.event, made.run, rung) == ("test", None, [made.pk])
    assert take(made.pk) is not None


@pytest.mark.parametrize("status", ["delivered", "failed", "waiting"])
def test_what_was_sent_begins_anew(rung, status):
    delivery = make_delivery(status=status, attempts=7)

    assert send_again(delivery)
    assert rung == [delivery.pk]
    assert take(delivery.pk).attempts == 1


def test_what_is_under_way_is_left(rung):
    delivery = make_delivery()
    taken = take(delivery.pk)

    assert not send_again(delivery)
    assert rung == []
    settle(taken, Posted(0.1, 200))
    assert Delivery.objects.get().status == "delivered"
