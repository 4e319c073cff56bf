"""Agents on aimock, a third party's server that speaks the providers' formats."""

import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.make import make_provider, make_user
from tests.worker.run_parts import agent_on, executed

CLI = Path(__file__).parents[2] / "node_modules/@copilotkit/aimock/dist/cli.js"
FIXTURES = [
    {
        "match": {"hasToolResult": True},
        "response": {"content": "It is 3.", "reasoning": "Now I know."},
    },
    {
        "match": {"userMessage": "Go"},
        "response": {
            "toolCalls": [{"name": "add", "arguments": '{"a":1,"b":2}'}],
            "reasoning": "I should add.",
            "reasoningSignature": "sig-1",
        },
    },
]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        not CLI.exists() or shutil.which("node") is None,
        reason="aimock is installed by `make check`",
    ),
]


@pytest.fixture(scope="module")
def aimock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start aimock; yield its address."""
    folder = tmp_path_factory.mktemp("aimock")
    (folder / "fixtures.json").write_text(json.dumps({"fixtures": FIXTURES}))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen(
        ["node", str(CLI), "-p", str(port), "-f", "fixtures.json"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(100):
            with suppress(OSError), urllib.request.urlopen(f"{address}/health"):
                break
            time.sleep(0.1)
        yield address
    finally:
        server.terminate()
        server.wait(10)


def find_reasoning(body: dict[str, Any]) -> str:
    """Return the reasoning that a request sends back with its calls."""
    found = [
        message.get("reasoning_content")
        or message.get("thinking")
        or message.get("encrypted_content")
        or next(
            (
                block["thinking"]
                for block in message.get("content") or ()
                if isinstance(block, dict) and block.get("signature")
            ),
            None,
        )
        for message in body.get("messages") or body["input"]
    ]
    return next(filter(None, found), "")


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("openai", "/v1"),
        ("responses", "/v1"),
        ("anthropic", "/v1"),
        ("gemini", "/v1beta/openai"),
        ("ollama", "/api"),
    ],
)
def test_an_agent_calls_a_tool_and_sends_its_reasoning_back(
    aimock, client, kind, path, stream
):
    owner = make_user()
    provider = make_provider(
        owner, kind=kind, base_url=aimock + path, stream=stream, default_model="m"
    )

    run = executed(agent_on(None, "add", owner=owner, provider=provider))

    assert (run.status, run.output, run.error_message) == ("succeeded", "It is 3.", "")
    assert run.steps.get().observation == "3"
    if kind == "ollama":  # aimock sends no `thinking` there
        return
    assert run.calls.first().reply["reasoning"] == "I should add."
    client.force_login(owner)
    sent = json.loads(client.get(f"/runs/{run.pk}/steps/3/request/").content)
    assert find_reasoning(sent)
