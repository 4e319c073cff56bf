"""The MCP tools that build agents: what they make, and what is refused."""

import asyncio
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from runs.models import Agent
from runs.services.accounts.tokens import create_token
from tests.make import make_agent, make_provider, make_tool, make_user
from tests.mcp_server.test_endpoint import Caller

PATH = "/mcp/build"

pytestmark = pytest.mark.django_db


@pytest.fixture
def caller(ann: User) -> Caller:
    return Caller(ann, scopes=["read", "build"])


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_the_official_client_builds_and_publishes_an_agent(url: str, ann: User) -> None:
    provider, tool = make_provider(ann), make_tool(ann)
    token = create_token(ann, scopes=["read", "build"])

    async def scene() -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            asyncio.timeout(60),
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(url + PATH, http_client=http)) as client,
        ):
            names = [one.name for one in (await client.list_tools()).tools]
            parts = (await client.call_tool("list_parts", {})).structured_content
            made = await client.call_tool(
                "create_agent",
                {
                    "name": "Lamp expert",
                    "provider": parts["providers"][0]["slug"],
                    "model": "m",
                    "tools": [{"tool": parts["tools"][0]["slug"]}],
                },
            )
            slug = made.structured_content["slug"]
            change = {"agent": slug, "instructions": "Answer about lamps."}
            changed = await client.call_tool("change_agent", change)
            published = await client.call_tool(
                "publish_agent", {"agent": slug, "note": "First"}
            )
            read = await client.call_tool("read_agent", {"agent": slug})
            return names, changed, published, read.structured_content

    names, changed, published, read = asyncio.run(scene())

    assert names == [
        "list_parts",
        "read_agent",
        "create_agent",
        "change_agent",
        "publish_agent",
    ]
    agent = Agent.objects.get(name="Lamp expert")
    assert (agent.owner, agent.provider) == (ann, provider)
    assert [use.tool for use in agent.uses.all()] == [tool]
    draft = changed.structured_content["draft"]
    assert draft["instructions"] == "Answer about lamps."
    assert draft["tools"][0]["tool"] == tool.slug
    assert published.structured_content["is_new"]
    assert (read["version"], read["is_published"]) == (1, True)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("create_agent", {"name": "A", "model": "m"}, "provider: Field required"),
        (
            "create_agent",
            {"name": "A", "model": "m", "provider": "none"},
            "provider: ",
        ),
        ("change_agent", {"agent": "own", "tools": [{"tool": "none"}]}, "tools.0"),
        ("change_agent", {"agent": "own", "colour": "red"}, "colour: Extra inputs"),
        ("change_agent", {"agent": "public", "name": "Mine"}, "id: "),
        ("publish_agent", {"agent": "foreign"}, "agent: Agent foreign not found."),
        ("read_agent", {"agent": "a\0b"}, "agent: "),
    ],
)
def test_a_refused_call_names_its_field_and_changes_nothing(
    caller: Caller, ann: User, name: str, arguments: dict[str, Any], message: str
) -> None:
    make_agent(ann, slug="own", name="Own")
    make_agent(slug="public", name="Public", visibility="everyone")
    make_agent(slug="foreign", name="Foreign")

    answer = caller.ask("tools/call", PATH, name=name, arguments=arguments)
    result = answer.json()["result"]

    assert result["isError"]
    assert result["content"][0]["text"].startswith(message)
    names = Agent.objects.order_by("name").values_list("name", flat=True)
    assert list(names) == ["Foreign", "Own", "Public"]
    assert Agent.objects.get(slug="own").uses.count() == 0


def test_parts_are_those_that_the_user_may_use(caller: Caller) -> None:
    make_tool(make_user("eve"), name="foreign")

    parts = caller.call("list_parts", PATH)["result"]["structuredContent"]

    assert parts["tools"] == []


def test_building_needs_its_scope(ann: User) -> None:
    caller = Caller(ann, scopes=["read", "run"])

    refused = caller.ask("tools/call", PATH, name="list_parts", arguments={})

    assert refused.status_code == 403
    challenge = refused["WWW-Authenticate"]
    assert 'error="insufficient_scope", scope="read build"' in challenge
    assert "/.well-known/oauth-protected-resource/mcp/build" in challenge
