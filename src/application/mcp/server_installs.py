"""Installations in progress in this process, one per server. Above: use cases that install,
uninstall, delete and show servers. Below: the installer and the stored servers."""

import asyncio
import logging
from dataclasses import dataclass, field, replace
from datetime import datetime

from application.audit.entries import audit_entry
from application.audit.ports import AuditLog
from application.mcp.installer import McpInstaller, McpInstallFailure, McpInstallFailureKind
from application.mcp.ports import InstallProgress, McpConnections, McpServerStore
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.ids import McpServerId, OrganizationId
from domain.mcp.installation import Installation
from domain.mcp.server import McpServer

logger = logging.getLogger(__name__)

WAITING = InstallProgress(step="waiting", percent=0)


@dataclass(slots=True, kw_only=True)
class _Install:
    since: datetime
    progress: InstallProgress = WAITING
    task: "asyncio.Task[None] | None" = field(default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedInstall:
    """Failure of the newest installation of a server, and its time."""

    failure: McpInstallFailure
    at: datetime


class ServerInstalls:
    """Rules:
    - At most `parallel` installations run; others wait.
    - An installation is valid once it is recorded with its server; it is removed if the server's
      source was changed meanwhile.
    - Audited `mcp_server.installed` or `mcp_server.install_failed`.
    """

    def __init__(
        self,
        *,
        installer: McpInstaller,
        servers: McpServerStore,
        connections: McpConnections,
        audit_log: AuditLog,
        clock: Clock,
        ids: IdSource,
        parallel: int = 2,
    ) -> None:
        self._installer = installer
        self._servers = servers
        self._connections = connections
        self._audit_log = audit_log
        self._clock = clock
        self._ids = ids
        self._places = asyncio.Semaphore(parallel)
        self._running: dict[McpServerId, _Install] = {}
        self._failed: dict[McpServerId, FailedInstall] = {}

    def start(self, principal: Principal, server: McpServer) -> None:
        """Start the installation of the server, unless it is in progress."""
        if server.id in self._running:
            return
        self._failed.pop(server.id, None)
        install = self._running[server.id] = _Install(since=self._clock.now())
        install.task = asyncio.create_task(self._install(principal, server, install), name="mcp-install")
        # A callback, not the task itself: a task cancelled before its first step never runs.
        install.task.add_done_callback(lambda _: self._running.pop(server.id, None))

    def progress(self, server_id: McpServerId) -> tuple[InstallProgress, datetime] | None:
        """Progress and start of the installation in progress."""
        install = self._running.get(server_id)
        return None if install is None else (install.progress, install.since)

    def failure(self, server_id: McpServerId) -> FailedInstall | None:
        """Failure of the newest installation in this process."""
        return self._failed.get(server_id)

    async def wait(self, server_id: McpServerId) -> None:
        """Wait until no installation of the server is in progress."""
        install = self._running.get(server_id)
        if install is not None and install.task is not None:
            await asyncio.wait([install.task])

    async def discard(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        """Stop the installation in progress, if any, and remove the installed files."""
        await self.stop(server_id)
        self._failed.pop(server_id, None)
        await self._installer.uninstall(organization_id, server_id)

    async def recover(self) -> None:
        """At startup: remove remains of interrupted installations, and installations without a
        server."""
        for found in await self._installer.tidy():
            server = await self._servers.get(found.organization_id, found.server_id)
            if server is None or server.installation is None or server.installation.location != found.location:
                logger.warning("removing an installation without a server", extra={"server_id": found.server_id})
                await self._installer.remove(found.location)

    async def close(self) -> None:
        """Stop every installation; no files remain."""
        await asyncio.gather(*(self.stop(server_id) for server_id in list(self._running)))

    async def stop(self, server_id: McpServerId) -> None:
        """Stop the installation in progress, if any, and wait for its end."""
        install = self._running.get(server_id)
        if install is not None and install.task is not None:
            install.task.cancel()
            await asyncio.wait([install.task])

    async def _install(self, principal: Principal, server: McpServer, install: _Install) -> None:
        def note(progress: InstallProgress) -> None:
            install.progress = progress

        started = self._clock.monotonic()
        try:
            async with self._places:
                installation = await self._installer.install(server, note)
            await self._record(principal, server, installation, started)
        except McpInstallFailure as failure:
            await self._report(principal, server, failure, started)
        except asyncio.CancelledError:
            self._failed[server.id] = FailedInstall(
                failure=McpInstallFailure(McpInstallFailureKind.CANCELLED, "The installation was stopped."),
                at=self._clock.now(),
            )
            raise
        except Exception:
            logger.exception("MCP installation failed unexpectedly", extra={"server_id": server.id})
            unexpected = McpInstallFailure(McpInstallFailureKind.FAILED, "The installation failed: internal error.")
            await self._report(principal, server, unexpected, started)

    async def _record(
        self, principal: Principal, installed: McpServer, installation: Installation, started: float
    ) -> None:
        while True:
            server = await self._servers.get(installed.organization_id, installed.id)
            if server is None or server.config.source != installed.config.source:
                await self._installer.remove(installation.location)
                raise McpInstallFailure(
                    McpInstallFailureKind.CHANGED, "The server was changed while it was being installed."
                )
            now = self._clock.now()
            changed = replace(server, version=server.version + 1, installation=installation, updated_at=now)
            audit = audit_entry(
                principal,
                AuditAction.MCP_SERVER_INSTALLED,
                server.id,
                ids=self._ids,
                at=now,
                server_id=server.id,
                duration_ms=self._elapsed_ms(started),
                details={"slug": server.config.slug, "version": changed.version, "installed": installation.version},
            )
            try:
                await self._servers.save(changed, expected_version=server.version, audit=audit)
            except ServiceError as error:
                if error.kind in (ErrorKind.PRECONDITION, ErrorKind.NOT_FOUND):
                    continue
                await self._installer.remove(installation.location)
                raise
            await self._connections.forget(server.organization_id, server.id)
            return

    async def _report(
        self, principal: Principal, server: McpServer, failure: McpInstallFailure, started: float
    ) -> None:
        now = self._clock.now()
        self._failed[server.id] = FailedInstall(failure=failure, at=now)
        logger.warning(
            "MCP server not installed",
            extra={"server_id": server.id, "failure": failure.kind.value, "detail": failure.detail},
        )
        await self._audit_log.record(
            audit_entry(
                principal,
                AuditAction.MCP_SERVER_INSTALL_FAILED,
                server.id,
                ids=self._ids,
                at=now,
                server_id=server.id,
                duration_ms=self._elapsed_ms(started),
                details={"slug": server.config.slug, "error": failure.kind.value},
            )
        )

    def _elapsed_ms(self, started: float) -> int:
        return round((self._clock.monotonic() - started) * 1000)
