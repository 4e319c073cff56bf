"""A whole trace: caller, run, model, tool, and the agent that was called."""

import pytest

from runs.models import Run
from runs.services.telemetry.export import export_due_runs, get_collector
from tests.api.make_client import Api
from tests.fakes.model_server import model_server
from tests.fakes.otlp_receiver import collector
from tests.make import make_provider, make_tool
from tests.tools.http_server import Answer, serve
from tests.worker.family import caller_of, finished
from tests.worker.run_parts import agent_on, call, executed
from tools.net.trace_context import receive_traceparent

pytestmark = pytest.mark.django_db(transaction=True)

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
HEADER = f"00-{TRACE}-{CALLER}-01"


def test_services_see_the_span_that_called_them(settings):
    settings.PRIVATE_HOSTS, settings.OWN_PORTS = "tool=127.0.0.1;provider=127.0.0.1", []
    replies = [call("orders"), call("scout", input="x"), "Done."]
    with (
        collector() as traces,
        serve(lambda _: Answer({"found": 7})) as api,
        model_server(script=["Sunny."]) as below,
        model_server(script=replies) as llm,
    ):
        settings.OTLP_ENDPOINT = traces.url
        scout = agent_on(below, slug="scout", name="Scout")
        agent = caller_of(llm, scout, name="Boss")
        empty = {"type": "object", "properties": {}}
        tool = make_tool(
            agent.owner,
            name="orders",
            kind="http",
            config={"url": api.url},
            args_schema=empty,
        )
        agent.uses.create(tool=tool, position=5)
        with receive_traceparent(HEADER):
            run = executed(agent)
        assert finished(run).output == "Done."
        while export_due_runs(get_collector()):
            pass

    spans = {one.span_id: one for one in traces.spans}
    assert {one.trace_id for one in traces.spans} == {TRACE}
    assert len(spans) == len(traces.spans) == 3 + 2 + 2 + 1  # chat, tools, agents, chat
    root = traces.named("invoke_agent Boss")
    assert root.parent_id == CALLER
    (asked,) = [one.headers["traceparent"] for one in api.got]
    assert spans[asked.split("-")[2]].name == "execute_tool orders"
    scout_step = spans[traces.named("invoke_agent Scout").parent_id]
    assert scout_step.name == "execute_tool scout"
    for request in llm.requests:
        span = spans[request.headers["traceparent"].split("-")[2]]
        assert (span.name, span.parent_id) == ("chat model-a", root.span_id)


def test_without_an_export_the_header_of_the_caller_is_passed_on():
    with model_server(script=["A.", "B."]) as llm:
        agent = agent_on(llm)
        with receive_traceparent(HEADER):
            executed(agent)
        executed(agent)

    assert [one.headers.get("traceparent") for one in llm.requests] == [HEADER, None]
    assert not Run.objects.exclude(trace_due_at=None).exists()


def test_the_header_of_an_api_request_reaches_the_run():
    agent = agent_on(None, provider=make_provider())
    body = {"agent": agent.slug, "inputs": {"input": "Go."}}
    caller = Api(agent.owner)

    answer = caller.post("runs", body, traceparent=HEADER)

    assert Run.objects.get(pk=answer.json()["id"]).traceparent == HEADER
