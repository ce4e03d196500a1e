"""Which uses of a server share one connection: the server's isolation mode as a key. Used by the connection pools."""

from typing import NamedTuple

from application.mcp.ports import ConnectionScope
from domain.ids import McpServerId, OrganizationId
from domain.mcp.server import Isolation, McpServer


class ConnectionKey(NamedTuple):
    """Two uses with equal keys share a connection. A tuple, as one is made and looked up for each call. `scope_id` is the id of the thread, or of the run or
    gateway session, None where all share."""

    organization_id: OrganizationId
    server_id: McpServerId
    server_version: int
    isolation: Isolation
    scope_id: str | None

    @property
    def named(self) -> tuple[OrganizationId, McpServerId, str | None]:
        """Whose connection it is, as others are told of it."""
        return (self.organization_id, self.server_id, self.scope_id)


def connection_key(server: McpServer, scope: ConnectionScope) -> ConnectionKey | None:
    """The key under which `scope` uses `server`; None if the use stands alone and its connection ends with it.

    A scope that names no run (or thread) where the server tells them apart shares with nobody. The organization is
    the server's: nothing is shared between organizations, whatever the caller says.
    """
    isolation = server.config.isolation
    scope_id: str | None = None
    if isolation is not Isolation.SHARED:
        scope_id = scope.thread_id if isolation is Isolation.THREAD else scope.run_id or scope.gateway_session_id
        if scope_id is None:
            return None
    return ConnectionKey(server.organization_id, server.id, server.version, isolation, scope_id)
