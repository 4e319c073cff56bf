"""The sign-in of the SDK's server: one account, whose tokens a test can age."""

import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken


@dataclass
class Account:
    """Signs in whoever comes, and remembers what was given out."""

    lasts: int | None = 3600
    """Seconds that an access token is said to last."""
    registers: bool = True
    clients: dict[str, Any] = field(default_factory=dict)
    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    access: dict[str, AccessToken] = field(default_factory=dict)
    refresh: dict[str, RefreshToken] = field(default_factory=dict)
    renewed: int = 0

    def settings(self, origin: str) -> dict[str, Any]:
        """Return what the server is made with."""
        auth = AuthSettings(
            issuer_url=origin,
            resource_server_url=f"{origin}/mcp",
            required_scopes=["tools"],
            validate_token_resource=True,
            client_registration_options=ClientRegistrationOptions(
                enabled=self.registers, valid_scopes=["tools"], default_scopes=["tools"]
            ),
        )
        return {"auth": auth, "auth_server_provider": self}

    async def get_client(self, client_id: str) -> Any:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[str(client_info.client_id)] = client_info

    async def authorize(self, client: Any, params: AuthorizationParams) -> str:
        code = AuthorizationCode(
            code=secrets.token_urlsafe(),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=True,
            resource=params.resource,
        )
        self.codes[code.code] = code
        back = str(params.redirect_uri)
        return construct_redirect_uri(back, code=code.code, state=params.state)

    async def load_authorization_code(self, client: Any, code: str) -> Any:
        return self.codes.get(code)

    async def exchange_authorization_code(self, client: Any, code: Any) -> OAuthToken:
        del self.codes[code.code]
        return self.give(client.client_id, code.scopes, code.resource)

    async def load_refresh_token(self, client: Any, token: str) -> Any:
        return self.refresh.get(token)

    async def exchange_refresh_token(
        self, client: Any, token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        if self.refresh.pop(token.token, None) is None:
            raise TokenError("invalid_grant")
        self.renewed += 1
        return self.give(client.client_id, scopes, token.resource)

    async def load_access_token(self, token: str) -> Any:
        return self.access.get(token)

    async def revoke_token(self, token: Any) -> None:
        self.access.pop(token.token, None)

    def give(
        self, client_id: str, scopes: list[str], resource: str | None
    ) -> OAuthToken:
        """Return new tokens; each refresh token can be used once."""
        about: Any = {"client_id": client_id, "scopes": scopes, "resource": resource}
        access = AccessToken(token=f"access-{secrets.token_urlsafe()}", **about)
        refresh = RefreshToken(token=f"refresh-{secrets.token_urlsafe()}", **about)
        self.access[access.token], self.refresh[refresh.token] = access, refresh
        return OAuthToken(
            access_token=access.token,
            refresh_token=refresh.token,
            expires_in=self.lasts,
            scope=" ".join(scopes),
        )
