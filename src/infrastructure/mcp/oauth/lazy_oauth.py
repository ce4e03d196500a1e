"""OAuth for MCP servers, loaded when first needed: it imports the SDK, for which no start should wait."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from typing import Protocol

from application.mcp.authorization import AuthorizationAnswer, AuthorizationRequest, AuthorizedServer, McpAuthorizer
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


class LazyOAuth:
    """`McpAuthorizer` over what `load` makes; `load` imports and builds, does no I/O, and is called in threads."""

    def __init__(self, load: Callable[[], OpenOAuth]) -> None:
        self._load = load
        self._loaded: OpenOAuth | None = None
        self._loading = Lock()

    def loaded(self) -> OpenOAuth:
        """Load, if that is still to be done; in a thread."""
        with self._loading:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def forget_organization(self, organization_id: OrganizationId | None) -> None:
        """Grants of the organization, or of any, were changed by somebody."""
        if self._loaded is not None:
            self._loaded.forget_organization(organization_id)

    async def begin(self, server: McpServer, key_id: ApiKeyId) -> AuthorizationRequest:
        """As the port says."""
        return await (await self._oauth()).authorizer.begin(server, key_id)

    async def complete(self, answer: AuthorizationAnswer) -> AuthorizedServer:
        """As the port says."""
        return await (await self._oauth()).authorizer.complete(answer)

    async def close(self) -> None:
        """Give up what is under way."""
        if self._loaded is not None:
            await self._loaded.close()

    async def _oauth(self) -> OpenOAuth:
        return await asyncio.to_thread(self.loaded) if self._loaded is None else self._loaded
