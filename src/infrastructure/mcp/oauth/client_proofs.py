"""How Dragoman proves itself as an OAuth client: a secret, or an assertion that it signs."""

from application.system.ports import Clock
from domain.mcp.auth import AuthorizationCodeAuth
from domain.mcp.server import McpServer
from infrastructure.mcp.oauth.assertions import client_assertion
from infrastructure.mcp.oauth.grants import OAuthClient, oauth_settings
from infrastructure.mcp.oauth.tokens import PRIVATE_KEY
from infrastructure.mcp.secret_values import SecretValues


class ClientProofs:
    """One per process."""

    def __init__(self, *, secrets: SecretValues, clock: Clock) -> None:
        self._secrets = secrets
        self._clock = clock

    async def of(self, server: McpServer, client: OAuthClient, issuer: str) -> str | None:
        """The client's secret, registered or configured, or a new assertion for `issuer`. None for
        a public client. Raises TransportFailedError."""
        auth = oauth_settings(server.config)
        if not isinstance(auth, AuthorizationCodeAuth) and auth.private_key is not None:
            pem = await self._secrets.value(server, "auth.private_key", auth.private_key)
            self._secrets.hide(server, pem)
            assertion = client_assertion(
                pem,
                client_id=client.client_id,
                key_id=auth.key_id,
                issuer=issuer,
                offered=client.algorithms if client.auth_method == PRIVATE_KEY else None,
                now=self._clock.now(),
            )
            self._secrets.hide(server, assertion)
            return assertion
        if client.secret is not None or auth.client_secret is None:
            return client.secret
        value = await self._secrets.value(server, "auth.client_secret", auth.client_secret)
        self._secrets.hide(server, value)
        return value
