"""Calling tools of MCP servers: only while they are what a person accepted."""

import pytest

from runs.engine.spec_validation import find_spec_problems
from runs.services.spec.freeze import freeze_agent
from tests.make import make_agent
from tests.mcp.rows import command_line, make_server, offer, take_over
from tests.mcp.servers.http_server import mcp_server
from tests.tools.rows import make_tool, make_user
from tools.definition.freeze import freeze_tool
from tools.errors import ToolFailed, ToolTimedOut
from tools.kinds.registry import call_tool
from tools.mcp_offer import Offer
from tools.mcp_pin import McpPin
from tools.mcp_servers.decide_change import StaleMcpChange, accept_mcp_change
from tools.mcp_servers.import_tools import discover_mcp_tools, import_mcp_tools
from tools.mcp_servers.record_change import record_mcp_change
from tools.models import AuditEntry, Credential, Tool
from tools.net.deadline import Deadline
from tools.secrets import seal

pytestmark = pytest.mark.django_db


@pytest.fixture
def running(settings):
    with mcp_server(json=True) as server:
        settings.PRIVATE_HOSTS = server.policy
        yield server


def call(tool, **arguments):
    return call_tool(freeze_tool(tool), arguments, deadline=Deadline(seconds=60))


def test_calls_a_tool_over_http(running):
    (add,) = take_over(make_server(url=running.url), "add")

    assert call(add, a=1, b=2) == "3"


def test_calls_a_tool_over_stdio(settings):
    settings.MCP_COMMANDS = command_line()
    (add,) = take_over(make_server(), "add")

    assert call(add, a=1, b=2) == "3"


def test_a_tool_taken_over_is_inert_and_counts_as_a_side_effect(running):
    server = make_server(url=running.url)
    offers = discover_mcp_tools(server, by=server.owner)
    chosen = {one.name: one.digest for one in offers if one.name == "add"}

    (tool,) = import_mcp_tools(server, offers, chosen, by=server.owner)

    assert tool.enabled is False
    assert tool.effect == "side_effect"  # whatever readOnlyHint says
    assert tool.approval == "side_effects"
    assert tool.args_schema["properties"].keys() == {"a", "b"}
    assert tool.revisions.get().note == "From the MCP server 'Tests'"
    assert import_mcp_tools(server, offers, chosen, by=server.owner) == []


def test_what_is_not_what_was_shown_is_not_taken_over(running):
    server = make_server(url=running.url)
    offers = discover_mcp_tools(server, by=server.owner)

    assert import_mcp_tools(server, offers, {"add": "0" * 64}, by=server.owner) == []


def test_a_change_switches_the_tool_off_before_it_is_called(running):
    add, turn = take_over(make_server(url=running.url), "add", "turn")
    call(turn)

    with pytest.raises(ToolFailed, match="changed the tool 'add'. It is disabled"):
        call(add, a=1, b=2)

    add.refresh_from_db()
    assert add.enabled is False
    assert add.revisions.first().note == "Its MCP server changed it"
    assert "evil.example" in add.pin.offered["description"]
    assert "evil.example" not in add.description


def test_an_accepted_change_is_what_models_read_from_then_on(running):
    add, turn = take_over(make_server(url=running.url), "add", "turn")
    old = freeze_tool(add)
    call(turn)
    discover_mcp_tools(add.mcp_server, by=add.owner)
    digest = Offer.model_validate(McpPin.objects.get(tool=add).offered).digest

    add = accept_mcp_change(add, digest, by=add.owner)

    assert add.enabled
    assert "evil.example" in add.description
    assert call(add, a=1, b=2) == "3"
    with pytest.raises(ToolFailed, match="after this run began"):
        call_tool(old, {"a": 1, "b": 2}, deadline=Deadline(seconds=60))
    add.refresh_from_db()
    assert add.enabled  # the old run did no harm


