"""Reports the states of servers in this process to the others on the database, and reads theirs."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress

from application.mcp.ports import ServerState, ServerStatus
from application.mcp.server_reports import ServerReport, ServerReports
from application.system.periodic import every
from domain.ids import McpServerId
from domain.mcp.server import McpServer

logger = logging.getLogger(__name__)

ALIVE_EVERY_S = 10.0
"""A third of the expiry of a silent process's reports."""
SETTLE_S = 0.2
"""Delay before a report, as most servers connect and disconnect within a run."""
PAUSE_S = 0.8
_WITHDRAW_S = 2.0


class StateReporter:
    """One per process. Changes are reported together, at most once a second, in the background; a
    process without servers writes nothing."""

    def __init__(
        self, *, reports: ServerReports, process: str, name: str, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._reports = reports
        self._process = process
        self._name = name
        self._monotonic = monotonic
        self._changed: dict[McpServerId, ServerReport] = {}
        self._reported: dict[McpServerId, ServerReport] = {}
        self._news = asyncio.Event()
        self._alive_at = monotonic()

    def changed(self, server: McpServer, status: ServerStatus) -> None:
        """Record the server's status."""
        self._changed[server.id] = ServerReport(
            organization_id=server.organization_id,
            server_id=server.id,
            server_version=server.version,
            process=self._process,
            name=self._name,
            status=status,
        )
        self._news.set()

    async def of(self, server: McpServer) -> tuple[ServerReport, ...]:
        """The reports of the other processes."""
        return tuple(report for report in await self._reports.of(server) if report.process != self._process)

    async def keep(self) -> None:
        """Report until cancelled. Failed reports are repeated."""
        await every(ALIVE_EVERY_S, self.tell, task="mcp-states", wait=self._changed_or_after)

    async def _changed_or_after(self, timeout_s: float) -> None:
        await asyncio.sleep(PAUSE_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._news.wait()
                await asyncio.sleep(SETTLE_S)

    async def tell(self) -> None:
        """Store the changes since the last report, and periodically a sign of life."""
        self._news.clear()
        changed, self._changed = self._changed, {}
        changed = {key: report for key, report in changed.items() if self._reported.get(key) != report}
        gone = {key for key, report in changed.items() if _says_nothing(report.status)}
        said = tuple(report for key, report in changed.items() if key not in gone)
        gone &= self._reported.keys()
        try:
            if said or gone:
                await self._reports.publish(self._process, said, tuple(gone))
        except BaseException:
            self._changed = changed | self._changed
            raise
        for server_id in gone:
            del self._reported[server_id]
        self._reported.update({report.server_id: report for report in said})
        if self._reported and self._monotonic() - self._alive_at >= ALIVE_EVERY_S:
            await self._reports.alive(self._process)
            self._alive_at = self._monotonic()

    async def withdraw(self) -> None:
        """Remove the reports at shutdown, in bounded time; remaining ones expire."""
        try:
            async with asyncio.timeout(_WITHDRAW_S):
                await self._reports.withdraw(self._process)
        except Exception as error:  # noqa: BLE001 (the end is not held up)
            logger.info("withdrawing the states of MCP servers failed (%s)", type(error).__name__)


def _says_nothing(status: ServerStatus) -> bool:
    return status.state is ServerState.DISCONNECTED and status.last_error is None
