"""OAuth for MCP servers, loaded when first needed: it imports the SDK, for which no start should wait."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from application.mcp.authorization import AuthorizationAnswer, AuthorizationRequest, AuthorizedServer, McpAuthorizer
from application.system.lazy import LazyClosable
from domain.ids import ApiKeyId, OrganizationId
from domain.mcp.server import McpServer


class ServerCredentials(Protocol):
    """What an endpoint asks for: `remote.Credentials`."""

    async def headers(self) -> Mapping[str, str]: ...

    async def renewed(self, sent: Mapping[str, str], status: int, challenges: Iterable[str]) -> bool: ...


class OpenOAuth(Protocol):
    """What is loaded."""

    @property
    def authorizer(self) -> McpAuthorizer:
        """Asks people."""
        ...

    def credentials(self, server: McpServer) -> ServerCredentials:
        """Those of one server."""
        ...

    def forget_organization(self, organization_id: OrganizationId | None) -> None:
        """Grants of the organization, or of any, were changed."""
        ...

    async def close(self) -> None:
        """Give up what is under way."""
        ...


class LazyOAuth(LazyClosable[OpenOAuth]):
    """`McpAuthorizer` that is loaded by the first authorization or the first connection."""

    def forget_organization(self, organization_id: OrganizationId | None) -> None:
        """Grants of the organization, or of any, were changed."""
        if self.loaded is not None:
            self.loaded.forget_organization(organization_id)

    async def begin(self, server: McpServer, key_id: ApiKeyId) -> AuthorizationRequest:
        return await (await self.warm()).authorizer.begin(server, key_id)

    async def complete(self, answer: AuthorizationAnswer) -> AuthorizedServer:
        return await (await self.warm()).authorizer.complete(answer)
