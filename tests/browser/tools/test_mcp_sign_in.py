"""Connecting an MCP server in Chromium: to its sign-in on another site, and back."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.driver.axe import violations
from tests.browser.driver.chromium import listen
from tests.browser.site import Site, running_site
from tests.mcp.servers.account import Account
from tests.mcp.servers.http_server import Running, mcp_server

pytestmark = pytest.mark.browser


@pytest.fixture
def server() -> Iterator[Running]:
    """An MCP server that requires a sign-in."""
    with mcp_server(account=Account()) as running:
        yield running


@pytest.fixture
def site(server, monkeypatch) -> Iterator[Site]:
    """A site that may reach the server, under another host name."""
    monkeypatch.setenv("AGENTSITE_PRIVATE_HOSTS", server.policy)
    with running_site() as site:
        yield site._replace(url=site.url.replace("127.0.0.1", "localhost"))


@pytest.mark.slow
def test_a_server_is_connected_with_an_account_of_another_site(browser, site, server):
    context = browser.new_context()
    page = context.new_page()
    received = listen(page)
    page.goto(f"{site.url}/login/{site.link.split('/login/')[1]}")
    page.click("button:has-text('Sign in')")
    page.goto(f"{site.url}/admin/tools/mcpserver/add/")
    page.fill("[name=name]", "Sums")
    page.fill("[name=url]", server.url)
    page.click("button[name=_continue]")

    page.click("#mcp-sign-in button:has-text('Connect')")
    expect(page.locator("#content-main")).to_contain_text("Continue only if you trust")
    assert violations(page) == []
    page.click("a:has-text('Continue to 127.0.0.1')")
    page.wait_for_url(re.compile(rf"^{site.url}/admin/tools/mcpserver/\d+/change/"))

    expect(page.locator("#part-toasts")).to_contain_text("Sums is connected.")
    expect(page.locator("#mcp-sign-in")).to_contain_text("Connected by admin")
    page.click("#mcp-sign-in button:has-text('Disconnect')")
    expect(page.locator("#part-toasts")).to_contain_text("Sums is disconnected.")
    assert received == []
    context.close()
