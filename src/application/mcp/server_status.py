"""The full status of a server: installation and connections."""

from dataclasses import replace

from application.mcp.ports import McpConnections, ServerState, ServerStatus
from application.mcp.server_installs import ServerInstalls
from application.mcp.server_reports import OtherReports, together
from domain.mcp.auth import AuthorizationCodeAuth
from domain.mcp.server import McpServer

_OF_ALL = frozenset({ServerState.INSTALLING, ServerState.NOT_INSTALLED, ServerState.DISABLED})
"""States that no other process can have another view of."""


def needs_authorization(server: McpServer, status: ServerStatus) -> bool:
    """Whether a person must authorize the server for its organization."""
    return isinstance(server.config.auth, AuthorizationCodeAuth) and status.state is ServerState.NEEDS_AUTH


class ServerStatuses:
    """Precedence: installation in progress, disabled, missing installation, connections. `reports`
    are those of other processes on the database; None if there is only one process."""

    def __init__(
        self,
        *,
        connections: McpConnections,
        installs: ServerInstalls,
        reports: OtherReports | None = None,
    ) -> None:
        self._connections = connections
        self._installs = installs
        self._reports = reports

    async def everywhere(self, server: McpServer) -> ServerStatus:
        """The status over all processes. What is installed is installed here too, at its first
        start."""
        own = self.of(server)
        if self._reports is None or own.state in _OF_ALL:
            return own
        reports = await self._reports.of(server)
        return together(own, reports)

    def of(self, server: McpServer) -> ServerStatus:
        """The status in this process, without connecting or starting the server."""
        installation = server.installation
        status = self._connections.status(server)
        under_way = self._installs.progress(server.id)
        if under_way is not None:
            progress, since = under_way
            status = ServerStatus(state=ServerState.INSTALLING, since=since, install=progress)
        elif server.lacks_installation:
            status = self._not_installed(server, status)
        if installation is None:
            return status
        return replace(status, installed_version=installation.version, installed_at=installation.installed_at)

    def _not_installed(self, server: McpServer, status: ServerStatus) -> ServerStatus:
        failed = self._installs.failure(server.id)
        error = None if failed is None else failed.failure.detail
        if not server.config.enabled:
            return replace(status, last_error=error)
        since = server.updated_at if failed is None else failed.at
        return ServerStatus(state=ServerState.NOT_INSTALLED, since=since, last_error=error)
