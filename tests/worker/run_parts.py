"""Makers for runs that really execute: an agent on a fake server, with real tools."""

import json
from typing import Any

from django.contrib.auth.models import User

from runs.models import Agent, AgentTool, Run
from runs.services.runs.start import start_run
from runs.worker.execute_run import execute_run
from tests.fakes.model_server import Exchange, FakeServer, Fault
from tests.make import make_agent, make_provider, make_tool, make_user
from tests.worker import functions  # noqa: F401  (registers the tools)
from tools.models import Tool
from tools.registry import get_registered_functions


def answering(status: int, **headers: str) -> Fault:
    """Return a fault: the server answers with this status."""

    async def answer(exchange: Exchange) -> None:
        error = {"error": {"message": "The fake server says no."}}
        await exchange.send_json(error, status=status, **headers)

    return answer


FAULTS = {
    "401": answering(401),
    "503": answering(503),
    "wait": answering(429, Retry_After="60"),
}


def call(name: str, *, id: str = "", **arguments: Any) -> dict[str, Any]:
    """Return a reply of the model that calls one tool."""
    return {"tool_calls": [{"id": id or f"c-{name}", "name": name, **args(arguments)}]}


def calls(*each: dict[str, Any]) -> dict[str, Any]:
    """Return one reply with all the calls of several."""
    return {"tool_calls": [one for reply in each for one in reply["tool_calls"]]}


def args(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments as the wire carries them."""
    return {"arguments": json.dumps(arguments)}


def function_tool(owner: User, name: str, **fields: Any) -> Tool:
    """Make the tool of a registered function, first of those of this folder."""
    registered = get_registered_functions()
    own = f"tests.worker.functions:{name}"
    path = next(
        path
        for path in (own, *registered)
        if path in registered
        and path.startswith("tests.")
        and path.endswith(f":{name}")
    )
    function = registered[path]
    defaults = {
        "name": name,
        "config": {"function": path},
        "args_schema": function.args_schema,
        "effect": function.effect,
        "timeout": function.timeout or 60.0,
    }
    return make_tool(owner, **{**defaults, **fields})


def agent_on(
    server: FakeServer | None,
    *names: str,
    owner: User | None = None,
    **fields: Any,
) -> Agent:
    """Make an agent that talks to `server` and has the named tools."""
    owner = owner or make_user()
    if "provider" not in fields:
        assert server is not None
        fields["provider"] = make_provider(owner, base_url=server.base_url)
    tools = tuple(function_tool(owner, name) for name in names)
    return make_agent(owner, tools=tools, **fields)


def started(agent: Agent, question: str = "Go.") -> Run:
    """Start a run of the draft of `agent`, and leave it in the queue."""
    return start_run(agent, by=agent.owner, inputs={"input": question}, draft=True)


def executed(agent: Agent, question: str = "Go.") -> Run:
    """Start a run and execute it in this thread."""
    run = started(agent, question)
    return go_on(run)


def go_on(run: Run) -> Run:
    """Execute what is left of `run` in this thread."""
    execute_run(run.pk)
    run.refresh_from_db()
    return run


def ask_before(agent: Agent, name: str) -> None:
    """Let `agent` use a tool only with a person's yes."""
    AgentTool.objects.filter(agent=agent, tool__name=name).update(policy="ask")
