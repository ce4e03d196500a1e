"""What follows when a person has connected their account: by a consent, or by giving their
secrets."""

import logging
from collections.abc import Sequence
from typing import Protocol

from application.mcp.catalog_updater import CatalogUpdater
from application.mcp.ports import ConnectionScope, McpCatalogStore, McpConnections, McpFailure
from domain.mcp.server import McpServer

logger = logging.getLogger(__name__)

_LISTING_S = 10.0


class AccountWaiters(Protocol):
    """What waits for people to connect their accounts."""

    async def connected(self, server: McpServer) -> None:
        """The person that the server acts for has connected their account: continue what waits for
        it."""
        ...


class AccountConnected:
    """Rules:
    - In place of another account, connections of the server are reopened.
    - Runs and workflow runs of the person that wait for the account continue.
    - The tools of a server that was never listed are listed with this account; the account counts
      even if that fails.
    """

    def __init__(
        self,
        *,
        connections: McpConnections,
        catalogs: McpCatalogStore,
        catalog_updater: CatalogUpdater,
        waiters: Sequence[AccountWaiters],
    ) -> None:
        self._connections = connections
        self._catalogs = catalogs
        self._catalog_updater = catalog_updater
        self._waiters = waiters

    async def continue_what_waits(self, server: McpServer, *, had_account: bool) -> None:
        if had_account:
            await self._connections.forget(server.organization_id, server.id)
        for each in self._waiters:
            await each.connected(server)

    async def list_tools(self, server: McpServer) -> None:
        """Never raises."""
        scope = ConnectionScope(organization_id=server.organization_id, person_id=server.person_id)
        ids = {"server_id": server.id}
        try:
            listed = await self._catalogs.load(server.organization_id, server.id)
            if listed is None or listed.server_version != server.version:
                await self._catalog_updater.relist(server, scope, timeout_s=_LISTING_S)
        except McpFailure as failure:
            failed = {**ids, "failure": failure.kind.value}
            logger.warning("listing the tools of a newly authorized MCP server failed", extra=failed)
        except Exception:
            logger.exception("listing the tools of a newly authorized MCP server failed", extra=ids)
