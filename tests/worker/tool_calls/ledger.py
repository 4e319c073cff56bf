"""A ledger: a server outside of the product that counts what reaches it.

An agent with tools of every kind writes to it, if its calls are made.
"""

import json
import sqlite3
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runs.models import Agent, AgentTool
from tests.fakes.model_server import FakeServer
from tests.make import make_tool
from tests.mcp.rows import make_server, take_over
from tests.tools.http_server import Answer, Got, Server, serve
from tests.worker.family import caller_of
from tests.worker.run_parts import agent_on, call, calls, function_tool
from tools.models import Tool
from tools.registry import tool

address = ""
"""Of the ledger, for functions."""


@tool
def post_entry(text: str) -> str:
    """Write to the ledger: a side effect."""
    return _send(f"/function/{text}")


@tool(effect="read")
def read_entry(text: str) -> str:
    """Read from the ledger."""
    return _send(f"/read/{text}")


def _send(path: str) -> str:
    with urllib.request.urlopen(address + path, timeout=10) as response:
        return response.read().decode()


_connected: list[int] | None = None


def _note_connection(event: str, values: tuple[Any, ...]) -> None:
    if event != "socket.connect" or _connected is None:
        return
    address = values[1]
    if isinstance(address, tuple):  # not a Unix socket
        _connected.append(address[1])


sys.addaudithook(_note_connection)


@contextmanager
def watch_connections() -> Iterator[list[int]]:
    """Collect the port of each connection that Python code of this process opens.

    PostgreSQL's client library is not Python code, so its connections are not seen.
    """
    global _connected
    _connected = found = []
    try:
        yield found
    finally:
        _connected = None


@dataclass
class Ledger:
    """The running ledger, and the database beside it."""

    server: Server
    database: Path

    def take_entries(self) -> list[str]:
        """Return the paths of the requests since the last look."""
        found = [got.path for got in self.server.got]
        self.server.got.clear()
        return found


@contextmanager
def open_ledger(folder: Path, settings: Any) -> Iterator[Ledger]:
    global address
    database = folder / "ledger.db"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE entries AS SELECT 7 AS number")
    settings.OWN_PORTS = []
    settings.PRIVATE_HOSTS = "tool=127.0.0.1;provider=127.0.0.1;mcp=127.0.0.1"
    settings.SQL_CONNECTIONS = f"ledger=sqlite:///{database}"
    with serve(_answer) as server:
        address = server.url
        yield Ledger(server, database)


def _answer(got: Got) -> Answer:
    if got.path != "/mcp":
        return Answer({"entry": got.path})
    if got.method != "POST":
        return Answer(status=405)
    asked = got.json()
    if "id" not in asked:
        return Answer(status=202)
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    results = {
        "initialize": {
            "protocolVersion": asked.get("params", {}).get("protocolVersion"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "ledger", "version": "1"},
        },
        "tools/list": {"tools": [{"name": "file_entry", "inputSchema": schema}]},
        "tools/call": {"content": [{"type": "text", "text": "filed"}]},
    }
    return Answer(
        {"jsonrpc": "2.0", "id": asked["id"], "result": results[asked["method"]]}
    )


def make_writer(ledger: Ledger, model: FakeServer) -> Agent:
    """Make an agent with a tool of every kind, and one that writes for it."""
    helper = agent_on(model, "post_entry", slug="helper", name="Helper")
    owner = helper.owner
    writer = caller_of(model, helper, owner=owner)
    text = {"type": "object", "properties": {"text": {"type": "string"}}}
    tools = [
        function_tool(owner, "read_entry"),
        Tool.objects.get(name="post_entry", owner=owner),
        make_tool(
            owner,
            name="send_entry",
            kind="http",
            effect="side_effect",
            args_schema=text,
            config={
                "method": "POST",
                "url": f"{ledger.server.url}/http",
                "body": {"text": "{text}"},
            },
        ),
        make_tool(
            owner,
            name="compute_entry",
            kind="python",
            effect="side_effect",
            args_schema=text,
            config={"code": "text + '!'"},
        ),
        make_tool(
            owner,
            name="query_entries",
            kind="sql",
            effect="side_effect",
            config={"connection": "ledger", "query": "SELECT number FROM entries"},
            args_schema={"type": "object", "properties": {}},
        ),
        *take_over(
            make_server(url=f"{ledger.server.url}/mcp", owner=owner),
            "file_entry",
            approval="never",
        ),
    ]
    for position, one in enumerate(tools, start=5):
        AgentTool.objects.create(agent=writer, tool=one, position=position)
    return writer


def break_tools(ledger: Ledger) -> None:
    """Let calls fail that the ledger cannot see: the sandbox, and the database."""
    Tool.objects.filter(kind="python").update(config={"code": "1 / 0"})
    ledger.database.unlink()


ALL_CALLS = calls(
    call("post_entry", text="a"),
    call("send_entry", text="b"),
    call("compute_entry", text="c"),
    call("query_entries"),
    call("file_entry", text="d"),
)


def write_script(request: Any) -> Any:
    """Reply as the model of the writer, or of its helper."""
    said = json.dumps(request.body["messages"])
    results = said.count('"role": "tool"')
    if "helper" not in {one["function"]["name"] for one in request.body["tools"]}:
        return call("post_entry", text="helped") if not results else "Helped."
    rounds = sum(m["role"] == "assistant" for m in request.body["messages"])
    return [
        call("read_entry", text="first"),
        ALL_CALLS,
        call("helper", input="Write."),
        call("post_entry", text="a"),
        f"Written after {results} calls.",
    ][rounds]
