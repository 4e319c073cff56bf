"""Whatever a model server does wrong, the run ends well and its worker goes on."""

from datetime import UTC, datetime

import pytest
from django.utils import timezone

from runs.llm.retry import MAX_ATTEMPTS
from runs.models import Run
from runs.services.health.invariants import check_invariants
from runs.services.runs.resume import resume_run
from runs.store.partial_texts import load_partial_texts
from runs.worker.sweep import sweep
from tests.fakes.faults import FAULTS
from tests.fakes.model_server import model_server
from tests.make import make_provider, make_user
from tests.worker.run_parts import agent_on, executed, go_on

pytestmark = pytest.mark.django_db(transaction=True)

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)

RETRIED = {
    "408": "timeout",
    "409": "overloaded",
    "429": "rate_limit",
    "429-ms": "rate_limit",
    "429-nonsense": "rate_limit",
    "500": "overloaded",
    "502": "overloaded",
    "503": "overloaded",
    "504": "timeout",
    "529": "overloaded",
    "reset": "transport",
    "close": "transport",
    "hang": "timeout",
    "stalls": "timeout",
    "slow-drip": "timeout",
    "cut": "transport",
    "ended": "transport",
    "error-in-200": "overloaded",
    "stream-error": "overloaded",
    "wrong-path": "bad_reply",
    "html": "bad_reply",
    "html-as-json": "bad_reply",
    "empty": "bad_reply",
    "no-json": "bad_reply",
    "no-object": "bad_reply",
    "no-choices": "bad_reply",
    "long-number": "bad_reply",
    "deep": "bad_reply",
    "deep-enough": "bad_reply",
    "deep-error": "bad_reply",
    "stream-no-json": "bad_reply",
    "stream-empty": "bad_reply",
    "stream-comments": "bad_reply",
}
"""Faults that a second attempt gets over, with the code of the first one's failure."""

PARKED = {"429-seconds": 7, "429-date": 27}
"""Faults that ask for a long wait, in seconds at least."""

FAILED = {
    "400": ("bad_request", "Correct the model or the parameters of the agent"),
    "400-reasoning": ("bad_request", "Correct the model or the parameters"),
    "401": ("auth", "Check the key of provider"),
    "403": ("forbidden", "may not be allowed to use model"),
    "404": ("not_found", "Select another model"),
    "404-page": ("not_found", "Check the base URL of provider"),
    "413": ("context_too_long", "Shorten the question"),
    "quota": ("rate_limit", "Add credit there"),
    "no-credit": ("rate_limit", "Add credit there"),
    "too-long": ("context_too_long", "Shorten the question"),
    "echo-headers": ("bad_request", "Correct the model or the parameters"),
    "filtered": ("content_filter", "Change the question or the prompt"),
    "50mb": ("bad_reply", "Check the base URL of provider"),
    "bomb": ("bad_reply", "Check the base URL of provider"),
    "script-over": ("bad_request", "Correct the model or the parameters"),
}
"""Faults that no second attempt gets over, with what a person is told to do."""

ANSWERED = {
    "no-done": ("Hello, here I am.", []),
    "length": ("It ends in the mid", []),
    "surrogate": ("a\ufffdb", []),
    "nan": ("hello", []),
    "bad-arguments": ("Done.", ["are not valid JSON"]),
    "same-ids": ("Done.", ["3", "'a' is a required", "3"]),
    "no-ids": ("Done.", ["3", "3"]),
    "200-calls": ("Done.", ["3"] * 200),
    "nul": ("Done.", ["a: '\ufffd' is not of type 'integer'"]),
}
"""Faults that the run lives with: its answer, and what its steps were told."""

STOPPED = ("drip",)
"""Faults that only the run's own limit of time ends."""


async def slow_drip(exchange):
    """Send the head, and then less than a byte a second."""
    exchange.writer.write(b"HTTP/1.1 200 Fake\r\nContent-Length: 1000\r\n\r\n ")
    await exchange.writer.drain()
    await FAULTS["hang"](exchange)


SILENT = ("hang", "stalls", "slow-drip")
"""Faults that only the patience of the provider ends."""


def agent_at(server, *, timeout=30.0, **fields):
    """Make an agent whose provider gives up after so many seconds of silence."""
    owner = make_user()
    provider = make_provider(
        owner, base_url=server.base_url, timeout=timeout, outage_minutes=0
    )
    return agent_on(server, "add", owner=owner, provider=provider, **fields)


def run_with(fault, *then, **fields):
    """Return a run that met `fault`, and a good run by the same thread after it."""
    script = [{"fault": fault, "content": "Hello, here I am."}, *then, "Fine."]
    faults = {"slow-drip": slow_drip}
    if fault in SILENT:
        fields.setdefault("timeout", 3.0)
    with model_server(script=script, faults=faults) as server:
        agent = agent_at(server, **fields)
        run = executed(agent)
        after = executed(agent)
    assert (after.status, after.output) == ("succeeded", "Fine.")
    assert list(check_invariants()) == []
    return Run.objects.get(pk=run.pk)


@pytest.fixture
def quick(monkeypatch):
    """Wait hardly at all before a second attempt."""
    monkeypatch.setattr("runs.llm.retry.BASE_DELAY", 0.02)


@pytest.mark.parametrize("fault", RETRIED)
def test_a_second_attempt_gets_over_it(fault, quick):
    run = run_with(fault, "Done.")

    assert (run.status, run.output) == ("succeeded", "Done.")
    attempt = run.attempts.get()
    assert (attempt.code, attempt.number, attempt.attempt) == (RETRIED[fault], 0, 1)
    assert attempt.retry_in is not None


