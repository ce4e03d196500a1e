"""The key under which uses of a server share a connection: its isolation mode. Used by the
connection pool."""

from typing import NamedTuple

from application.mcp.account_secrets import SECRETS_MISSING, PersonSecretStore
from application.mcp.ports import ConnectionScope, McpFailure, McpFailureKind
from domain.ids import McpServerId, OrganizationId, UserId
from domain.mcp.given_secrets import account_owner
from domain.mcp.server import Credentials, Isolation, McpServer


class ConnectionKey(NamedTuple):
    """Uses with equal keys share a connection. `scope_id` is the id of the thread, run or gateway
    session; None if all share. `person_id` is the person whose account the connection uses,
    `secrets` the revision of the secrets that they gave. A tuple, because each call creates and
    looks up one."""

    organization_id: OrganizationId
    server_id: McpServerId
    server_version: int
    isolation: Isolation
    scope_id: str | None
    person_id: UserId | None = None
    secrets: str | None = None

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
    """The server with the account that `scope` uses. Raises McpFailure if it needs one of a person
    and has none."""
    acting = server.acting_for(scope.person_id)
    if acting.person_id is None and server.config.credentials is Credentials.PERSON:
        raise McpFailure(
            McpFailureKind.NEEDS_AUTH, "The server is used with the account of a person, and none acts here."
        )
    return acting


async def connection_use(
    server: McpServer, scope: ConnectionScope, person_secrets: PersonSecretStore | None
) -> tuple[ConnectionKey | None, McpServer]:
    """The key for a use, and the server with its account. Secrets that a person has replaced are
    used with new connections only, and deleted ones with none. Raises McpFailure NEEDS_AUTH without
    the account or the secrets."""
    key, acting = connection_key(server, scope), acting_server(server, scope)
    if acting.person_id is None or not acting.config.person_secrets:
        return key, acting
    revision = await given_revision(acting, person_secrets)
    return None if key is None else key._replace(secrets=revision), acting


async def given_revision(acting: McpServer, person_secrets: PersonSecretStore | None) -> str:
    """The revision of the secrets that the person of `acting` gave. Raises McpFailure NEEDS_AUTH
    without them."""
    owner = account_owner(acting)
    given = None if owner is None or person_secrets is None else await person_secrets.load(owner)
    if given is None or not given.is_complete(acting.config):
        raise McpFailure(McpFailureKind.NEEDS_AUTH, SECRETS_MISSING)
    return given.revision
