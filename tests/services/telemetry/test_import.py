"""Runs that are built from the traces of other programs."""

import itertools
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import Sum

from runs.models import (
    Agent,
    AgentStep,
    DailyRunStats,
    ImportedSpan,
    ImportedTrace,
    ModelAttempt,
    ModelCall,
    Provider,
    Run,
    RunSearchRow,
)
from runs.services.errors import CannotFork, NotAllowed, NotResumable
from runs.services.evaluation.score_run import load_evaluation_record
from runs.services.forks.point import load_fork_point
from runs.services.health.invariants import check_invariants
from runs.services.runs.delete_rows import delete_run_rows
from runs.services.runs.resume import resume_run
from runs.services.runs.start import start_run
from runs.services.search.index_runs import index_runs
from runs.services.telemetry.importing import run as building
from runs.services.telemetry.importing import store
from runs.services.telemetry.importing.protobuf import parse_protobuf_spans
from runs.services.telemetry.importing.store import TraceImportResult, import_spans
from runs.services.telemetry.otlp import Span
from runs.services.telemetry.sent_prompt import load_sent_prompt
from tests.make import make_user
from tests.makers.traces import (
    agent_span,
    as_protobuf,
    chat_span,
    messages,
    span,
    tool_span,
    weather_trace,
)

pytestmark = pytest.mark.django_db

INSTRUCTIONS = '[{"type": "text", "content": "Be brief."}]'


def receive(*spans: Span, by: User | None = None) -> TraceImportResult:
    found = parse_protobuf_spans(as_protobuf(list(spans)))
    return import_spans(found, by=by or make_user("ann"))


def describe_run() -> dict[str, Any]:
    """Return what the only run consists of."""
    run = Run.objects.get()
    return {
        "run": (run.status, run.title, run.output, run.input_tokens, run.agent.name),
        "times": (run.created_at, run.started_at, run.ended_at),
        "calls": list(run.calls.values_list("number", "at_index", "reply", "digest")),
        "steps": list(run.steps.values_list("index", "tool", "observation", "status")),
        "call of step": list(run.steps.values_list("model_call__number", flat=True)),
    }


def test_spans_become_calls_and_steps():
    receive(*weather_trace())

    run = Run.objects.get()
    assert (run.title, run.output) == ("Is it raining in Paris?", "Yes, it is raining.")
    assert (run.input_tokens, run.output_tokens, run.rounds) == (200, 40, 2)
    assert run.source == Run.Source.IMPORT
    first, second = run.calls.all()
    assert (first.model, first.at_index, second.at_index) == ("gpt-4.1", 0, 1)
    assert first.reply["tool_calls"][0]["name"] == "get_weather"
    step = run.steps.get()
    assert (step.model_call, step.tool) == (first, "get_weather")
    assert (step.tool_input, step.observation) == ({"city": "Paris"}, "Rain, 9 degrees")
    assert (run.ended_at - run.started_at).total_seconds() == 10
    assert not list(check_invariants())


@pytest.mark.slow
def test_any_order_of_requests_leads_to_the_same_run():
    receive(*weather_trace())
    whole = describe_run()

    for order in itertools.permutations(weather_trace()):
        Run.objects.all().delete()
        for one in order:
            receive(one)
        assert describe_run() == whole


def test_a_repeated_delivery_stores_nothing_and_changes_nothing():
    receive(*weather_trace())
    before, seq = describe_run(), Run.objects.get().seq

    again = [chat_span(2, more={"gen_ai.usage.input_tokens": 7}), *weather_trace()]
    assert receive(*again) == TraceImportResult()

    assert describe_run() == before
    assert Run.objects.get().seq == seq
    assert ImportedSpan.objects.count() == 4


def test_the_same_trace_of_two_people_is_two_runs():
    receive(*weather_trace(), by=make_user("ann"))
    receive(*weather_trace(), by=make_user("bob"))

    assert {run.owner.username for run in Run.objects.all()} == {"ann", "bob"}
    assert Agent.objects.count() == 2


