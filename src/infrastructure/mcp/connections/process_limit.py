"""Limits the MCP servers that an organization has started."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from application.mcp.ports import McpFailure, McpFailureKind
from application.system.shared_permits import Permits, SharedPermits
from domain.errors import ServiceError
from domain.ids import OrganizationId
from infrastructure.mcp.connections.connection import McpConnection
from infrastructure.mcp.connections.connection_life import ConnectionLife

ASK_AGAIN_S = 0.25
"""Between two questions whether another process has ended a server."""


class ProcessLimit:
    """At most `max_processes` of the connections in `live` are to servers started by one
    organization; with `permits` of those of all processes. `end` ends an idle connection."""

    def __init__(
        self,
        max_processes: int,
        live: Mapping[McpConnection, ConnectionLife],
        *,
        end: Callable[[McpConnection], None],
        permits: SharedPermits | None = None,
    ) -> None:
        self._max_processes = max_processes
        self._live = live
        self._end = end
        self._freed, self._is_awaited = asyncio.Event(), False
        self._shared = permits
        self._permits: dict[OrganizationId, Permits] = {}
        # What ends, or is to end, so that another process may start one.
        self._owing: dict[OrganizationId, McpConnection | None] = {}

    async def wait(self, organization_id: OrganizationId, is_needed: Callable[[], bool], deadline: float) -> None:
        """Wait until another process may start, or none `is_needed`; returns without yielding then.
        Ends the connection idle for longest, and another only after that one. Raises: McpFailure
        BUSY at `deadline` (event loop time)."""
        loop = asyncio.get_running_loop()
        ending: McpConnection | None = None
        while is_needed() and len(self._started_by(organization_id)) >= self._allowed(organization_id):
            if await self._leased(organization_id, deadline):
                continue
            if ending not in self._live:
                ending = self._end_idle(organization_id)
            if ending is None:
                self._ask_others(organization_id)
            self._is_awaited = True
            until = deadline if self._shared is None else min(deadline, loop.time() + ASK_AGAIN_S)
            try:
                async with asyncio.timeout_at(until):
                    await self._freed.wait()
            except TimeoutError as exc:
                if loop.time() < deadline:
                    continue
                detail = f"The organization has {self._max_processes} MCP servers started, which is its limit."
                raise McpFailure(McpFailureKind.BUSY, f"{detail} Nothing was sent.") from exc

    def freed(self) -> None:
        """A connection has ended or become idle: waiting starts check again, here and in processes
        that asked."""
        if self._is_awaited:
            self._is_awaited = False
            self._freed.set()
            self._freed = asyncio.Event()
        for organization_id in tuple(self._owing):
            self._spare(organization_id, True)

    def _allowed(self, organization_id: OrganizationId) -> int:
        if self._shared is None:
            return self._max_processes
        permits = self._permits.get(organization_id)
        return 0 if permits is None else permits.held

    async def _leased(self, organization_id: OrganizationId, deadline: float) -> bool:
        """Whether this process got a permit for one more."""
        if self._shared is None:
            return False
        permits = self._permits.get(organization_id)
        if permits is None:
            spare = partial(self._spare, organization_id)
            permits = Permits(f"processes/{organization_id}", self._max_processes, spare=spare, freed=self.freed)
            self._permits[organization_id] = permits
            self._shared.add(permits)
        try:
            async with asyncio.timeout_at(deadline):
                return await self._shared.lease(permits, 1) > 0
        except (ServiceError, TimeoutError):
            return False  # the start waits for the database, as long as it may

    def _ask_others(self, organization_id: OrganizationId) -> None:
        """Ask the other processes to end an idle server."""
        if self._shared is not None and (permits := self._permits.get(organization_id)) is not None:
            self._shared.want(permits)

    def _spare(self, organization_id: OrganizationId, is_wanted: bool) -> None:
        """Give back permits without a server. If another process waits and there are none, the
        server idle for longest ends first; the next one only after that."""
        permits = self._permits.get(organization_id)
        if permits is None or self._shared is None:
            return
        unused = permits.held - len(self._started_by(organization_id))
        ending = self._owing.pop(organization_id, None)
        if unused > 0:
            self._shared.give_back(permits, unused)
        elif ending in self._live:
            self._owing[organization_id] = ending
        elif is_wanted and permits.held:
            self._owing[organization_id] = self._end_idle(organization_id)
        elif not permits.held and self._shared.removed(permits):
            del self._permits[organization_id]

    def _end_idle(self, organization_id: OrganizationId) -> McpConnection | None:
        idle = [connection for connection in self._started_by(organization_id) if connection.is_idle]
        if not idle:
            return None
        oldest = min(idle, key=lambda connection: connection.last_used)
        self._end(oldest)
        return oldest

    def _started_by(self, organization_id: OrganizationId) -> list[McpConnection]:
        return [
            connection
            for connection, life in self._live.items()
            if life.record.server.organization_id == organization_id and not life.record.server.config.kind.is_remote
        ]