def test_a_description_somebody_wrote_stays(running):
    server = make_server(url=running.url)
    add, turn = take_over(server, "add", "turn", description="Mine.")
    call(turn)
    discover_mcp_tools(server, by=server.owner)
    digest = Offer.model_validate(McpPin.objects.get(tool=add).offered).digest

    assert accept_mcp_change(add, digest, by=add.owner).description == "Mine."


@pytest.fixture
def trusted(running):
    """Give a tool of a server whose descriptions are accepted."""
    server = make_server(url=running.url, accepts_descriptions=True)
    (add,) = take_over(server, "add")

    return add, running


def describe_anew(running, text):
    """Let the server describe `add` in other words."""
    tool = running.server._tool_manager.get_tool("add")
    tool.description = text


def test_a_changed_description_is_accepted_where_the_server_is_set_so(trusted):
    add, running = trusted
    old = freeze_tool(add)
    describe_anew(running, "Return the sum. Today is Sunday.")

    assert call(add, a=1, b=2) == "3"

    add.refresh_from_db()
    assert add.enabled
    assert add.description == "Return the sum. Today is Sunday."
    newest = add.revisions.first()
    assert newest.note == "Its MCP server changed only its description"
    assert call_tool(old, {"a": 1, "b": 2}, deadline=Deadline(seconds=60)) == "3"
    entry = AuditEntry.objects.filter(noun="tool", thing_number=add.pk).latest("pk")
    assert (entry.by, entry.way) == ("", "server")
    assert "Sunday" in str(entry.changes)


def test_a_description_that_changes_all_the_time_is_stored_once_an_hour(trusted):
    add, running = trusted
    for minute in range(3):
        describe_anew(running, f"Return the sum. It is 12:0{minute}.")
        assert call(add, a=1, b=2) == "3"

    add.refresh_from_db()
    assert add.description.endswith("12:00.")


def test_a_changed_schema_is_never_accepted_by_itself(trusted):
    add, running = trusted
    running.server.remove_tool("add")
    running.server.add_tool(lambda a: a, name="add", description=add.description)

    with pytest.raises(ToolFailed, match="changed the tool 'add'. It is disabled"):
        call(add, a=1, b=2)


def test_a_change_that_waited_is_accepted_with_the_setting(running):
    server = make_server(url=running.url)
    (add,) = take_over(server, "add")
    describe_anew(running, "Another text.")
    with pytest.raises(ToolFailed, match="disabled"):
        call(add, a=1, b=2)
    server.accepts_descriptions = True
    server.save()

    discover_mcp_tools(server, by=server.owner)

    add.refresh_from_db()
    assert add.enabled
    assert McpPin.objects.get(tool=add).offered is None


def test_tools_of_one_name_get_the_names_of_their_servers_in_an_agent(running):
    owner = make_user()
    servers = [
        make_server(url=running.url, owner=owner, name=name)
        for name in ("Small shop", "Bank")
    ]
    tools = [tool for one in servers for tool in take_over(one, "add", "count")]
    agent = make_agent(owner, tools=[*tools[:3]])

    names = [spec.name for spec in freeze_agent(agent).tools]

    assert names == ["small_shop_add", "count", "bank_add"]
    assert [tool.slug for tool in tools] == [
        "small-shop-add",
        "small-shop-count",
        "bank-add",
        "bank-count",
    ]
    assert find_spec_problems(freeze_agent(agent)) == []


def test_only_what_was_shown_can_be_accepted(running):
    add, turn = take_over(make_server(url=running.url), "add", "turn")

    with pytest.raises(StaleMcpChange):
        accept_mcp_change(add, "0" * 64, by=add.owner)

    call(turn)
    discover_mcp_tools(add.mcp_server, by=add.owner)
    with pytest.raises(StaleMcpChange):
        accept_mcp_change(add, "0" * 64, by=add.owner)
    assert Tool.objects.get(pk=add.pk).enabled is False


