"""What other processes report of the servers they are connected to, and one status made of it and what this one knows."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

from application.mcp.ports import ProcessStatus, ServerState, ServerStatus
from domain.ids import McpServerId, OrganizationId
from domain.mcp.server import McpServer

REPORT_EXPIRES = timedelta(seconds=30)
"""How long after its last sign of life a process counts as there."""

_FIRST = (
    ServerState.CONNECTED,
    ServerState.NEEDS_AUTH,
    ServerState.ERROR,
    ServerState.UNHEALTHY,
    ServerState.CONNECTING,
    ServerState.NOT_INSTALLED,
    ServerState.DISCONNECTED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerReport:
    """How one version of a server stands in one process; `name` is what people call that process (machine and number)."""

    organization_id: OrganizationId
    server_id: McpServerId
    server_version: int
    process: str
    name: str
    status: ServerStatus


class ServerReports(Protocol):
    """What the processes on one database report."""

    async def publish(self, process: str, reports: tuple[ServerReport, ...], gone: tuple[McpServerId, ...]) -> None:
        """Store what `process` knows now in place of what it said of the same servers before; it has nothing to say any
        more of those that are `gone`. Of a server that is not stored, nothing is."""
        ...

    async def alive(self, process: str) -> None:
        """The process is there, and so is all that it reported. Reports that expired are dropped."""
        ...

    async def withdraw(self, process: str) -> None:
        """The process ends, and its connections with it."""
        ...

    async def of(self, server: McpServer) -> tuple[ServerReport, ...]:
        """What holds at the moment of this version of the server, by process."""
        ...


class OtherReports(Protocol):
    """What the other processes on the database report."""

    async def of(self, server: McpServer) -> tuple[ServerReport, ...]:
        """What holds at the moment of this version of the server, by process."""
        ...


def together(own: ServerStatus, reports: Iterable[ServerReport]) -> ServerStatus:
    """The status of a server over all processes: connected where any is; else what is wrong anywhere, what needs a person
    first; else connecting. Of several processes in the state shown, the one that came to it last stands for them.
    `processes` says who reports what, and an error that others have is shown too."""
    told = tuple(reports)
    if not told:
        return own
    statuses = [own, *(report.status for report in told)]
    shown = min(statuses, key=lambda status: (_FIRST.index(status.state), -status.since.timestamp()))
    errors = [status for status in statuses if status.last_error is not None]
    error = shown.last_error
    if error is None and errors:
        error = max(errors, key=lambda status: status.since).last_error
    return replace(
        shown,
        last_error=error,
        installed_version=own.installed_version,
        installed_at=own.installed_at,
        processes=tuple(
            ProcessStatus(
                name=report.name,
                state=report.status.state,
                since=report.status.since,
                last_error=report.status.last_error,
            )
            for report in told
        ),
    )