def test_spans_that_arrive_after_the_indexing_are_counted_once():
    root, *others = weather_trace()
    receive(*others)
    index_runs()
    receive(root)
    index_runs()

    assert RunSearchRow.objects.get().tokens == 240
    stats = DailyRunStats.objects.aggregate(runs=Sum("runs"), tokens=Sum("tokens"))
    assert stats == {"runs": 1, "tokens": 240}
    assert not list(check_invariants())


@pytest.mark.parametrize("in_two_requests", [False, True])
def test_spans_that_are_their_own_ancestors_are_rejected(in_two_requests):
    loop = [agent_span(1, parent=2), chat_span(2, parent=3), tool_span(3, parent=1)]
    if in_two_requests:
        assert receive(*loop[:2]) == TraceImportResult()
        assert receive(loop[2]).rejected == 1
        assert ImportedSpan.objects.count() == 2
    else:
        assert receive(*loop).rejected == 3
        assert not ImportedTrace.objects.exists()
        assert not Run.objects.exists()


def test_a_span_below_a_cycle_is_no_part_of_it():
    loop = [chat_span(2, parent=3), chat_span(3, parent=2)]

    assert receive(*loop, tool_span(4, parent=3)).rejected == 2
    assert ImportedSpan.objects.get().span_id.endswith("4")


def test_a_trace_has_a_limited_number_of_spans(monkeypatch):
    monkeypatch.setattr(store, "MAX_SPANS", 3)

    result = receive(*weather_trace())

    assert result.rejected == 1
    assert "at most 3 spans" in result.message
    assert ImportedSpan.objects.count() == 3


def test_other_spans_are_left_out_without_a_word():
    assert receive(span(1, 0, "GET /", {"http.method": "GET"})) == TraceImportResult()
    assert not ImportedTrace.objects.exists()


def test_a_failed_agent_is_a_failed_run_that_nobody_can_continue():
    failed = chat_span(2, error="The server is busy.")
    failed.attributes.pop("gen_ai.output.messages")
    receive(agent_span(1, error="Gave up."), failed)

    run = Run.objects.get()
    assert (run.status, run.error_message) == ("failed", "Gave up.")
    assert ModelAttempt.objects.get().message == "The server is busy."
    assert not run.can_resume
    with pytest.raises(NotResumable):
        resume_run(run, by=run.owner)
    run.refresh_from_db()
    assert run.status == "failed"


def test_an_imported_run_is_never_executed():
    receive(*weather_trace())
    run = Run.objects.get()

    with pytest.raises(CannotFork):
        load_fork_point(run, 1)
    Agent.objects.update(archived_at=None)
    with pytest.raises(NotAllowed):
        start_run(Agent.objects.get(), by=run.owner, inputs={"input": "Hello"})
    assert not Agent.objects.usable_by(run.owner).exists()
    assert Run.objects.count() == 1


def test_what_the_model_was_sent_is_shown():
    receive(
        chat_span(2),
        chat_span(
            3,
            more={
                "gen_ai.system_instructions": INSTRUCTIONS,
                "gen_ai.input.messages": messages("user", "And in Rome?"),
            },
        ),
    )

    call = ModelCall.objects.get(number=1)
    sent = load_sent_prompt(call)
    assert sent is not None
    assert not sent.matches_digest
    said = [(one.role, one.text) for one in sent.request.messages]
    assert said == [("system", "Be brief."), ("user", "And in Rome?")]


def test_secrets_are_not_stored():
    owner = make_user("ann")
    provider = Provider(owner=owner, name="mine")
    provider.set_key("correct-horse-battery")
    provider.save()
    text = "Use correct-horse-battery and sk-abcdefghijklmnopqrstu"
    receive(
        agent_span(1, more={"gen_ai.input.messages": messages("user", text)}), by=owner
    )

    assert Run.objects.get().title == "Use [secret removed] and [secret removed]"
    assert "horse" not in json.dumps(ImportedSpan.objects.get().body)


