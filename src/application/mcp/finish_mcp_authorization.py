"""FinishMcpAuthorization: complete an authorization after the redirect back."""

from application.audit.ports import AuditLog
from application.mcp.authorization import AuthorizationAnswer, McpAuthorizer
from application.mcp.ports import McpConnections
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction, AuditEvent
from domain.ids import AuditEventId


class FinishMcpAuthorization:
    """Rules:
    - Needs no key: the state of `answer` identifies the authorization. It is valid once, and only with an answer of
      its authorization server.
    - Connections of the server are reopened with the new grant.
    - Audited `mcp_server.authorized`, by the key that began the authorization.
    """

    def __init__(
        self,
        *,
        authorizer: McpAuthorizer,
        connections: McpConnections,
        audit_log: AuditLog,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._authorizer = authorizer
        self._connections = connections
        self._audit_log = audit_log
        self._clock = clock
        self._ids = ids

    async def execute(self, answer: AuthorizationAnswer) -> str:
        """The slug of the authorized server. Raises as `McpAuthorizer.complete`."""
        authorized = await self._authorizer.complete(answer)
        server = authorized.server
        await self._connections.forget(server.organization_id, server.id)
        await self._audit_log.record(
            AuditEvent(
                id=AuditEventId(self._ids.new("aud")),
                organization_id=server.organization_id,
                action=AuditAction.MCP_SERVER_AUTHORIZED,
                actor=authorized.key_id,
                resource=server.id,
                at=self._clock.now(),
                server_id=server.id,
                details={"slug": server.config.slug, "issuer": authorized.issuer},
            )
        )
        return server.config.slug
