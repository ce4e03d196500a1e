"""The port that installs started servers on this machine, and its failures."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from application.mcp.ports import InstallProgress
from domain.ids import McpServerId, OrganizationId
from domain.mcp.installation import Installation
from domain.mcp.server import McpServer


class McpInstallFailureKind(StrEnum):
    PACKAGE_NOT_FOUND = "package_not_found"
    VERSION_NOT_FOUND = "version_not_found"
    REQUIREMENTS_CONFLICT = "requirements_conflict"
    """The requirements of the package and its additional requirements conflict."""
    REGISTRY_UNREACHABLE = "registry_unreachable"
    REGISTRY_REFUSED = "registry_refused"
    RUNTIME_MISSING = "runtime_missing"
    """There is no Node.js, no npm, or no way to create a Python environment."""
    COMMAND_MISSING = "command_missing"
    """The installation has no command to start, or several and none is chosen."""
    SOURCE_UNUSABLE = "source_unusable"
    """The source file or directory is missing, too large, or cannot be copied."""
    DISK_FULL = "disk_full"
    TIMEOUT = "timeout"
    CHANGED = "changed"
    """The server was changed or removed meanwhile."""
    CANCELLED = "cancelled"
    FAILED = "failed"
    """Other failure of the installer; the server's log has its output."""


class McpInstallFailure(Exception):
    """A failed installation, which left no files. `detail` is safe to show."""

    def __init__(self, kind: McpInstallFailureKind, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail


InstallProgressCallback = Callable[[InstallProgress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledServer:
    """A complete installation found on this machine, with its owner."""

    organization_id: OrganizationId
    server_id: McpServerId
    location: str


class McpInstaller(Protocol):
    """Installs servers on this machine, completely or not at all."""

    async def install(self, server: McpServer, on_progress: InstallProgressCallback) -> Installation:
        """Install the configured package. Raises McpInstallFailure. After a failure or cancellation
        no files remain."""
        ...

    async def uninstall(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        """Remove every installation of the server, if any."""
        ...

    def has(self, installation: Installation) -> bool:
        """Whether the files are on this machine."""
        ...

    def log(self, server: McpServer) -> str:
        """The bounded output of the newest installation; empty without one."""

    async def tidy(self) -> tuple[InstalledServer, ...]:
        """Remove remains of interrupted installations; returns the complete ones. Only before the
        first `install`."""
        ...

    async def remove(self, location: str) -> None: ...
