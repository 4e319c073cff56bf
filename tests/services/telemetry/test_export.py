"""Ended runs as traces: what arrives, once, and what waits for the collector."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import Resume, Run
from runs.services.telemetry import export as exporting
from runs.services.telemetry.export import (
    Collector,
    CollectorUnavailable,
    claim_due_runs,
    export_due_runs,
)
from runs.services.telemetry.otlp import Span, encode_span
from runs.store.transitions import transition
from tests.fakes.otlp_receiver import collector, read_span
from tests.make import (
    make_agent,
    make_attempt,
    make_call,
    make_run,
    make_step,
    make_user,
)

pytestmark = pytest.mark.django_db

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
NOT_SAMPLED = CALLER[:-2] + "00"


def due(run: Run) -> Run:
    """Let the run be due, and return it."""
    Run.objects.filter(pk=run.pk).update(
        trace_due_at=timezone.now() - timedelta(seconds=1)
    )
    return run


def exported(run: Run, **more) -> list:
    """Export the run, and return the spans that arrived."""
    due(run)
    with collector() as server:
        assert export_due_runs(Collector(server.url, **more)) == 1
    return server.spans


def test_a_run_arrives_as_a_tree_of_spans():
    run = make_run(agent=make_agent(name="Helper"), status="succeeded")
    make_call(run, first_token=0.2, cost="0.002", cached_tokens=7)
    step = make_step(run)
    Run.objects.filter(pk=run.pk).update(finish_reason="stop", cost="0.002")

    with collector() as server:
        due(run)
        export_due_runs(Collector(server.url, {"authorization": "Bearer t"}))

    root = server.named("invoke_agent Helper")
    chat = server.named("chat model-a")
    tool = server.named("execute_tool calculator")
    assert (root.parent_id, root.kind, root.status) == ("", 1, 0)
    assert (chat.parent_id, chat.kind) == (root.span_id, 3)
    assert (tool.parent_id, tool.kind) == (root.span_id, 1)
    assert len({span.span_id for span in server.spans}) == 3
    assert {span.trace_id for span in server.spans} == {root.trace_id}
    assert root.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert root.attributes["gen_ai.response.finish_reasons"] == ["stop"]
    assert root.attributes["gen_ai.usage.cost"] == 0.002
    assert root.attributes["agentsite.run.id"] == run.pk
    assert chat.attributes["gen_ai.operation.name"] == "chat"
    assert chat.attributes["gen_ai.usage.input_tokens"] == 100
    assert chat.attributes["gen_ai.usage.output_tokens"] == 20
    assert chat.attributes["gen_ai.usage.cache_read.input_tokens"] == 7
    assert (chat.end - chat.start) / 1e9 == 0.5
    assert tool.attributes["gen_ai.tool.call.id"] == step.call_id
    assert server.resources[0]["service.name"] == "agentsite"
    assert server.requests[0].headers["authorization"] == "Bearer t"


def test_spans_have_no_content_unless_switched_on():
    run = make_run(status="succeeded", output="the-answer")
    make_call(run, reply={"text": "the-reply"})
    make_step(run, tool_input={"q": "the-argument"}, observation="the-result")
    run.inputs = {"input": "the-question"}
    run.save()

    assert "the-" not in str(exported(run))
    Run.objects.filter(pk=run.pk).update(traces_sent=0)
    text = str(exported(run, with_content=True))
    for what in ("question", "reply", "argument", "result", "answer"):
        assert f"the-{what}" in text


def test_secrets_are_masked_in_errors_and_content():
    secret = "sk-abcdefghijklmnopqrstuvwxyz123456"
    run = make_run(status="failed", error_message=f"The key {secret} was refused.")
    make_attempt(run, message=f"Bearer {secret}", status=401)
    make_step(run, tool_input={"password": "hunter2-hunter2"}, observation=secret)

    spans = exported(run, with_content=True)

    assert secret not in str(spans)
    assert "hunter2" not in str(spans)
    (root,) = [one for one in spans if one.name.startswith("invoke_agent")]
    assert (root.status, root.attributes["error.type"]) == (2, "refused")
    assert root.message.startswith("The key ")


def test_a_failed_attempt_has_a_span_of_its_own():
    run = make_run(status="succeeded")
    make_attempt(run, status=503, elapsed=2.0, retry_in=1.0)
    make_call(run, elapsed=3.5)

    failed, reply = [one for one in exported(run) if one.name == "chat model-a"]

    assert (failed.status, failed.attributes["error.type"]) == (2, "overloaded")
    assert failed.attributes["http.response.status_code"] == 503
    assert (reply.status, (reply.end - reply.start) / 1e9) == (0, 0.5)


def test_a_caller_is_the_parent_of_the_run():
    root = exported(make_run(status="succeeded", traceparent=CALLER))[0]

    assert f"00-{root.trace_id}-{root.parent_id}-01" == CALLER


def test_a_trace_that_its_caller_does_not_record_is_not_exported():
    assert exported(make_run(status="succeeded", traceparent=NOT_SAMPLED)) == []


def test_a_run_is_exported_once():
    run = due(make_run(status="succeeded"))
    with collector() as server:
        export_due_runs(Collector(server.url))
        assert export_due_runs(Collector(server.url)) == 0

    run.refresh_from_db()
    assert (run.trace_due_at, run.traces_sent) == (None, 1)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [401, 404, 429, 500, 503])
def test_nothing_is_lost_while_the_collector_is_away(status):
    due(make_run(status="succeeded"))
    with collector() as server:
        server.status = status
        with pytest.raises(CollectorUnavailable, match=str(status)):
            export_due_runs(Collector(server.url))
        server.status = 200
        assert export_due_runs(Collector(server.url)) == 1

    assert len(server.spans) == 1


def test_no_collector_at_all_loses_nothing():
    run = due(make_run(status="succeeded"))

    with pytest.raises(CollectorUnavailable):
        export_due_runs(Collector("http://127.0.0.1:9/v1/traces"))

    run.refresh_from_db()
    assert run.trace_due_at is not None


def test_spans_that_are_refused_for_good_are_not_sent_again(caplog):
    due(make_run(status="succeeded"))
    with collector() as server:
        server.status = 400
        assert export_due_runs(Collector(server.url)) == 1
        assert export_due_runs(Collector(server.url)) == 0

    assert "refused 1 spans with 400" in caplog.text


def test_a_claimed_run_is_left_to_its_worker():
    due(make_run(status="succeeded"))

    assert len(claim_due_runs()) == 1
    assert claim_due_runs() == []


def test_a_resumed_run_sends_only_what_is_new():
    run = make_run(status="succeeded")
    make_step(run)
    first = exported(run)
    Resume.objects.create(run=run, at_index=1, at_number=1)
    run.refresh_from_db()
    make_step(run, call=make_call(run))
    second = exported(run)

    assert not {one.span_id for one in first} & {one.span_id for one in second}
    assert len(second) == 3
    assert {one.trace_id for one in first} == {one.trace_id for one in second}


def test_what_a_fork_copied_has_no_span():
    run = make_run(status="succeeded")
    make_step(run, call=make_call(run, is_copied=True), is_copied=True)

    assert len(exported(run)) == 1


def test_many_spans_are_sent_in_several_requests(monkeypatch):
    run = make_run(status="succeeded")
    for _ in range(5):
        make_step(run)
    monkeypatch.setattr(exporting, "MAX_BODY_BYTES", 1_000)
    due(run)
    with collector() as server:
        export_due_runs(Collector(server.url))

    assert len(server.requests) > 2
    assert len({one.span_id for one in server.spans}) == 7


def test_a_run_that_cannot_be_described_stops_no_other(caplog):
    broken, good = make_run(status="succeeded"), make_run(status="succeeded")
    make_call(broken, reply=["not", "a", "reply"])
    due(broken)
    due(good)
    with collector() as server:
        assert export_due_runs(Collector(server.url)) == 2

    assert [one.attributes["agentsite.run.id"] for one in server.spans] == [good.pk]
    assert "could not be exported" in caplog.text


@pytest.mark.parametrize("is_on", [True, False])
def test_the_end_of_a_run_makes_it_due_if_there_is_a_collector(settings, is_on):
    settings.OTLP_ENDPOINT = "http://127.0.0.1:9/v1/traces" if is_on else ""
    run = make_run(status="running")

    assert transition(run, to=Run.Status.SUCCEEDED, fence=run.fence)

    run.refresh_from_db()
    assert (run.trace_due_at is not None) == is_on


def test_every_kind_of_value_survives_the_encoding():
    values = {"t": "ü\udc80", "b": True, "i": -5, "n": 2**40, "f": 0.1, "l": ["a", "b"]}
    now = timezone.now()
    span = Span("0" * 31 + "1", "0" * 15 + "2", "", "n", now, now, attributes=values)

    found = read_span(encode_span(span))

    assert found.attributes == {**values, "t": "ü?"}
    assert found.start == int(now.timestamp()) * 10**9 + now.microsecond * 1000


def test_the_span_ids_of_another_site_are_others(settings):
    run = make_run(make_user(), status="succeeded")
    here = exported(run)[0]
    settings.SECRET_KEY = "another site"
    Run.objects.filter(pk=run.pk).update(traces_sent=0)

    assert exported(run)[0].trace_id != here.trace_id
