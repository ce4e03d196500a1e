"""UpdateMcpServer: change some settings of a registered server."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from application.audit.entries import audit_entry, team_details
from application.identity.team_checks import TeamChecks
from application.mcp.declared_schemas import require_usable_schemas
from application.mcp.literal_secrets import require_no_literal_secrets
from application.mcp.loss_strategy import require_loss_strategy
from application.mcp.mcp_switch import McpSwitch
from application.mcp.ports import McpConnections, McpServerStore
from application.mcp.server_address import require_reachable
from application.mcp.server_certificates import ServerCertificates
from application.mcp.server_lookup import existing_server
from application.mcp.server_team import require_team
from application.policy.ports import SchemaValidator
from application.system.changes import Changes, changed_fields, with_changes
from application.system.ports import Clock, IdSource, OutboundPolicy
from domain.audit.event import AuditAction
from domain.errors import conflict, require_version
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.mcp.server import Credentials, McpServer, McpServerConfig
from domain.secrets.secret import SecretValue


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateMcpServerCommand:
    """`server` is an id or a slug; `expected_version` is the version last read, None for any.
    `changes` are fields of `McpServerConfig`. `env` and `headers` are entries to set, None to
    remove one; other entries stay."""

    principal: Principal
    server: str
    changes: Changes = field(default_factory=dict)
    env: Mapping[str, SecretValue | None] = field(default_factory=dict, repr=False)
    headers: Mapping[str, SecretValue | None] = field(default_factory=dict, repr=False)
    expected_version: int | None = None


class UpdateMcpServer:
    """Rules:
    - Admins change servers. The result must be valid.
    - A server of a kind that the organization may not have (`mcp_kinds`) can only be disabled.
    - Connections of the previous version close once their calls end.
    - New arguments and a new URL must not contain a literal secret; `unregister` needs a shared
      connection. New schemas of declared tools and new certificates and keys must be usable.
    - The source of an installed server cannot be changed, nor can it become one of each person:
      processes of the organization may have written its installation.
    - A change without effect creates no version and no audit entry; others are audited
      `mcp_server.updated` with the names of the changed fields.

    Raises: FORBIDDEN (`mcp_kind_not_permitted`), NOT_FOUND, INVALID `mcp_server_invalid`,
    PRECONDITION `version_conflict`, CONFLICT `mcp_server_slug_taken`, `mcp_server_installed`.
    """

    def __init__(
        self,
        *,
        servers: McpServerStore,
        connections: McpConnections,
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
        self._connections = connections
        self._clock = clock
        self._ids = ids

    async def execute(self, command: UpdateMcpServerCommand) -> McpServer:
        principal = command.principal
        principal.require(Permission.SERVERS_MANAGE)
        server = await existing_server(self._servers, principal, command.server)
        require_version("MCP server", server.version, expected=command.expected_version)
        config = changed_config(server.config, command.changes, env=command.env, headers=command.headers)
        if config == server.config:
            return server
        await require_team(self._team_checks, principal, config.team, former=server.team)
        if config.enabled:
            await self._switch.require_kind(principal.organization_id, config)
        if config.url != server.config.url:
            require_reachable(self._outbound, config)
        require_no_literal_secrets(config, server.config)
        require_loss_strategy(config, server.config)
        if config.declared_tools != server.config.declared_tools:
            require_usable_schemas(self._schemas, config)
        config = await self._certificates.checked(principal.organization_id, config, server.config)
        if server.installation is not None:
            _require_kept(config, server, server.installation.version)
        now = self._clock.now()
        changed = replace(server, version=server.version + 1, config=config, updated_at=now)
        audit = audit_entry(
            principal,
            AuditAction.MCP_SERVER_UPDATED,
            server.id,
            ids=self._ids,
            at=now,
            server_id=server.id,
            details={
                "slug": config.slug,
                "version": changed.version,
                "changed": [*changed_fields(server.config, config)],
                **team_details(server.team, config.team),
            },
        )
        await self._servers.save(changed, expected_version=server.version, audit=audit)
        await self._connections.forget(principal.organization_id, server.id)
        return changed


def _require_kept(config: McpServerConfig, server: McpServer, installed: str) -> None:
    becomes_persons = config.credentials is Credentials.PERSON and config.credentials is not server.config.credentials
    if becomes_persons or config.source != server.config.source:
        changed = "whose account it uses" if becomes_persons else "what it is installed from"
        raise conflict(
            "mcp_server_installed",
            f"The MCP server {server.config.slug!r} is installed in version {installed}; "
            f"uninstall it before you change {changed}.",
        )


def changed_config(
    config: McpServerConfig,
    changes: Changes,
    *,
    env: Mapping[str, SecretValue | None],
    headers: Mapping[str, SecretValue | None],
) -> McpServerConfig:
    """The configuration with these changes. Raises INVALID `mcp_server_invalid`."""
    merged = {"env": _merged(config.env, env), "headers": _merged(config.headers, headers)}
    return with_changes(config, {**changes, **merged})


def _merged(stored: Mapping[str, SecretValue], changes: Mapping[str, SecretValue | None]) -> dict[str, SecretValue]:
    together: dict[str, SecretValue | None] = {**stored, **changes}
    return {name: value for name, value in together.items() if value is not None}