def test_openinference_spans_are_understood():
    agent = {
        "openinference.span.kind": "CHAIN",
        "input.value": "What is 2 + 2?",
        "output.value": "4",
    }
    model = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "claude",
        "llm.token_count.prompt": 11,
        "llm.token_count.completion": 3,
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "What is 2 + 2?",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "add",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": "{}",
    }
    tool = {
        "openinference.span.kind": "TOOL",
        "tool.name": "add",
        "input.value": '{"a": 2, "b": 2}',
        "output.value": "4",
    }
    receive(
        span(1, 0, "Math", agent), span(2, 1, "LLM", model), span(3, 1, "add", tool)
    )

    run = Run.objects.get()
    assert (run.agent.name, run.title, run.output) == ("Math", "What is 2 + 2?", "4")
    call, step = run.calls.get(), run.steps.get()
    assert (call.model, call.input_tokens, call.output_tokens) == ("claude", 11, 3)
    assert call.reply["tool_calls"][0]["id"] == "c1"
    assert (step.tool, step.tool_input, step.observation) == (
        "add",
        {"a": 2, "b": 2},
        "4",
    )


def test_earlier_genai_attributes_are_understood():
    found = {
        "llm.request.type": "chat",
        "gen_ai.system": "OpenAI",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.usage.prompt_tokens": 5,
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "Hello",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "Hi",
        "gen_ai.completion.0.finish_reason": "stop",
    }
    receive(span(1, 0, "openai.chat", found))

    run = Run.objects.get()
    assert (run.title, run.output, run.input_tokens) == ("Hello", "Hi", 5)
    assert run.finish_reason == "stop"


def test_a_tool_call_without_a_model_call_is_kept():
    receive(agent_span(1), tool_span(2))

    run = Run.objects.get()
    assert run.steps.get().observation == "Rain, 9 degrees"
    assert not list(check_invariants())


def test_hostile_attributes_do_no_harm():
    odd = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": 7,
        "gen_ai.usage.input_tokens": -5,
        "gen_ai.usage.output_tokens": 2**62,
        "gen_ai.usage.cost": float("nan"),
        "gen_ai.input.messages": '[1, {"role": 3, "parts": [4, {"type": "text"}]}]',
        "gen_ai.output.messages": "[" * 5000,
        "a\0b": "c\0d",
    }
    arguments = {"gen_ai.tool.call.arguments": r'{"a": "\u0000", "b": NaN}'}
    tool = tool_span(2, more=arguments)
    assert receive(span(1, 0, "chat\0", odd), tool) == TraceImportResult()

    call = ModelCall.objects.get()
    assert (call.input_tokens, call.output_tokens) == (0, 2_000_000_000)
    assert AgentStep.objects.get().tool_input == {"a": "\ufffd", "b": None}


def test_the_number_of_imported_agents_is_limited(monkeypatch):
    monkeypatch.setattr(building, "MAX_AGENTS", 1)
    for number in (1, 2, 3):
        name = {"gen_ai.agent.name": f"agent {number}"}
        receive(agent_span(1, trace_id=str(number) * 32, more=name))

    names = set(Run.objects.values_list("agent__name", flat=True))
    assert names == {"agent 1", "Other imported agents"}


def test_evaluators_get_a_record():
    receive(*weather_trace())

    record = load_evaluation_record(Run.objects.get())

    assert record.answer == "Yes, it is raining."
    assert [step.tool for step in record.steps] == ["get_weather"]


def test_deleting_a_run_deletes_its_trace():
    receive(*weather_trace())

    delete_run_rows([Run.objects.get().pk])

    for model in (Run, ImportedTrace, ImportedSpan, ModelCall, AgentStep):
        assert not model.objects.exists()
