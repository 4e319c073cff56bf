"""MCP clients sign a person in: OAuth 2.1 with the official SDK, and misuse of it."""

import asyncio
import json
import time
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest
from django.contrib.auth.models import User
from django.test import Client as DjangoClient
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from runs.models import Agent, ApiToken
from runs.oauth.codes import compute_challenge
from runs.services.accounts.tokens import find_valid_token
from tests.support.threads import in_thread

CALLBACK = "http://127.0.0.1:43117/callback"
VERIFIER = "v" * 43
SITE = "http://testserver"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def browser(ann: User) -> DjangoClient:
    browser = DjangoClient()
    browser.force_login(ann)
    return browser


class Memory:
    """What the client's program remembers."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@pytest.mark.parametrize("path", ["/mcp", "/mcp/inspect"])
@pytest.mark.slow
def test_the_official_client_signs_in_and_lists_tools(
    url: str, ann: User, agent: Agent, browser: DjangoClient, path: str
) -> None:
    Agent.objects.filter(pk=agent.pk).update(is_offered=True)
    memory, answers = Memory(), []

    def consent(address: str) -> None:
        parts = urlsplit(address)
        there = f"{parts.path}?{parts.query}"
        headers = {"host": parts.netloc}
        answer = browser.post(there, {"answer": "allow", "days": "30"}, headers=headers)
        answers.append(parse_qs(urlsplit(answer["Location"]).query))

    async def redirect(address: str) -> None:
        await in_thread(consent, address)

    async def receive() -> AuthorizationCodeResult:
        [answer] = answers
        return AuthorizationCodeResult(
            code=answer["code"][0], state=answer["state"][0], iss=answer["iss"][0]
        )

    async def scene() -> list[str]:
        auth = OAuthClientProvider(
            url + path,
            OAuthClientMetadata(redirect_uris=[CALLBACK], client_name="Desk lamp"),
            memory,
            redirect_handler=redirect,
            callback_handler=receive,
        )
        async with (
            asyncio.timeout(60),
            httpx2.AsyncClient(auth=auth, timeout=60) as http,
            Client(streamable_http_client(url + path, http_client=http)) as client,
        ):
            return [tool.name for tool in (await client.list_tools()).tools]

    names = asyncio.run(scene())

    assert names[0] == ("helper" if path == "/mcp" else "list_agents")
    token = ApiToken.objects.get(user=ann)
    assert token.name == "Desk lamp"
    assert token.scopes == ("read run" if path == "/mcp" else "read")
    assert memory.tokens is not None
    assert memory.tokens.expires_in == 30 * 86_400


def register(browser: DjangoClient, *uris: str, **more: Any) -> Any:
    return browser.post(
        "/oauth/register",
        json.dumps({"redirect_uris": uris or [CALLBACK], **more}),
        content_type="application/json",
    )


@pytest.fixture
def asked(browser: DjangoClient) -> dict[str, str]:
    """Return an authorization request of a registered client."""
    client = register(browser, client_name="Desk lamp").json()
    return {
        "response_type": "code",
        "client_id": client["client_id"],
        "redirect_uri": CALLBACK,
        "code_challenge": compute_challenge(VERIFIER),
        "code_challenge_method": "S256",
        "state": "a & b",
    }


def ask(browser: DjangoClient, asked: dict[str, str], answer: str = "allow") -> Any:
    """Return the values that the client is sent."""
    sent = browser.post(
        f"/oauth/authorize?{urlencode(asked)}", {"answer": answer, "days": "1"}
    )
    assert sent.status_code == 302, sent.content.decode()
    address, _, query = sent["Location"].partition("?")
    assert address == asked["redirect_uri"]
    values = {name: value for name, [value] in parse_qs(query).items()}
    assert values.pop("state") == "a & b"
    assert values.pop("iss") == SITE
    return values


def redeem(browser: DjangoClient, asked: dict[str, str], **changed: str) -> Any:
    form = {
        "grant_type": "authorization_code",
        "client_id": asked["client_id"],
        "redirect_uri": asked["redirect_uri"],
        "code_verifier": VERIFIER,
    }
    return browser.post("/oauth/token", form | changed)


def test_a_code_gives_one_token_and_its_second_use_revokes_it(
    browser: DjangoClient, asked: dict[str, str]
) -> None:
    code = ask(browser, asked)["code"]

    first = redeem(browser, asked, code=code)

    assert first["Cache-Control"].count("no-store") == 1
    token = first.json()["access_token"]
    assert find_valid_token(token) is not None
    second = redeem(browser, asked, code=code)
    assert (second.status_code, second.json()["error"]) == (400, "invalid_grant")
    assert find_valid_token(token) is None
    assert redeem(browser, asked, code=code).json()["error"] == "invalid_grant"


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"code_verifier": "w" * 43}, "invalid_grant"),
        ({"code_verifier": ""}, "invalid_grant"),
        ({"redirect_uri": "http://127.0.0.1:43117/other"}, "invalid_grant"),
        ({"code": "made:up:code"}, "invalid_grant"),
        ({"client_id": "made:up"}, "invalid_client"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
    ],
)
def test_a_code_is_worth_nothing_to_others(
    browser: DjangoClient, asked: dict[str, str], changed: dict[str, str], error: str
) -> None:
    code = ask(browser, asked)["code"]

    refused = redeem(browser, asked, **({"code": code} | changed))

    assert refused.json()["error"] == error
    assert not ApiToken.objects.exists()
    assert redeem(browser, asked, code=code).status_code == 200


def test_a_code_belongs_to_one_client(
    browser: DjangoClient, asked: dict[str, str]
) -> None:
    code = ask(browser, asked)["code"]
    other = register(browser, client_name="Another").json()["client_id"]

    refused = redeem(browser, asked, code=code, client_id=other)

    assert "another client" in refused.json()["error_description"]


def test_a_code_ends_with_its_minute_and_with_the_account(
    browser: DjangoClient,
    asked: dict[str, str],
    ann: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = ask(browser, asked)["code"]
    User.objects.filter(pk=ann.pk).update(is_active=False)
    assert "disabled" in redeem(browser, asked, code=code).json()["error_description"]
    User.objects.filter(pk=ann.pk).update(is_active=True)

    later = time.time() + 61
    monkeypatch.setattr("django.core.signing.time.time", lambda: later)

    assert "expired" in redeem(browser, asked, code=code).json()["error_description"]


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"code_challenge": ""}, "invalid_request"),
        ({"code_challenge": "\u00e9" * 43}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"scope": "read approve"}, "invalid_scope"),
        ({"resource": "https://elsewhere.example/mcp"}, "invalid_target"),
    ],
)
def test_the_client_is_told_what_is_wrong_with_its_request(
    browser: DjangoClient, asked: dict[str, str], changed: dict[str, str], error: str
) -> None:
    assert ask(browser, asked | changed)["error"] == error


@pytest.mark.parametrize(
    "changed",
    [
        {"client_id": "made:up"},
        {"client_id": ""},
        {"redirect_uri": "https://evil.example/"},
        {"redirect_uri": "http://127.0.0.1:43117/other"},
        {"redirect_uri": "http://127.0.0.1:1@evil.example/callback"},
    ],
)
def test_an_unregistered_address_is_sent_nothing(
    browser: DjangoClient, asked: dict[str, str], changed: dict[str, str]
) -> None:
    query = urlencode(asked | changed)

    page = browser.post(f"/oauth/authorize?{query}", {"answer": "allow", "days": "1"})

    assert page.status_code == 400
    assert b"cannot sign in" in page.content


def test_a_port_of_this_computer_may_change(
    browser: DjangoClient, asked: dict[str, str]
) -> None:
    moved = asked | {"redirect_uri": "http://127.0.0.1:50000/callback"}

    code = ask(browser, moved)["code"]

    assert redeem(browser, moved, code=code).status_code == 200


def test_cancel_gives_the_client_no_code(
    browser: DjangoClient, asked: dict[str, str]
) -> None:
    assert ask(browser, asked, "cancel")["error"] == "access_denied"


def test_the_page_names_the_program_its_address_and_the_scopes(
    browser: DjangoClient, asked: dict[str, str]
) -> None:
    page = browser.get(f"/oauth/authorize?{urlencode(asked | {'scope': 'read'})}")

    html = page.content.decode()
    assert "Allow Desk lamp access?" in html
    assert "127.0.0.1:43117" in html
    assert "Read what you can see" in html
    assert "Start, change" not in html
    policy = page["Content-Security-Policy"]
    assert "form-action 'self' http://127.0.0.1:43117;" in policy


def test_nobody_signed_in_is_asked_to(asked: dict[str, str]) -> None:
    page = DjangoClient().get(f"/oauth/authorize?{urlencode(asked)}")

    assert page.status_code == 302
    assert page["Location"].startswith("/sign-in/?next=/oauth/authorize")


@pytest.mark.parametrize(
    "uri",
    [
        "http://example.org/",
        "https://user@example.org/",
        "https://",
        "https://a.example/;script-src *",
        "https://a.example/#part",
        "https://exa mple.org/",
        "javascript:alert(1)",
        "java\u017fcript:alert(1)",
        "\u212a://evil/",
        "mailto:eve@example.org",
        "http://evil.example[::1]/callback",
        "http://[::1].evil.example/callback",
        "https://a.example:/",
        "app://user@a.example/",
        "data:text/html,hello",
        "/callback",
        "https://a.example:99999/",
        "https://a.example/" + "a" * 500,
    ],
)
def test_an_unsafe_address_is_not_registered(browser: DjangoClient, uri: str) -> None:
    refused = register(browser, uri)

    assert refused.status_code == 400
    assert refused.json()["error"] == "invalid_redirect_uri"
    assert refused.json()["error_description"].startswith("redirect_uris: ")


@pytest.mark.parametrize(
    "uri", ["https://claude.example/api/mcp?x=1", "http://[::1]/a", "cursor://x/cb"]
)
def test_a_safe_address_is_registered(browser: DjangoClient, uri: str) -> None:
    made = register(browser, uri, client_name=" A\u202e\n B ")

    assert made.status_code == 201
    assert made.json()["client_name"] == "A B"


@pytest.mark.parametrize("body", ["", "[]", "{", '{"redirect_uris": []}', "\xff"])
def test_a_body_that_is_no_registration(browser: DjangoClient, body: str) -> None:
    refused = browser.post("/oauth/register", body, content_type="application/json")

    assert refused.status_code == 400
    assert refused.json()["error"] == "invalid_client_metadata"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ({}, 'Bearer realm="agentsite", scope='),
        ({"Authorization": "Bearer as_x"}, 'error="invalid_token", scope="read run"'),
    ],
)
def test_a_refused_token_says_where_to_sign_in(
    header: dict[str, str], expected: str
) -> None:
    refused = DjangoClient().post("/mcp", headers=header)

    challenge = refused["WWW-Authenticate"]
    assert refused.status_code == 401
    assert expected in challenge
    where = challenge.split('resource_metadata="')[1].removesuffix('"')
    known = DjangoClient().get(urlsplit(where).path).json()
    assert known["resource"] == f"{SITE}/mcp"
    assert known["authorization_servers"] == [SITE]


def test_a_link_alone_leads_nowhere_else(
    browser: DjangoClient, asked: dict[str, str]
) -> None:
    page = browser.get(f"/oauth/authorize?{urlencode(asked | {'scope': 'all'})}")

    assert page.status_code == 400
    assert b"scope: only read, run, build are offered." in page.content


def test_a_long_state_is_not_sent_back(
    browser: DjangoClient, asked: dict[str, str]
) -> None:
    query = urlencode(asked | {"state": "\U0001f600" * 2000})

    sent = browser.post(f"/oauth/authorize?{query}", {"answer": "allow", "days": "1"})

    values = parse_qs(urlsplit(sent["Location"]).query)
    assert values["error"] == ["invalid_request"]
    assert "state" not in values


def test_an_app_is_named_by_its_scheme(browser: DjangoClient) -> None:
    address = "evilapp://claude.ai/callback"
    asked = {
        "response_type": "code",
        "client_id": register(browser, address).json()["client_id"],
        "code_challenge": compute_challenge(VERIFIER),
        "code_challenge_method": "S256",
    }

    page = browser.get(f"/oauth/authorize?{urlencode(asked)}")

    assert b"<code>evilapp://claude.ai</code>" in page.content


def test_a_second_use_at_the_limit_of_tokens_revokes_too(
    browser: DjangoClient, asked: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runs.services.accounts.tokens.MAX_TOKENS", 1)
    code = ask(browser, asked)["code"]
    token = redeem(browser, asked, code=code).json()["access_token"]

    assert redeem(browser, asked, code=code).status_code == 400

    assert find_valid_token(token) is None
