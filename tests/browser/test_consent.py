"""A person allows a program access in Chromium, and the program gets its code."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from playwright.sync_api import Page, expect

from runs.oauth.codes import compute_challenge
from tests.browser.driver.axe import violations
from tests.browser.driver.chromium import listen, overflow, signed_in

VERIFIER = "v" * 43

pytestmark = pytest.mark.browser


class Program(HTTPServer):
    """A program on the person's computer that waits for its code."""

    received: dict[str, list[str]]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/callback"


class Callback(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path.startswith("/callback"):
            self.server.received = parse_qs(urlsplit(self.path).query)  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<link rel=icon href=data:,><h1>Connected</h1>")

    def log_message(self, *_: Any) -> None:
        """Keep the output of the tests clean."""


@pytest.fixture
def program() -> Iterator[Program]:
    with Program(("127.0.0.1", 0), Callback) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("answer", ["Allow access", "Cancel"])
def test_a_program_is_allowed_access(browser, lived_in, program, answer) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = signed_in(context, lived_in.url, "mara", "secret")
    received = listen(page)
    client = register(lived_in.url, program.address)

    page.goto(f"{lived_in.url}/oauth/authorize?{urlencode(ask(client, program))}")

    expect(page.locator("h1")).to_have_text("Allow Desk lamp access?")
    assert violations(page) == []
    assert not overflow(page)
    page.click(f"#consent-form button:has-text('{answer}')")
    expect(page.locator("h1")).to_have_text("Connected")
    assert program.received["state"] == ["a & b"]
    if answer == "Cancel":
        assert program.received["error"] == ["access_denied"]
    else:
        token = redeem(lived_in.url, client, program)
        tools = list_tools(lived_in.url, token)
        assert "list_runs" in tools
        assert_listed(page, lived_in.url)
    assert received == []
    context.close()


def register(site: str, address: str) -> str:
    body = {"client_name": "Desk lamp", "redirect_uris": [address]}
    made = httpx.post(f"{site}/oauth/register", json=body).raise_for_status()
    return str(made.json()["client_id"])


def ask(client: str, program: Program) -> dict[str, str]:
    return {
        "response_type": "code",
        "client_id": client,
        "redirect_uri": program.address,
        "code_challenge": compute_challenge(VERIFIER),
        "code_challenge_method": "S256",
        "state": "a & b",
    }


def redeem(site: str, client: str, program: Program) -> str:
    form = {
        "grant_type": "authorization_code",
        "client_id": client,
        "code": program.received["code"][0],
        "redirect_uri": program.address,
        "code_verifier": VERIFIER,
    }
    made = httpx.post(f"{site}/oauth/token", data=form).raise_for_status()
    return str(made.json()["access_token"])


def list_tools(site: str, token: str) -> list[str]:
    answer = httpx.post(
        f"{site}/mcp/inspect",
        json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        headers={
            "Authorization": f"Bearer {token}",
            "Accept": "application/json, text/event-stream",
        },
    ).raise_for_status()
    return [tool["name"] for tool in answer.json()["result"]["tools"]]


def assert_listed(page: Page, site: str) -> None:
    """Find the token among those of the person."""
    page.goto(f"{site}/account/tokens/")
    expect(page.locator("#token-list")).to_contain_text("Desk lamp")
