"""FinishMcpAuthorization: complete an authorization after the redirect back."""

import logging
from collections.abc import Sequence
from typing import Protocol

from application.audit.ports import AuditLog
from application.mcp.authorization import AuthorizationAnswer, AuthorizedServer, McpAuthorizer
from application.mcp.catalog_updater import CatalogUpdater
from application.mcp.ports import ConnectionScope, McpCatalogStore, McpConnections, McpFailure
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction, AuditEvent
from domain.ids import AuditEventId
from domain.mcp.server import McpServer

logger = logging.getLogger(__name__)

_LISTING_S = 10.0


class AccountWaiters(Protocol):
    """What waits for people to connect their accounts."""

    async def connected(self, server: McpServer) -> None:
        """The person that the server acts for has connected their account: continue what waits for it."""
        ...


class FinishMcpAuthorization:
    """Rules:
    - Needs no key: the state of `answer` identifies the authorization. It is valid once, and only with an answer of
      its authorization server, in the browser that began it if that is bound to one.
    - With a new grant of the organization, or another one of a person who had one, connections of the server are reopened.
    - With a new grant of a person, their runs and workflow runs that wait for it continue. Then, if the server's tools were never listed, they
      are listed with this account; the account counts even if that fails.
    - Audited `mcp_server.authorized` or, for an account of a person, `account.connected`; by who began the authorization.
    """

    def __init__(
        self,
        *,
        authorizer: McpAuthorizer,
        connections: McpConnections,
        catalogs: McpCatalogStore,
        catalog_updater: CatalogUpdater,
        waiters: Sequence[AccountWaiters],
        audit_log: AuditLog,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._authorizer = authorizer
        self._connections = connections
        self._catalogs = catalogs
        self._catalog_updater = catalog_updater
        self._waiters = waiters
        self._audit_log = audit_log
        self._clock = clock
        self._ids = ids

    async def execute(self, answer: AuthorizationAnswer) -> McpServer:
        """The authorized server, which acts for the person whose account was connected. Raises as
        `McpAuthorizer.complete`."""
        authorized = await self._authorizer.complete(answer)
        server = authorized.server
        if server.person_id is None:
            await self._connections.forget(server.organization_id, server.id)
            await self._audit(authorized, AuditAction.MCP_SERVER_AUTHORIZED)
            return server
        try:
            if authorized.had_grant:
                await self._connections.forget(server.organization_id, server.id)
            for each in self._waiters:
                await each.connected(server)
        finally:
            await self._audit(authorized, AuditAction.ACCOUNT_CONNECTED)
        await self._list_tools(server)
        return server

    async def _list_tools(self, server: McpServer) -> None:
        scope = ConnectionScope(organization_id=server.organization_id, person_id=server.person_id)
        try:
            listed = await self._catalogs.load(server.organization_id, server.id)
            if listed is None or listed.server_version != server.version:
                await self._catalog_updater.relist(server, scope, timeout_s=_LISTING_S)
        except McpFailure as failure:
            ids = {"server_id": server.id, "failure": failure.kind.value}
            logger.warning("listing the tools of a newly authorized MCP server failed", extra=ids)
        except Exception:
            logger.exception(
                "listing the tools of a newly authorized MCP server failed", extra={"server_id": server.id}
            )

    async def _audit(self, authorized: AuthorizedServer, action: AuditAction) -> None:
        server = authorized.server
        await self._audit_log.record(
            AuditEvent(
                id=AuditEventId(self._ids.new("aud")),
                organization_id=server.organization_id,
                action=action,
                actor=authorized.key_id,
                resource=server.id,
                at=self._clock.now(),
                server_id=server.id,
                details={"slug": server.config.slug, "issuer": authorized.issuer},
            )
        )
