"""What processes report of their connections to MCP servers, in memory."""

from datetime import datetime

from application.mcp.server_reports import REPORT_EXPIRES, ServerReport
from application.system.ports import Clock
from domain.ids import McpServerId
from domain.mcp.server import McpServer
from tests.doubles.state import InMemoryState


class InMemoryServerReports:
    """The `ServerReports` port."""

    def __init__(self, state: InMemoryState, *, clock: Clock) -> None:
        self._state = state
        self._clock = clock
        self._reports: dict[tuple[str, McpServerId], tuple[ServerReport, datetime]] = {}

    async def publish(self, process: str, reports: tuple[ServerReport, ...], gone: tuple[McpServerId, ...]) -> None:
        """As the port says."""
        for server_id in gone:
            self._reports.pop((process, server_id), None)
        for report in reports:
            server = self._state.servers.get(report.server_id)
            if server is not None and server.organization_id == report.organization_id:
                self._reports[process, report.server_id] = (report, self._clock.now())

    async def alive(self, process: str) -> None:
        """As the port says."""
        now = self._clock.now()
        for key, (report, seen_at) in list(self._reports.items()):
            if key[0] == process:
                self._reports[key] = (report, now)
            elif seen_at < now - REPORT_EXPIRES:
                del self._reports[key]

    async def withdraw(self, process: str) -> None:
        """As the port says."""
        self._reports = {key: value for key, value in self._reports.items() if key[0] != process}

    async def of(self, server: McpServer) -> tuple[ServerReport, ...]:
        """As the port says."""
        since = self._clock.now() - REPORT_EXPIRES
        kept = [value for _, value in sorted(self._reports.items(), key=lambda item: item[0])]
        return tuple(
            report
            for report, seen_at in kept
            if seen_at >= since
            and (report.server_id, report.organization_id, report.server_version)
            == (server.id, server.organization_id, server.version)
            and server.id in self._state.servers
        )
