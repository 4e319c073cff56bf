"""Secrets that were typed into tools stay out of agent files."""

import io

import pytest
import yaml
from django.core.management import call_command
from django.test import Client

from runs.models import Agent
from runs.services.agentfile.export import export_agentfile, export_tools
from runs.services.agentfile.load import import_agentfile
from runs.services.agentfile.text import AgentFileRefused
from tests.make import make_agent, make_tool, make_user, make_version
from tools.models import Tool

pytestmark = pytest.mark.django_db

KEY = "sk-abcdefghijklmnop1234"
SCHEMA = {
    "type": "object",
    "properties": {"token": {"type": "string"}, "id": {"type": "integer"}},
    "required": ["token", "id"],
}
TYPED = {
    "url": "https://a.example/{id}?api_key=hunter33",
    "headers": {"X-Api-Key": "hunter44", "Accept": "text/plain"},
    "query": {"q": KEY},
    "method": "POST",
    "json": {"auth": {"password": "hunter55"}, "list": [{"secret": "hunter66"}]},
}
HARMLESS = {
    "url": "https://a.example/{id}?token={token}",
    "headers": {"Authorization": "Bearer {token}", "X-Key": "{token}"},
    "query": {"page": "2"},
    "styles": {"token": "json"},
}


@pytest.fixture
def tool() -> Tool:
    """Return a tool with secrets in all places, of an agent."""
    owner = make_user("ann")
    made = make_tool(
        owner, name="orders", kind="http", config=TYPED, args_schema=SCHEMA
    )
    make_version(make_agent(owner, tools=(made,), slug="helper"))
    return made


def exports(tool: Tool) -> list[str]:
    """Return the agent file of each way to export the tool."""
    client = Client()
    client.force_login(tool.owner)
    agent = Agent.objects.get(slug="helper")
    return [
        export_agentfile(draft=True),
        export_tools([tool], by=tool.owner),
        client.get(f"/agents/{agent.pk}/export/").content.decode(),
    ]


def test_no_export_contains_them_and_each_names_the_places(tool):
    for text in exports(tool):
        assert "hunter" not in text
        assert KEY not in text
        assert text.startswith("# WARNING: secrets were removed")
        for place in (
            *("url", "headers.X-Api-Key", "query.q", "json.auth.password"),
            "json.list.secret",
        ):
            assert f'# "tools.orders.config.{place}"\n' in text
        config = yaml.safe_load(text)["tools"][0]["config"]
        assert config["headers"]["Accept"] == "text/plain"


def test_the_command_warns_beside_the_file(tool):
    out, err = io.StringIO(), io.StringIO()

    call_command("export_agentfile", "--draft", stdout=out, stderr=err)

    assert "secrets were removed" in err.getvalue()
    assert "tools.orders.config.headers.X-Api-Key" in err.getvalue()
    assert "hunter" not in out.getvalue() + err.getvalue()


def test_an_import_refuses_the_gaps_and_keeps_the_tool(tool):
    text = export_tools([tool], by=tool.owner)

    with pytest.raises(AgentFileRefused) as refused:
        import_agentfile(text, tool.owner)

    errors = {one.field: one.message for one in refused.value.errors}
    assert "Store it as a credential" in errors["tools[0].config.headers.X-Api-Key"]
    tool.refresh_from_db()
    assert tool.config == TYPED


def test_a_draft_names_the_gaps(tool):
    text = export_tools([tool], by=tool.owner).replace("slug: orders", "slug: copy")

    result = import_agentfile(text, make_user("bob"), inert=True)

    assert "copy needs the secret of config.headers.X-Api-Key" in result.missing


def test_placeholders_are_no_secrets(tool):
    Tool.objects.update(config=HARMLESS)
    tool.refresh_from_db()

    for text in exports(tool):
        assert not text.startswith("#")
        assert yaml.safe_load(text)["tools"][0]["config"] == HARMLESS


def test_a_key_in_a_program_is_removed():
    tool = make_tool(kind="python", config={"code": f"key = '{KEY}'\nkey\n"})

    text = export_tools([tool], by=tool.owner)

    assert KEY not in text
    assert "key = '[secret]'" in text
