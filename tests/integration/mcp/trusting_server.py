"""A real MCP server (the SDK's) that takes tokens of an authorization server for its own address,
and checks each."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio.to_thread
import jwt
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from pydantic import AnyHttpUrl

from tests.integration.mcp.parts import free_port, serving


@dataclass(slots=True, kw_only=True)
class TrustingServer:
    """Its tool `whoami` answers with the subject and the client of the token that it was called
    with."""

    issuer: str
    url: str
    keys: jwt.PyJWKClient
    refused: list[str] = field(default_factory=list)
    """The names of the errors of tokens that it did not take."""
    revoked: set[str] = field(default_factory=set)
    seen: list[dict[str, Any]] = field(default_factory=list)
    """The claims of each token, in the order of the requests."""

    def trust(self, issuer: str) -> None:
        """Take tokens of this issuer from now on."""
        self.issuer, self.keys = issuer, jwt.PyJWKClient(f"{issuer}/jwks")

    async def verify_token(self, token: str) -> AccessToken | None:
        try:
            claims = await anyio.to_thread.run_sync(partial(self._claims, token))
        except jwt.PyJWTError as error:
            self.refused.append(type(error).__name__)
            return None
        if claims["jti"] in self.revoked:
            return None
        self.seen.append(claims)
        return AccessToken(token=token, client_id=claims["client_id"], scopes=[], subject=claims.get("sub"))

    def _claims(self, token: str) -> dict[str, Any]:
        key = self.keys.get_signing_key_from_jwt(token)
        claims: dict[str, Any] = jwt.decode(
            token, key, algorithms=["RS256", "ES256", "EdDSA"], audience=self.url, issuer=self.issuer
        )
        return claims


@asynccontextmanager
async def trusting(issuer: str) -> AsyncIterator[TrustingServer]:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    trusting = TrustingServer(issuer=issuer, url=url, keys=jwt.PyJWKClient(f"{issuer}/jwks"))
    auth = AuthSettings(
        issuer_url=AnyHttpUrl(issuer), resource_server_url=AnyHttpUrl(url), validate_token_resource=False
    )
    server = MCPServer("trusting", token_verifier=trusting, auth=auth)

    @server.tool()
    async def whoami() -> str:
        token = get_access_token()
        assert token is not None
        return f"{token.subject} by {token.client_id}"

    async with serving(server.streamable_http_app(), port):
        yield trusting
