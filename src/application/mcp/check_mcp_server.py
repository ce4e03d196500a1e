"""CheckMcpServer: test whether a server starts, answers and lists its tools. A broken server is a
result, not an error."""

import asyncio
from dataclasses import dataclass, replace

from application.audit.entries import audit_entry
from application.audit.ports import AuditLog
from application.mcp.catalog_updater import CatalogUpdater
from application.mcp.installer import McpInstaller
from application.mcp.mcp_switch import McpSwitch
from application.mcp.ports import ConnectionScope, McpConnections, McpFailure, McpFailureKind, McpServerStore
from application.mcp.secret_destinations import address_of
from application.mcp.server_certificates import ServerCertificates
from application.mcp.server_lookup import existing_server
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import McpServerId
from domain.mcp.catalog import McpCatalog
from domain.mcp.server import McpServer, McpServerConfig

DEFAULT_DEADLINE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckMcpServerCommand:
    """`subject` is the id or slug of a saved server, or an unsaved configuration."""

    principal: Principal
    subject: str | McpServerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class McpCheckFailure:
    """`code` is an McpFailureKind; `stderr` is the end of a started server's error output."""

    code: McpFailureKind
    detail: str
    stderr: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpCheckResult:
    """`catalog` on success, else `error`. `latency_ms` covers starting, connecting and listing.
    With `declared` tools, their definitions were checked, and nothing was sent to the server."""

    slug: str
    catalog: McpCatalog | None
    error: McpCheckFailure | None
    latency_ms: int
    declared: bool = False


class CheckMcpServer:
    """Rules:
    - Admins test servers, as for saving: a test runs the command.
    - The organization may have this kind of server (`mcp_kinds`).
    - The test has its own connection, closed afterwards; connections in use are not affected.
    - A disabled server can be tested. One that requires installation fails until it is installed.
    - The test ends within the deadline, and a broken server raises nothing.
    - The listing of a saved server is stored as by a refresh.
    - A server that is not stored leaves no files behind. Its certificates and keys must be usable,
      as for saving.
    - Audited `mcp_server.tested` with the outcome; for remote servers with the address that
      received its secrets.

    Raises: FORBIDDEN (`mcp_kind_not_permitted`), NOT_FOUND, INVALID `mcp_server_invalid`.
    """

    def __init__(
        self,
        *,
        servers: McpServerStore,
        catalog_updater: CatalogUpdater,
        switch: McpSwitch,
        connections: McpConnections,
        installer: McpInstaller,
        certificates: ServerCertificates,
        audit_log: AuditLog,
        clock: Clock,
        ids: IdSource,
        deadline_s: float = DEFAULT_DEADLINE_S,
    ) -> None:
        self._servers = servers
        self._catalog_updater = catalog_updater
        self._switch = switch
        self._connections = connections
        self._installer = installer
        self._certificates = certificates
        self._audit_log = audit_log
        self._clock = clock
        self._ids = ids
        self._deadline_s = deadline_s

    async def execute(self, command: CheckMcpServerCommand) -> McpCheckResult:
        principal = command.principal
        principal.require(Permission.SERVERS_MANAGE)
        saved = None
        config = command.subject
        if isinstance(config, str):
            saved = await existing_server(self._servers, principal, config)
            config = saved.config
        await self._switch.require_kind(principal.organization_id, config)
        if saved is None:
            config = await self._certificates.checked(principal.organization_id, config)
        probe = self._probe(principal, config, saved)
        started = self._clock.monotonic()
        outcome = await self._discover(probe, principal)
        latency_ms = round((self._clock.monotonic() - started) * 1000)
        error = outcome if isinstance(outcome, McpCheckFailure) else None
        address = address_of(config)
        await self._audit_log.record(
            audit_entry(
                principal,
                AuditAction.MCP_SERVER_TESTED,
                saved.id if saved else config.slug,
                ids=self._ids,
                at=self._clock.now(),
                server_id=saved.id if saved else None,
                duration_ms=latency_ms,
                details={
                    "slug": config.slug,
                    "ok": error is None,
                    **({} if address is None else {"address": address}),
                    **({} if error is None else {"error": error.code.value}),
                },
            )
        )
        catalog = outcome if isinstance(outcome, McpCatalog) else None
        if saved is not None and catalog is not None:
            if not config.answers_calls_only:  # nothing was sent: its failures stay
                self._connections.forgive(principal.organization_id, saved.id)
            listed = replace(catalog, server_id=saved.id, server_version=saved.version)
            await self._catalog_updater.store(saved, listed, principal=principal)
        declared = config.answers_calls_only
        return McpCheckResult(slug=config.slug, catalog=catalog, error=error, latency_ms=latency_ms, declared=declared)

    def _probe(self, principal: Principal, config: McpServerConfig, saved: McpServer | None) -> McpServer:
        now = self._clock.now()
        return McpServer(
            id=McpServerId(self._ids.new("mcp")),
            organization_id=principal.organization_id,
            version=1,
            config=replace(config, enabled=True),
            created_at=now,
            updated_at=now,
            installation=None if saved is None else saved.installation,
            tested_id=None if saved is None else saved.id,
        )

    async def _discover(self, probe: McpServer, principal: Principal) -> McpCatalog | McpCheckFailure:
        if not await self._switch.is_on(probe.organization_id):
            return McpCheckFailure(code=McpFailureKind.DISABLED, detail="MCP is disabled.")
        scope = ConnectionScope(organization_id=probe.organization_id, person_id=principal.person_id)
        try:
            async with asyncio.timeout(self._deadline_s):
                return await self._connections.discover(probe, scope, timeout_s=self._deadline_s)
        except McpFailure as failure:
            return McpCheckFailure(code=failure.kind, detail=failure.detail, stderr=failure.stderr)
        except TimeoutError:
            return McpCheckFailure(
                code=McpFailureKind.TIMEOUT,
                detail=f"The server did not answer within {self._deadline_s:g} seconds.",
                stderr=self._connections.logs(probe),
            )
        finally:
            await self._connections.forget(probe.organization_id, probe.id)
            if probe.tested_id is None:
                await self._installer.uninstall(probe.organization_id, probe.id)
