"""FinishMcpAuthorization: complete an authorization after the redirect back."""

from application.audit.ports import AuditLog
from application.mcp.account_connected import AccountConnected
from application.mcp.authorization import AuthorizationAnswer, AuthorizedServer, McpAuthorizer
from application.mcp.ports import McpConnections
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction, AuditEvent
from domain.ids import AuditEventId
from domain.mcp.server import McpServer


class FinishMcpAuthorization:
    """Rules:
    - Needs no key: the state of `answer` identifies the authorization. It is valid once, and only
      with an answer of its authorization server, in the browser that began it if that is bound to
      one.
    - With a new grant of the organization, connections of the server are reopened. With one of a
      person, `AccountConnected`.
    - Audited `mcp_server.authorized` or, for an account of a person, `account.connected`; by who
      began the authorization.
    """

    def __init__(
        self,
        *,
        authorizer: McpAuthorizer,
        connections: McpConnections,
        accounts: AccountConnected,
        audit_log: AuditLog,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._authorizer = authorizer
        self._connections = connections
        self._accounts = accounts
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
            await self._accounts.continue_what_waits(server, had_account=authorized.had_grant)
        finally:
            await self._audit(authorized, AuditAction.ACCOUNT_CONNECTED)
        await self._accounts.list_tools(server)
        return server

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