def test_a_tool_the_server_took_away_is_a_sentence(running):
    (add,) = take_over(make_server(url=running.url), "add")
    running.server.remove_tool("add")

    with pytest.raises(ToolFailed, match="no longer offers the tool 'add'"):
        call(add, a=1, b=2)


def test_a_tool_nobody_has_looked_at_is_switched_off(running):
    server = make_server(url=running.url)
    tool = make_tool(kind="mcp", config={"tool": "add"}, mcp_server=server)

    with pytest.raises(ToolFailed, match="disabled until"):
        call(tool, a=1, b=2)


@pytest.mark.slow
def test_the_time_of_a_tool_ends_a_call_that_hangs(running):
    (hang,) = take_over(make_server(url=running.url), "hang", timeout=1.0)

    with pytest.raises(ToolTimedOut):
        call(hang)


def test_only_the_hosts_of_the_tool_are_asked(running):
    (add,) = take_over(make_server(url=running.url), "add", hosts=["mcp.example.com"])

    with pytest.raises(ToolFailed, match="not among the hosts this tool may call"):
        call(add, a=1, b=2)


def test_a_server_that_is_archived_or_not_ones_own_is_not_asked(running):
    server = make_server(url=running.url)
    (add,) = take_over(server, "add")
    add.owner = make_user("bob")
    add.save()

    with pytest.raises(ToolFailed, match="its use is no longer allowed"):
        call(add, a=1, b=2)


def test_a_command_that_is_not_listed_any_more_is_a_sentence(settings):
    settings.MCP_COMMANDS = command_line()
    (add,) = take_over(make_server(), "add")
    settings.MCP_COMMANDS = ""

    with pytest.raises(ToolFailed, match="no command 'tests' in AGENTSITE_MCP"):
        call(add, a=1, b=2)


def test_the_credential_is_sent_and_never_said(running):
    owner = make_user()
    secret = Credential.objects.create(
        name="key", owner=owner, hosts=[running.url], sealed=seal("s3cret")
    )
    server = make_server(url=running.url, credential=secret)
    add, fail = take_over(server, "add", "fail")

    assert call(add, a=1, b=2) == "3"
    assert running.heads[-1]["authorization"] == "Bearer s3cret"
    with pytest.raises(ToolFailed, match=r"it was \[secret\]"):
        call(fail, why="it was s3cret")


def test_a_result_that_holds_the_credential_is_covered(running):
    owner = make_user()
    secret = Credential.objects.create(
        name="key", owner=owner, hosts=[running.url], sealed=seal("42")
    )
    server = make_server(url=running.url, credential=secret)
    (add,) = take_over(server, "add")

    assert call(add, a=40, b=2) == "[secret]"


def test_the_credential_must_still_be_the_owners(running):
    stranger = make_user("eve")
    secret = Credential.objects.create(
        name="key", owner=stranger, hosts=[running.url], sealed=seal("s3cret")
    )
    server = make_server(url=running.url, credential=secret)

    with pytest.raises(ToolFailed, match="may no longer use it"):
        discover_mcp_tools(server, by=server.owner)
    assert running.heads == []


def test_a_server_that_takes_its_change_back_leaves_nothing_to_accept(running):
    server = make_server(url=running.url)
    (add,) = take_over(server, "add")
    other = offer("add", description="Something else.")
    record_mcp_change(add.pk, other)

    discover_mcp_tools(server, by=server.owner)

    add.refresh_from_db()
    assert add.enabled is False  # that is for a person to decide
    assert McpPin.objects.get(tool=add).offered is None


def test_an_agent_narrows_the_hosts_of_a_tool(running):
    (add,) = take_over(make_server(url=running.url), "add")
    spec = freeze_tool(add, overrides={"hosts": ["a.example"]})

    with pytest.raises(ToolFailed, match="not among the hosts"):
        call_tool(spec, {"a": 1, "b": 2}, deadline=Deadline(seconds=60))
