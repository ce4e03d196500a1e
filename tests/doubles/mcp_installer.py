"""An installer without files: installs are instant unless a test holds them up or makes them
fail."""

import asyncio

from application.mcp.installer import InstalledServer, InstallProgressCallback, McpInstallFailure, McpInstallFailureKind
from application.mcp.ports import InstallProgress
from application.system.ports import Clock, IdSource
from domain.ids import McpServerId, OrganizationId
from domain.mcp.installation import Installation
from domain.mcp.server import McpServer


class InMemoryMcpInstaller:
    """The `McpInstaller` port. `failure` is what every install comes to while it is set; `missing`
    a path that cannot be copied from; `proceed` cleared holds every install up; `started` counts
    them."""

    def __init__(self, *, clock: Clock, ids: IdSource) -> None:
        self._clock = clock
        self._ids = ids
        self._kept: dict[str, InstalledServer] = {}
        self._logs: dict[McpServerId, str] = {}
        self.failure: McpInstallFailure | None = None
        self.missing: str | None = None
        self.proceed = asyncio.Event()
        self.proceed.set()
        self.started = 0

    async def install(self, server: McpServer, on_progress: InstallProgressCallback) -> Installation:
        """Install."""
        self.started += 1
        on_progress(InstallProgress(step="installing", percent=50))
        self._logs[server.id] = f"installing {server.config.slug}\n"
        await asyncio.sleep(0)
        await self.proceed.wait()
        if server.config.path is not None and server.config.path == self.missing:
            raise McpInstallFailure(McpInstallFailureKind.SOURCE_UNUSABLE, "There is no such file or directory.")
        if self.failure is not None:
            raise self.failure
        location = f"{server.organization_id}/{server.id}/{self._ids.new('ins')}"
        self._kept[location] = InstalledServer(
            organization_id=server.organization_id, server_id=server.id, location=location
        )
        return Installation(version=server.config.version or "1.0.0", location=location, installed_at=self._clock.now())

    async def uninstall(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        """Remove every installation of the server."""
        for found in list(self._kept.values()):
            if (found.organization_id, found.server_id) == (organization_id, server_id):
                del self._kept[found.location]
        self._logs.pop(server_id, None)

    def has(self, installation: Installation) -> bool:
        """Whether it is there."""
        return installation.location in self._kept

    def log(self, server: McpServer) -> str:
        """What the newest installation printed."""
        return self._logs.get(server.id, "")

    async def tidy(self) -> tuple[InstalledServer, ...]:
        """What is installed."""
        return tuple(self._kept.values())

    async def remove(self, location: str) -> None:
        """Remove one installation."""
        self._kept.pop(location, None)
