"""What comes from outside, made safe to store."""

from runs.engine.types import Reply
from runs.store.sanitizer import Sanitizer


def test_a_clean_reply_stays_the_very_same():
    reply = Reply(text="fine", native={"odds": 0.5, "name": "a"})

    assert Sanitizer(["a-secret"]).reply(reply) is reply


def test_the_engine_sees_a_number_as_it_is_stored():
    reply = Reply(text="fine", native={"odds": float("nan"), "name": "a"})

    assert Sanitizer().reply(reply).native == {"odds": None, "name": "a"}


def test_a_secret_is_taken_out_of_every_part():
    reply = Reply(text="it is a-secret", native={"echo": ["a-secret"]})

    safe = Sanitizer(["a-secret"]).reply(reply)

    assert (safe.text, safe.native) == (
        "it is [secret removed]",
        {"echo": ["[secret removed]"]},
    )
