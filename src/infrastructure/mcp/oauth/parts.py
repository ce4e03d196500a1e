"""Composes OAuth for connections and authorizations over one HTTP client."""

from collections.abc import Callable

from application.mcp.oauth_client import PublicAddress
from application.system.ports import Clock
from domain.ids import OrganizationId
from domain.mcp.server import McpServer
from infrastructure.mcp.oauth.authorizer import FindServer, OAuthAuthorizer
from infrastructure.mcp.oauth.broker import TokenBroker
from infrastructure.mcp.oauth.client_proofs import ClientProofs
from infrastructure.mcp.oauth.clients import Clients
from infrastructure.mcp.oauth.credentials import BrokeredCredentials
from infrastructure.mcp.oauth.discovery import Discovery
from infrastructure.mcp.oauth.grants import OAuthStore
from infrastructure.mcp.oauth.obtaining import Obtaining
from infrastructure.mcp.oauth.requests import OAuthRequests
from infrastructure.mcp.oauth.tokens import TokenEndpoint
from infrastructure.mcp.secret_values import SecretValues
from infrastructure.mcp.transports.remote import RemoteClient


class OAuthParts:
    """One broker and its users. `remote` is owned, and closed with it. `is_told` says whether
    notifications of changed grants arrive (`forget_organization` is called for each)."""

    def __init__(
        self,
        *,
        remote: RemoteClient,
        store: OAuthStore,
        secrets: SecretValues,
        find_server: FindServer,
        address: PublicAddress,
        clock: Clock,
        is_told: Callable[[], bool] = lambda: True,
    ) -> None:
        requests = OAuthRequests(remote=remote)
        discovery, tokens = Discovery(requests=requests), TokenEndpoint(requests=requests)
        self._remote = remote
        proofs = ClientProofs(secrets=secrets, clock=clock)
        obtaining = Obtaining(discovery=discovery, tokens=tokens, proofs=proofs, clock=clock)
        self._broker = TokenBroker(store=store, obtaining=obtaining, secrets=secrets, clock=clock, is_told=is_told)
        self.authorizer = OAuthAuthorizer(
            broker=self._broker,
            store=store,
            discovery=discovery,
            clients=Clients(requests=requests),
            tokens=tokens,
            proofs=proofs,
            find_server=find_server,
            address=address,
            clock=clock,
        )

    def credentials(self, server: McpServer) -> BrokeredCredentials:
        return BrokeredCredentials(broker=self._broker, server=server)

    def forget_organization(self, organization_id: OrganizationId | None) -> None:
        self._broker.forget_organization(organization_id)

    async def close(self) -> None:
        await self._broker.close()
        await self._remote.close()
