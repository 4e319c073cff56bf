"""Signing in to an MCP server for all who use it, and keeping its token fresh."""

import secrets
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from pydantic import BaseModel, ConfigDict

from tools.audit.write import write_entry
from tools.credentials import OpenCredential
from tools.errors import ToolFailed
from tools.mcp.errors import McpFailed
from tools.mcp.oauth import (
    Client,
    Plan,
    Send,
    SignInFailed,
    Tokens,
    build_authorization_url,
    choose_client_auth,
    covers,
    create_verifier,
    plan_sign_in,
    register_client,
    request_tokens,
)
from tools.mcp_sign_in import McpSignIn
from tools.models import Credential, McpServer
from tools.net.deadline import Deadline
from tools.net.http_exchange import get_url_origin, send_request
from tools.net.outbound_policy import get_net_policy
from tools.secrets import SecretUnreadable, seal, unseal

SIGN_IN_SECONDS = 20.0
"""For all requests of one step of a sign-in."""

PENDING_MINUTES = 10
MIN_TOKEN_SECONDS = 5.0
"""A new token is used at least as long, so that renewing it comes to an end."""

MAX_TOKEN_SECONDS = 366 * 86400.0
"""A longer lifetime might exceed the last date."""

RENEW_LEASE = timedelta(seconds=30)
RENEW_POLL_SECONDS = 0.2


class SignInExpired(McpFailed):
    """The account has to be connected again."""

    def __init__(self, name: str, why: str = "") -> None:
        words = f" {why}" if why else ""
        super().__init__(
            f"The MCP server {name!r} needs sign-in: the sign-in has expired. An "
            f"administrator can connect it again on its page.{words}"
        )


class PendingSignIn(BaseModel):
    """A sign-in that a person has begun and not finished."""

    model_config = ConfigDict(frozen=True)

    server_id: int
    url: str
    plan: Plan
    client: Client
    redirect_uri: str
    state: str
    verifier: str
    begun_at: datetime

    @property
    def authorization_url(self) -> str:
        return build_authorization_url(
            self.plan,
            self.client,
            redirect_uri=self.redirect_uri,
            state=self.state,
            verifier=self.verifier,
        )

    def is_answered_by(self, state: str, issuer: str) -> bool:
        """Whether an answer of that state, and issuer if it has one, belongs to it."""
        is_recent = timezone.now() - self.begun_at < timedelta(minutes=PENDING_MINUTES)
        is_ours = not issuer or issuer == self.plan.server.issuer
        is_same = secrets.compare_digest(state.encode(), self.state.encode())
        return is_recent and is_ours and is_same


def begin_mcp_sign_in(server: McpServer, *, redirect_uri: str) -> PendingSignIn:
    """Find out where to sign in; raise `ToolFailed` or `Interrupted`."""
    send = build_request_sender(Deadline(seconds=SIGN_IN_SECONDS))
    plan = plan_sign_in(server.url, send)
    if server.client_id:
        secret = unseal(server.sealed_client_secret)
        methods = plan.server.token_endpoint_auth_methods_supported
        client = Client(
            client_id=server.client_id,
            client_secret=secret,
            token_endpoint_auth_method=choose_client_auth(
                methods, has_secret=bool(secret)
            ),
        )
    else:
        client = register_client(plan.server, redirect_uri, send)
    return PendingSignIn(
        server_id=server.pk,
        url=server.url,
        plan=plan,
        client=client,
        redirect_uri=redirect_uri,
        state=secrets.token_urlsafe(32),
        verifier=create_verifier(),
        begun_at=timezone.now(),
    )


def finish_mcp_sign_in(
    pending: PendingSignIn, code: str, *, server: McpServer, by: User
) -> None:
    """Get the tokens for a code and store them; raise `ToolFailed`."""
    if server.url != pending.url:
        raise SignInFailed("the address of the server was changed meanwhile")
    grant = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": pending.redirect_uri,
        "code_verifier": pending.verifier,
        "resource": pending.plan.resource,
    }
    endpoint = pending.plan.server.token_endpoint
    send = build_request_sender(Deadline(seconds=SIGN_IN_SECONDS))
    tokens = request_tokens(endpoint, pending.client, grant, send)
    with transaction.atomic():
        McpSignIn.objects.update_or_create(
            server=server,
            defaults={
                "resource": pending.plan.resource,
                "token_endpoint": endpoint,
                "client_id": pending.client.client_id,
                "client_auth": pending.client.token_endpoint_auth_method,
                "sealed_client_secret": seal(pending.client.client_secret),
                "sealed_refresh_token": "",
                "by": by,
                "connected_at": timezone.now(),
                **sealed_tokens(tokens),
            },
        )
        write_entry("connected", "MCP server", server, by=by)


