"""RegisterMcpServer: register a server with an organization."""

from dataclasses import dataclass

from application.audit.entries import audit_entry, team_details
from application.identity.team_checks import TeamChecks
from application.mcp.declared_schemas import require_usable_schemas
from application.mcp.literal_secrets import require_no_literal_secrets
from application.mcp.loss_strategy import require_loss_strategy
from application.mcp.mcp_switch import McpSwitch
from application.mcp.ports import McpServerStore
from application.mcp.server_address import require_reachable
from application.mcp.server_certificates import ServerCertificates
from application.mcp.server_team import require_team
from application.policy.ports import SchemaValidator
from application.system.ports import Clock, IdSource, OutboundPolicy
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import McpServerId
from domain.mcp.server import McpServer, McpServerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterMcpServerCommand:
    principal: Principal
    config: McpServerConfig


class RegisterMcpServer:
    """Rules:
    - Admins register servers. The slug is unique in the organization.
    - Nothing is started or connected.
    - The organization may have this kind of server (`mcp_kinds`).
    - Unreachable addresses, arguments or URLs with a literal secret, `unregister` without a
      shared connection, unusable schemas of declared tools, and unusable certificates and keys
      (`ServerCertificates`) are rejected.
    - Audited `mcp_server.created`, without values of env and headers.

    Raises: FORBIDDEN (`mcp_kind_not_permitted`), INVALID `mcp_server_invalid`, CONFLICT
    `mcp_server_slug_taken`.
    """

    def __init__(
        self,
        *,
        servers: McpServerStore,
        switch: McpSwitch,
        outbound: OutboundPolicy,
        schemas: SchemaValidator,
        certificates: ServerCertificates,
        clock: Clock,
        ids: IdSource,
        team_checks: TeamChecks,
    ) -> None:
        self._team_checks = team_checks
        self._servers = servers
        self._switch = switch
        self._outbound = outbound
        self._schemas = schemas
        self._certificates = certificates
        self._clock = clock
        self._ids = ids

    async def execute(self, command: RegisterMcpServerCommand) -> McpServer:
        principal = command.principal
        principal.require(Permission.SERVERS_MANAGE)
        await require_team(self._team_checks, principal, command.config.team)
        await self._switch.require_kind(principal.organization_id, command.config)
        require_reachable(self._outbound, command.config)
        require_no_literal_secrets(command.config)
        require_loss_strategy(command.config)
        require_usable_schemas(self._schemas, command.config)
        config = await self._certificates.checked(principal.organization_id, command.config)
        now = self._clock.now()
        server = McpServer(
            id=McpServerId(self._ids.new("mcp")),
            organization_id=principal.organization_id,
            version=1,
            config=config,
            created_at=now,
            updated_at=now,
        )
        audit = audit_entry(
            principal,
            AuditAction.MCP_SERVER_CREATED,
            server.id,
            ids=self._ids,
            at=now,
            server_id=server.id,
            details={
                "slug": server.config.slug,
                "kind": server.config.kind.value,
                "version": server.version,
                **team_details(None, server.team),
            },
        )
        await self._servers.add(server, audit)
        return server