@pytest.mark.slow
def test_the_last_attempt_keeps_what_the_model_had_written(quick):
    again = {"fault": "stalls", "content": "Hello, here I am."}
    run = run_with("stalls", *[again] * (MAX_ATTEMPTS - 1))
    *earlier, last = run.attempts.all()

    assert run.status == "failed"
    assert {attempt.partial_text for attempt in earlier} == {""}
    assert last.partial_text.startswith("Hel")


@pytest.mark.slow
def test_the_limit_of_time_keeps_what_the_model_had_written():
    run = run_with("stalls", timeout=30.0, executor={"max_execution_time": 3.0})
    attempt = run.attempts.get()

    assert (run.status, run.stop_reason) == ("limit_reached", "time")
    assert (attempt.code, attempt.retry_in) == ("time_limit", None)
    assert attempt.partial_text.startswith("Hel")
    assert list(check_invariants()) == []


def test_a_resumed_run_has_all_of_its_new_limit_of_time():
    with model_server(script=[{"fault": "stalls"}, "Fine."]) as server:
        run = executed(agent_at(server, executor={"max_execution_time": 0.6}))
        resume_run(run, by=None, limits={"max_execution_time": 5})
        run = go_on(run)

    assert (run.status, run.output) == ("succeeded", "Fine.")
    assert load_partial_texts([run]) == {}


@pytest.mark.parametrize("fault", ["html", "empty", "no-json", "stream-no-json"])
def test_a_run_gives_up_on_a_server_that_never_sends_a_reply(fault, quick):
    run = run_with(fault, *[{"fault": fault}] * (MAX_ATTEMPTS - 1))

    assert (run.status, run.error_code) == ("failed", "bad_reply")
    assert "instead of a model's reply. Check the base URL" in run.error_message
    assert run.attempts.count() == MAX_ATTEMPTS


@pytest.mark.parametrize("fault", PARKED)
def test_a_long_wait_is_spent_without_a_worker(fault, monkeypatch):
    monkeypatch.setattr("runs.worker.call_model.MAX_SLEEP_SECONDS", 5.0)
    with model_server(script=[{"fault": fault}, "Fine.", "Done."]) as server:
        agent = agent_at(server)
        began = timezone.now()
        run = executed(agent)
        assert (run.status, run.lease_until) == ("waiting", None)
        wait = (run.available_at - began).total_seconds()
        assert executed(agent).output == "Fine."
        Run.objects.filter(pk=run.pk).update(available_at=LONG_AGO)
        sweep(free=0)
        go_on(run)

    assert wait > PARKED[fault] - 1
    assert (run.status, run.output, run.available_at) == ("succeeded", "Done.", None)
    assert list(check_invariants()) == []


def test_a_pause_longer_than_the_time_left_is_spent_without_a_worker():
    async def busy(exchange):
        await exchange.send_json({"error": {}}, status=503, Retry_After="6")

    script = [{"fault": "busy"}, "Fine."]
    with model_server(script=script, faults={"busy": busy}) as server:
        run = executed(agent_at(server, executor={"max_execution_time": 3.0}))
        assert run.status == "waiting"
        Run.objects.filter(pk=run.pk).update(available_at=LONG_AGO)
        sweep(free=0)
        go_on(run)

    assert (run.status, run.output) == ("succeeded", "Fine.")


@pytest.mark.parametrize("fault", FAILED)
def test_the_run_fails_and_says_what_to_do(fault):
    code, advice = FAILED[fault]

    run = run_with(fault)

    assert (run.status, run.error_code) == ("failed", code)
    assert advice in run.error_message
    assert run.attempts.get().message == run.error_message


@pytest.mark.parametrize("fault", ANSWERED)
def test_the_run_lives_with_it(fault):
    output, message = ANSWERED[fault]
    then = ["Done."] if message else []

    run = run_with(fault, *then)

    assert (run.status, run.output) == ("succeeded", output)
    observations = list(run.steps.values_list("observation", flat=True))
    assert len(observations) == len(message)
    for word, seen in zip(message, observations, strict=True):
        assert word in seen


@pytest.mark.parametrize("fault", STOPPED)
@pytest.mark.slow
def test_a_reply_that_never_ends_is_ended_by_the_limit_of_time(fault):
    run = run_with(fault, executor={"max_execution_time": 3.0})

    assert (run.status, run.stop_reason) == ("limit_reached", "time")


def test_a_server_that_never_recovers_fails_the_run(quick):
    run = run_with("503", *[{"fault": "503"}] * 4)

    assert (run.status, run.error_code) == ("failed", "overloaded")
    assert "Resume the run when it works again" in run.error_message
    assert [a.retry_in is None for a in run.attempts.all()] == [False] * 4 + [True]


def test_a_server_that_is_not_there_fails_the_run(quick):
    with model_server() as server:
        agent = agent_at(server)
    run = executed(agent)

    assert (run.status, run.error_code) == ("failed", "transport")
    assert "Start it, or check the base URL" in run.error_message
    assert run.attempts.count() == 5


def test_every_fault_is_in_one_of_the_tables():
    tables = (RETRIED, PARKED, FAILED, ANSWERED, STOPPED)

    named = [name for table in tables for name in table]

    assert sorted(named) == sorted({*FAULTS, "slow-drip", "script-over"})
