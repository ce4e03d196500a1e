"""DisconnectAccount: delete the caller's own grant for an MCP server."""

from dataclasses import dataclass, replace

from application.audit.entries import audit_entry
from application.audit.ports import AuditLog
from application.mcp.account_secrets import PersonFiles, PersonSecretStore
from application.mcp.account_server import account_server
from application.mcp.authorization import McpAuthorizer
from application.mcp.ports import McpConnections, McpServerStore
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.ids import UserId
from domain.mcp.given_secrets import AccountOwner
from domain.mcp.server import Credentials, McpServer


@dataclass(frozen=True, slots=True, kw_only=True)
class DisconnectAccountCommand:
    """`server` is an id or a slug."""

    principal: Principal
    server: str


class DisconnectAccount:
    """Rules:
    - People disconnect their own account, with any role, also at a server that is used with one of
      the organization by now, and at one of a group that they left, if they gave secrets for it.
    - The tokens are deleted, and later calls need a new consent. The connections of the server end
      once their calls end: of a server with secrets of persons only those of the caller, in all
      processes.
    - Files of processes that were started for the caller are removed from this machine, also if the
      server is none that is started any more.
    - Audited as `account.disconnected`.

    Raises: FORBIDDEN `person_required`, NOT_FOUND (`account_not_found` if none is connected),
    CONFLICT `mcp_server_auth_mismatch`.
    """

    def __init__(
        self,
        *,
        servers: McpServerStore,
        person_secrets: PersonSecretStore,
        authorizer: McpAuthorizer,
        connections: McpConnections,
        person_files: PersonFiles,
        audit_log: AuditLog,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._servers = servers
        self._person_secrets = person_secrets
        self._authorizer = authorizer
        self._connections = connections
        self._person_files = person_files
        self._audit_log = audit_log
        self._clock = clock
        self._ids = ids

    async def execute(self, command: DisconnectAccountCommand) -> None:
        principal = command.principal
        person_id = principal.require_person()
        stored = await self._servers.get(principal.organization_id, command.server)
        if stored is None or not (principal.sees(stored.team) or await self._has_given(person_id, stored)):
            raise not_found("MCP server", command.server)
        server = replace(stored, person_id=person_id)  # also of a server that became one of the organization
        if not await self._authorizer.disconnect(server):
            seen = await account_server(self._servers, principal, command.server)
            raise not_found("account", seen.config.slug)
        if server.config.credentials is Credentials.PERSON and not server.config.person_secrets:
            await self._connections.forget(server.organization_id, server.id)
        await self._audit_log.record(
            audit_entry(
                principal,
                AuditAction.ACCOUNT_DISCONNECTED,
                server.id,
                ids=self._ids,
                at=self._clock.now(),
                server_id=server.id,
                details={"slug": server.config.slug},
            )
        )
        await self._person_files.remove(server)

    async def _has_given(self, person_id: UserId, server: McpServer) -> bool:
        return await self._person_secrets.has(AccountOwner(server.organization_id, server.id, person_id))
