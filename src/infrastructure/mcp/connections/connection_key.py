"""The key under which uses of a server share a connection: its isolation mode. Used by the
connection pool."""

from typing import NamedTuple

from application.mcp.ports import ConnectionScope, McpFailure, McpFailureKind
from domain.ids import McpServerId, OrganizationId, UserId
from domain.mcp.server import Credentials, Isolation, McpServer


class ConnectionKey(NamedTuple):
    """Uses with equal keys share a connection. `scope_id` is the id of the thread, run or gateway
    session; None if all share. `person_id` is the person whose account the connection uses. A tuple, because each call creates and looks up one."""

    organization_id: OrganizationId
    server_id: McpServerId
    server_version: int
    isolation: Isolation
    scope_id: str | None
    person_id: UserId | None = None

    @property
    def named(self) -> tuple[OrganizationId, McpServerId, str | None]:
        """The organization, server and scope, for notifications."""
        return (self.organization_id, self.server_id, self.scope_id)


def connection_key(server: McpServer, scope: ConnectionScope) -> ConnectionKey | None:
    """The key for a use of `server` by `scope`; None if the connection serves this use alone.

    - A scope without a run (or thread) shares no connection of a server isolated by run (or
      thread).
    - The organization is the server's: organizations never share connections.
    - Persons share no connection of a server with credentials of each person.
    """
    isolation = server.config.isolation
    scope_id: str | None = None
    if isolation is not Isolation.SHARED:
        scope_id = scope.thread_id if isolation is Isolation.THREAD else scope.run_id or scope.gateway_session_id
        if scope_id is None:
            return None
    person_id = scope.person_id if server.config.credentials is Credentials.PERSON else None
    return ConnectionKey(server.organization_id, server.id, server.version, isolation, scope_id, person_id)


def acting_server(server: McpServer, scope: ConnectionScope) -> McpServer:
    """The server with the account that `scope` uses. Raises McpFailure if it needs one of a person and has none."""
    acting = server.acting_for(scope.person_id)
    if acting.person_id is None and server.config.credentials is Credentials.PERSON:
        raise McpFailure(
            McpFailureKind.NEEDS_AUTH, "The server is used with the account of a person, and none acts here."
        )
    return acting