def disconnect_mcp_server(server: McpServer, *, by: User) -> None:
    """Forget the tokens."""
    with transaction.atomic():
        deleted, _ = McpSignIn.objects.filter(server=server).delete()
        if deleted:
            write_entry("disconnected", "MCP server", server, by=by)


def open_mcp_sign_in(
    server: McpServer, *, deadline: Deadline, rejected: str = ""
) -> OpenCredential | None:
    """Return the token of a server that was signed in to, a fresh one if needed.

    `rejected` is a token that the server has just refused. Raise `ToolFailed`.
    """
    if server.transport != McpServer.Transport.HTTP:
        return None
    while (row := McpSignIn.objects.filter(server=server).first()) is not None:
        if not covers(row.resource, server.url):
            return None  # the server has another address now
        opened = open_tokens(row, server)
        is_due = row.renew_at is not None and row.renew_at <= timezone.now()
        if opened.access_token != rejected and not is_due:
            hosts = (get_url_origin(row.resource),)
            return OpenCredential(
                Credential.Kind.BEARER, "", hosts, opened.access_token
            )
        if not opened.refresh_token:
            raise SignInExpired(server.name)
        if claim_renewal(row):
            renew_tokens(row, opened, server=server, deadline=deadline)
            rejected = ""
        else:
            deadline.sleep(RENEW_POLL_SECONDS)
    return None


class OpenTokens(NamedTuple):
    access_token: str
    refresh_token: str
    client_secret: str


def open_tokens(row: McpSignIn, server: McpServer) -> OpenTokens:
    try:
        return OpenTokens(
            unseal(row.sealed_access_token),
            unseal(row.sealed_refresh_token),
            unseal(row.sealed_client_secret),
        )
    except SecretUnreadable:
        raise SignInExpired(server.name) from None


def claim_renewal(row: McpSignIn) -> bool:
    """Whether this worker, and no other, may use the refresh token now."""
    now = timezone.now()
    same = McpSignIn.objects.filter(
        pk=row.pk, sealed_access_token=row.sealed_access_token
    )
    free = same.filter(Q(renewing_until=None) | Q(renewing_until__lt=now))
    return bool(free.update(renewing_until=now + RENEW_LEASE))


def renew_tokens(
    row: McpSignIn, opened: OpenTokens, *, server: McpServer, deadline: Deadline
) -> None:
    """Exchange the refresh token; forget it if it is no longer accepted."""
    client = Client(
        client_id=row.client_id,
        client_secret=opened.client_secret,
        token_endpoint_auth_method=row.client_auth,
    )
    grant = {
        "grant_type": "refresh_token",
        "refresh_token": opened.refresh_token,
        "resource": row.resource,
    }
    mine = McpSignIn.objects.filter(
        pk=row.pk, sealed_access_token=row.sealed_access_token
    )
    try:
        tokens = request_tokens(
            row.token_endpoint, client, grant, build_request_sender(deadline)
        )
    except SignInFailed as failed:
        if failed.is_final:
            mine.update(renewing_until=None, sealed_refresh_token="")
            raise SignInExpired(server.name, str(failed)) from None
        mine.update(renewing_until=None)
        raise
    except ToolFailed:
        mine.update(renewing_until=None)
        raise
    mine.update(**sealed_tokens(tokens))


def sealed_tokens(tokens: Tokens) -> dict[str, object]:
    """Return the columns of new tokens; a refresh token that was not renewed stays."""
    columns: dict[str, object] = {
        "sealed_access_token": seal(tokens.access_token),
        "renew_at": None,
        "renewing_until": None,
    }
    if tokens.expires_in:
        left = max(tokens.expires_in - 60, tokens.expires_in / 2, MIN_TOKEN_SECONDS)
        wait = timedelta(seconds=min(left, MAX_TOKEN_SECONDS))
        columns["renew_at"] = timezone.now() + wait
    if tokens.refresh_token:
        columns["sealed_refresh_token"] = seal(tokens.refresh_token)
    return columns


def build_request_sender(deadline: Deadline) -> Send:
    policy = get_net_policy("mcp")
    return partial(send_request, policy=policy, deadline=deadline)
