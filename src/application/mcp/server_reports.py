"""Reports of other processes about their connections, and the combined status of a server."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

from application.mcp.ports import ProcessStatus, ServerState, ServerStatus
from domain.ids import McpServerId, OrganizationId
from domain.mcp.server import McpServer

REPORT_EXPIRES = timedelta(seconds=30)
"""A process is considered alive for this time after its last report."""

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
    """State of one version of a server in one process; `name` is the displayed name of the process
    (machine and number)."""

    organization_id: OrganizationId
    server_id: McpServerId
    server_version: int
    process: str
    name: str
    status: ServerStatus


class ServerReports(Protocol):
    """Reports of the processes on one database."""

    async def publish(self, process: str, reports: tuple[ServerReport, ...], gone: tuple[McpServerId, ...]) -> None:
        """Replace the reports of `process` about these servers, and remove those about `gone` ones.
        Unknown servers are ignored."""
        ...

    async def alive(self, process: str) -> None:
        """Renew the reports of the process. Expired reports are dropped."""
        ...

    async def withdraw(self, process: str) -> None:
        """Remove the reports of the process, which ends."""
        ...

    async def of(self, server: McpServer) -> tuple[ServerReport, ...]:
        """The current reports about this version of the server, by process."""
        ...


class OtherReports(Protocol):
    """Reports of the other processes on the database."""

    async def of(self, server: McpServer) -> tuple[ServerReport, ...]:
        """The current reports about this version of the server, by process."""
        ...


def together(own: ServerStatus, reports: Iterable[ServerReport]) -> ServerStatus:
    """The status of a server over all processes.

    - Connected if any process is connected; else the worst state, those that need a person first;
      else connecting.
    - Of several processes in that state, the most recent represents it.
    - `processes` lists the reports. An error of another process is shown too.
    """
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
