"""Composes OAuth for connections and authorizations over one HTTP client."""

from collections.abc import Callable

from application.mcp.oauth_client import PublicAddress
from application.system.ports import Clock
from domain.ids import OrganizationId
from domain.mcp.server import McpServer
from infrastructure.mcp.oauth.authorizer import FindServer, OAuthAuthorizer
from infrastructure.mcp.oauth.broker import TokenBroker
from infrastructure.mcp.oauth.client_proofs import ClientProofs
from infrastructure.mcp.oauth.credentials import BrokeredCredentials
from infrastructure.mcp.oauth.grants import OAuthStore
from infrastructure.mcp.oauth.obtaining import Obtaining
from infrastructure.mcp.oauth.on_behalf import FindProvider, OnBehalf
from infrastructure.mcp.oauth.requests import OAuthRequests, ServerRequests
from infrastructure.mcp.secret_values import SecretValues
from infrastructure.mcp.transports.remote import RemoteClient
from infrastructure.mcp.transports.server_contexts import ServerContexts


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
        find_provider: FindProvider,
        address: PublicAddress,
        clock: Clock,
        is_told: Callable[[], bool] = lambda: True,
    ) -> None:
        contexts = ServerContexts(secrets=secrets, clock=clock)
        requests = ServerRequests(requests=OAuthRequests(remote=remote), contexts=contexts)
        self._remote = remote
        proofs = ClientProofs(secrets=secrets, clock=clock)
        obtaining = Obtaining(requests=requests, proofs=proofs, clock=clock)
        on_behalf = OnBehalf(requests=requests, proofs=proofs, find_provider=find_provider, clock=clock)
        self._broker = TokenBroker(
            store=store, obtaining=obtaining, on_behalf=on_behalf, secrets=secrets, clock=clock, is_told=is_told
        )
        self.authorizer = OAuthAuthorizer(
            broker=self._broker,
            store=store,
            requests=requests,
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
