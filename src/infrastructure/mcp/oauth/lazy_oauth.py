"""OAuth for MCP servers, imported on first use: it imports the SDK, which would delay startup."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from application.mcp.authorization import (
    Account,
    AuthorizationAnswer,
    AuthorizationRequest,
    AuthorizedServer,
    McpAuthorizer,
    PersonSignIn,
)
from application.system.lazy import LazyClosable
from domain.ids import ApiKeyId, OrganizationId
from domain.mcp.server import McpServer


class ServerCredentials(Protocol):
    """`remote.Credentials` of one server."""

    async def headers(self) -> Mapping[str, str]: ...

    async def renewed(self, sent: Mapping[str, str], status: int, challenges: Iterable[str]) -> bool: ...


class OpenOAuth(Protocol):
    """The loaded OAuth."""

    @property
    def authorizer(self) -> McpAuthorizer: ...

    def credentials(self, server: McpServer) -> ServerCredentials: ...

    def forget_organization(self, organization_id: OrganizationId | None) -> None:
        """Grants of the organization, or of any, changed."""
        ...

    async def close(self) -> None:
        """Cancel requests in progress."""
        ...


class LazyOAuth(LazyClosable[OpenOAuth]):
    """`McpAuthorizer`, loaded by the first authorization or connection."""

    def forget_organization(self, organization_id: OrganizationId | None) -> None:
        if self.loaded is not None:
            self.loaded.forget_organization(organization_id)

    async def begin(self, server: McpServer, key_id: ApiKeyId, *, browser: str | None = None) -> AuthorizationRequest:
        return await (await self.warm()).authorizer.begin(server, key_id, browser=browser)

    async def complete(self, answer: AuthorizationAnswer) -> AuthorizedServer:
        return await (await self.warm()).authorizer.complete(answer)

    async def signed_in(self, server: McpServer, sign_in: PersonSignIn) -> bool:
        return await (await self.warm()).authorizer.signed_in(server, sign_in)

    async def account(self, server: McpServer) -> Account | None:
        return await (await self.warm()).authorizer.account(server)

    async def disconnect(self, server: McpServer) -> bool:
        return await (await self.warm()).authorizer.disconnect(server)
