"""Processes of a service on one database, towards a real MCP server that checks each token."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from domain.ids import McpServerId, OrganizationId
from domain.mcp.auth import ServerAuth
from domain.mcp.server import McpServer
from infrastructure.mcp.connections.pool import SdkMcpConnections
from infrastructure.mcp.known_secrets import KnownSecrets
from infrastructure.mcp.oauth.parts import OAuthParts
from infrastructure.mcp.secret_values import SecretValues
from infrastructure.mcp.transports.remote import RemoteClient
from infrastructure.runtime.public_address import ListeningAddress
from infrastructure.runtime.system import SystemClock
from infrastructure.secrets.redaction import Redactor
from tests.doubles.oauth import InMemoryOAuthStore
from tests.doubles.people import InMemoryIdentityProviderStore
from tests.doubles.secrets import InMemorySecretStore
from tests.doubles.state import InMemoryState
from tests.integration.mcp.oauth_world import HERE
from tests.integration.mcp.parts import LOOPBACK, remote, sdk_connections
from tests.integration.mcp.trusting_server import TrustingServer


class ServiceProcesses:
    """Each process has its own connections and caches. `oauth` is that of the newest."""

    def __init__(self) -> None:
        self.state = InMemoryState()
        self.store = InMemoryOAuthStore(self.state)
        self.secrets = InMemorySecretStore(self.state)
        self.redactor = Redactor()
        self.oauth: OAuthParts

    def registered_at(self, url: str, auth: ServerAuth, **settings: Any) -> McpServer:
        server = remote(url, auth=auth, **settings)
        self.state.servers[server.id] = server
        return server

    @asynccontextmanager
    async def process(self) -> AsyncIterator[SdkMcpConnections]:
        async def find(organization_id: OrganizationId, server_id: McpServerId) -> McpServer | None:
            return self.state.servers.get(server_id)

        oauth = self.oauth = OAuthParts(
            remote=RemoteClient(egress=LOOPBACK),
            store=self.store,
            secrets=SecretValues(secrets=self.secrets, known=KnownSecrets(self.redactor)),
            find_server=find,
            find_provider=InMemoryIdentityProviderStore(self.state).named,
            address=ListeningAddress(HERE),
            clock=SystemClock(),
            is_told=lambda: False,
        )
        try:
            async with sdk_connections(oauth=oauth, redactor=self.redactor) as connections:
                yield connections
        finally:
            await oauth.close()


class Processes(ServiceProcesses):
    """Those towards one server."""

    def __init__(self, server: TrustingServer) -> None:
        super().__init__()
        self.server = server

    def registered(self, auth: ServerAuth, **settings: Any) -> McpServer:
        return self.registered_at(self.server.url, auth, **settings)
