"""DescribeMcpServers: the states of many servers, for pages that ask again and again."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from application.mcp.ports import ServerStatus
from application.mcp.server_status import ServerStatuses
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import McpServerId, OrganizationId
from domain.mcp.server import McpServer
from domain.teams import Teams

_AT_ONCE = 8


class QuarantineCounts(Protocol):
    async def awaiting(self, organization_id: OrganizationId, *, teams: Teams = None) -> Mapping[McpServerId, int]:
        """How many listed tools of each server wait for a person. Servers without any are left out,
        and of those that teams own all but those of `teams`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedServer:
    """`quarantined` counts its tools that wait for approval."""

    server: McpServer
    status: ServerStatus
    quarantined: int


class DescribeMcpServers:
    """Requires `viewer`. Opens no connection, and reads no tools."""

    def __init__(self, *, statuses: ServerStatuses, quarantine_counts: QuarantineCounts) -> None:
        self._statuses = statuses
        self._counts = quarantine_counts

    async def execute(self, principal: Principal, servers: Iterable[McpServer]) -> tuple[DescribedServer, ...]:
        """These servers of the organization, in their order."""
        principal.require(Role.VIEWER)
        counts = await self._counts.awaiting(principal.organization_id)
        places = asyncio.Semaphore(_AT_ONCE)

        async def described(server: McpServer) -> DescribedServer:
            async with places:
                status = await self._statuses.everywhere(server)
            return DescribedServer(server=server, status=status, quarantined=counts.get(server.id, 0))

        return tuple(await asyncio.gather(*map(described, servers)))
