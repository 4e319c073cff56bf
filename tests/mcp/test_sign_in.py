"""Signing in to the SDK's server with OAuth, through the admin."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from html import unescape
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.utils import timezone

from tests.mcp.rows import make_server, take_over
from tests.mcp.servers.account import Account
from tests.mcp.servers.http_server import mcp_server
from tests.tools.admin.test_tools import signed_in
from tests.tools.http_server import Answer, serve
from tests.tools.rows import make_user
from tools.definition.freeze import freeze_tool
from tools.errors import ToolFailed
from tools.kinds.registry import call_tool
from tools.mcp.oauth import (
    ServerMetadata,
    Tokens,
    check_server,
    parse_oauth_json,
    plan_sign_in,
)
from tools.mcp_servers.import_tools import discover_mcp_tools
from tools.mcp_servers.sessions import McpSessions
from tools.mcp_servers.sign_in import build_request_sender, open_mcp_sign_in
from tools.models import AuditEntry, Credential, McpSignIn
from tools.net.deadline import Deadline
from tools.net.http_exchange import Response
from tools.secrets import unseal

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def account():
    return Account()


@pytest.fixture
def running(settings, account):
    with mcp_server(account=account) as server:
        settings.PRIVATE_HOSTS = server.policy
        yield server


@pytest.fixture
def client():
    return signed_in()


@pytest.fixture
def server(running):
    return make_server(url=running.url, owner=make_user("admin"))


def text_of(response):
    assert response.status_code == 200
    return response.content.decode()


def press_connect(client, server):
    """Return the page that Connect leads to."""
    return text_of(client.post(f"/admin/tools/mcpserver/{server.pk}/connect/"))


def begin(client, server):
    """Return the link to the sign-in."""
    shown = press_connect(client, server)
    return unescape(re.search(r'<a class="btn primary" href="([^"]+)"', shown)[1])


def sign_in(link):
    """Return where the sign-in sends the browser back to."""
    back = urlsplit(httpx.get(link).headers["location"])
    return f"{back.path}?{back.query}"


def connect(client, server):
    """Press Connect and sign in; return the page one comes back to."""
    return text_of(client.get(sign_in(begin(client, server)), follow=True))


def asked(tool, sessions=None, **arguments):
    return call_tool(
        freeze_tool(tool),
        arguments,
        deadline=Deadline(seconds=60),
        mcp_sessions=sessions,
    )


def test_without_a_sign_in_the_error_says_what_is_needed(server):
    with pytest.raises(ToolFailed, match="needs sign-in"):
        discover_mcp_tools(server, by=server.owner)


def test_a_server_that_is_connected_can_be_used(client, server, running, account):
    message = connect(client, server)

    assert "Tests is connected." in message
    assert "Disconnect" in message
    (add,) = take_over(server, "add")
    assert asked(add, a=1, b=2) == "3"
    row = McpSignIn.objects.get()
    assert (row.by.username, row.resource) == ("admin", running.url)
    assert unseal(row.sealed_access_token) in account.access
    assert unseal(row.sealed_access_token) not in row.sealed_access_token
    entry = AuditEntry.objects.get(action="connected")
    assert (entry.noun, entry.thing, entry.by) == ("MCP server", "Tests", "admin")


def test_the_link_carries_state_and_a_proof_key(client, server):
    query = parse_qs(urlsplit(begin(client, server)).query)

    assert query["code_challenge_method"] == ["S256"]
    assert query["resource"] == [server.url]
    assert query["scope"] == ["tools"]
    assert len(query["state"][0]) >= 32
    back = "http://testserver/admin/tools/mcpserver/signed-in/"
    assert query["redirect_uri"] == [back]


@pytest.mark.parametrize(
    "change", ["state", "no ASCII", "other browser", "twice", "too late", "iss"]
)
def test_an_answer_that_was_not_asked_for_is_refused(
    client, server, change, monkeypatch
):
    there = sign_in(begin(client, server))
    match change:
        case "state":
            there = re.sub(r"state=[^&]*", "state=mine", there)
        case "no ASCII":
            there = re.sub(r"state=[^&]*", "state=%C3%A9", there)
        case "iss":
            there += "&iss=https%3A%2F%2Fevil.example"
        case "other browser":
            client = signed_in("eve")
        case "twice":
            client.get(re.sub(r"state=[^&]*", "state=mine", there))
        case "too late":
            later = timezone.now() + timedelta(minutes=11)
            monkeypatch.setattr(timezone, "now", lambda: later)

    message = text_of(client.get(there, follow=True))

    assert "This sign-in was not started here, or it took too long." in message
    assert not McpSignIn.objects.exists()


def test_a_person_who_declines_reads_why(client, server):
    state = parse_qs(urlsplit(begin(client, server)).query)["state"][0]

    message = text_of(
        client.get(
            "/admin/tools/mcpserver/signed-in/",
            {"state": state, "error": "access_denied", "error_description": "No <b>"},
            follow=True,
        )
    )

    assert "Sign-in failed: No &lt;b&gt;" in message


def test_only_who_may_change_the_server_can_connect_it(server):
    server.visibility = "everyone"
    server.save()
    stranger = signed_in("eve")
    User.objects.filter(username="eve").update(is_superuser=False)
    may = Permission.objects.get(codename="change_mcpserver")
    User.objects.get(username="eve").user_permissions.add(may)

    there = f"/admin/tools/mcpserver/{server.pk}/connect/"
    assert stranger.post(there).status_code == 403
    assert stranger.get(there).status_code == 405


def test_a_token_is_renewed_before_it_expires(client, server, account):
    connect(client, server)
    (add,) = take_over(server, "add")
    old = McpSignIn.objects.get().sealed_access_token
    McpSignIn.objects.update(renew_at=timezone.now())

    assert asked(add, a=1, b=2) == "3"

    assert account.renewed == 1
    assert McpSignIn.objects.get().sealed_access_token != old
    assert asked(add, a=1, b=2) == "3"
    assert account.renewed == 1


def test_a_token_that_the_server_rejects_is_renewed_in_the_session(
    client, server, account
):
    connect(client, server)
    count = take_over(server, "count")[0]
    with McpSessions() as sessions:
        assert asked(count, sessions) == "1"
        account.access.clear()

        asked(count, sessions)

    assert account.renewed == 1


def test_workers_that_need_a_new_token_at_once_renew_it_once(client, server, account):
    connect(client, server)
    McpSignIn.objects.update(renew_at=timezone.now())

    def open_token(_):
        try:
            return open_mcp_sign_in(server, deadline=Deadline(seconds=60)).secret
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        tokens = set(pool.map(open_token, range(4)))

    assert account.renewed == 1
    assert tokens == set(account.access) - {next(iter(account.access))}


def test_a_sign_in_that_cannot_be_renewed_has_to_be_done_again(client, server, account):
    connect(client, server)
    add = take_over(server, "add")[0]
    account.access.clear()
    account.refresh.clear()

    for _ in range(2):
        with pytest.raises(ToolFailed, match="needs sign-in: the sign-in has expired"):
            asked(add, a=1, b=2)

    assert McpSignIn.objects.get().sealed_refresh_token == ""
    connect(client, server)
    assert asked(add, a=1, b=2) == "3"


def test_disconnecting_forgets_the_tokens(client, server):
    connect(client, server)

    message = text_of(
        client.post(f"/admin/tools/mcpserver/{server.pk}/disconnect/", follow=True)
    )

    assert "Tests is disconnected." in message
    assert not McpSignIn.objects.exists()
    with pytest.raises(ToolFailed, match="needs sign-in"):
        discover_mcp_tools(server, by=server.owner)


def test_a_token_is_not_sent_to_another_address(client, server, settings):
    connect(client, server)
    with serve(lambda got: Answer({}, status=401)) as other:
        settings.PRIVATE_HOSTS = "mcp=127.0.0.1"
        server.url = f"{other.url}/mcp"
        server.save()

        with pytest.raises(ToolFailed, match="needs sign-in"):
            discover_mcp_tools(server, by=server.owner)

    assert [got for got in other.got if "authorization" in got.headers] == []


def test_a_client_that_was_registered_by_hand_is_used(settings, client):
    account = Account(registers=False)
    with mcp_server(account=account) as running:
        settings.PRIVATE_HOSTS = running.policy
        server = make_server(url=running.url, owner=make_user("admin"))
        message = press_connect(client, server)
        assert "registers no clients by itself" in message
        assert "http://testserver/admin/tools/mcpserver/signed-in/" in message
        account.clients["mine"] = registered_client()
        client.post(
            f"/admin/tools/mcpserver/{server.pk}/change/",
            {
                **{"name": "Tests", "transport": "http", "url": running.url},
                **{"visibility": "private", "command": ""},
                **{"client_id": "mine", "client_secret": "s3cret"},
            },
        )
        server.refresh_from_db()
        assert unseal(server.sealed_client_secret) == "s3cret"

        connect(client, server)

        assert McpSignIn.objects.get().client_id == "mine"


def registered_client():
    from mcp.shared.auth import OAuthClientInformationFull  # noqa: PLC0415

    return OAuthClientInformationFull(
        client_id="mine",
        client_secret="s3cret",
        redirect_uris=["http://testserver/admin/tools/mcpserver/signed-in/"],
        token_endpoint_auth_method="client_secret_post",
        scope="tools",
    )


def test_the_requests_of_a_sign_in_obey_the_network_guard(client, server, settings):
    settings.PRIVATE_HOSTS = ""

    message = press_connect(client, server)

    assert "AGENTSITE_PRIVATE_HOSTS=mcp=127.0.0.1" in message


RESOURCE = {"resource": "ORIGIN/mcp", "authorization_servers": ["ORIGIN"]}
SERVER = {
    "issuer": "ORIGIN",
    "authorization_endpoint": "ORIGIN/authorize",
    "token_endpoint": "ORIGIN/token",
    "code_challenge_methods_supported": ["S256"],
}


@pytest.mark.parametrize(
    ("resource", "server", "why"),
    [
        (None, None, "does not say where to sign in"),
        ({"resource": "https://other.example/mcp"}, {}, "which is another one"),
        ({"resource": "ORIGIN/mc"}, {}, "which is another one"),
        ({"authorization_servers": []}, {}, "does not say where to sign in"),
        ({}, None, "no description of the authorization server"),
        ({}, {"issuer": "https://evil.example"}, "calls itself"),
        ({}, {"code_challenge_methods_supported": ["plain"]}, "PKCE with S256"),
        ({}, {"authorization_endpoint": "javascript:alert(1)"}, "cannot be used"),
        ({}, {"registration_endpoint": "file:///etc"}, "cannot be used"),
        ({}, {"token_endpoint": 5}, "without what OAuth requires"),
    ],
)
def test_a_sign_in_that_cannot_be_trusted_is_refused(resource, server, why, settings):
    settings.PRIVATE_HOSTS = "mcp=127.0.0.1"
    documents = {
        "/.well-known/oauth-protected-resource/mcp": (RESOURCE, resource),
        "/.well-known/oauth-authorization-server": (SERVER, server),
    }

    def answer(got):
        usual, changes = documents.get(got.path, ({}, None))
        if changes is None:
            return Answer({}, status=404 if got.method == "GET" else 401)
        text = httpx.Response(200, json={**usual, **changes}).text
        origin = f"http://{got.headers['host']}"
        return Answer(text.replace("ORIGIN", origin).encode())

    with serve(answer) as found, pytest.raises(ToolFailed, match=why):
        plan_sign_in(f"{found.url}/mcp", build_request_sender(Deadline(seconds=20)))


def test_an_encrypted_server_has_encrypted_addresses_only():
    addresses = ("authorization_endpoint", "token_endpoint", "registration_endpoint")
    good = dict.fromkeys(addresses, "https://auth.example/x")
    for name in addresses:
        server = ServerMetadata(
            issuer="https://auth.example",
            code_challenge_methods_supported=("S256",),
            **{**good, name: "http://auth.example/x"},
        )
        with pytest.raises(ToolFailed, match="is not encrypted"):
            check_server(server, server.issuer, is_encrypted=True)


@pytest.mark.parametrize("lasts", [-5, 1, 10**15])
def test_a_token_of_any_lifetime_is_used(client, server, account, lasts):
    account.lasts = lasts
    connect(client, server)
    McpSignIn.objects.update(renew_at=timezone.now())

    opened = open_mcp_sign_in(server, deadline=Deadline(seconds=3))

    assert opened.secret in account.access
    assert account.renewed == 1


@pytest.mark.parametrize("lasts", ["NaN", "Infinity"])
def test_a_lifetime_that_is_no_number_is_refused(lasts):
    body = f'{{"access_token": "a", "expires_in": {lasts}}}'.encode()
    with pytest.raises(ToolFailed, match="without what OAuth requires"):
        parse_oauth_json(Response(200, {}, body, "https://auth.example"), Tokens)


def test_a_credential_is_sent_until_the_server_is_connected(client, server, running):
    secret = Credential.objects.create(
        name="key", owner=server.owner, hosts=[running.url], sealed=""
    )
    server.credential = secret
    server.save()
    connect(client, server)

    take_over(server, "add")

    sent = {head.get("authorization", "")[:14] for head in running.heads}
    assert "Bearer access-" in sent
