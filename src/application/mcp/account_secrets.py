"""Accounts that consist of secrets which people give, beside those of authorization servers."""

from collections.abc import Callable
from typing import Protocol

from application.mcp.authorization import (
    Account,
    AuthorizationAnswer,
    AuthorizationRequest,
    AuthorizedServer,
    McpAuthorizer,
    PersonSignIn,
)
from domain.ids import ApiKeyId, McpServerId, OrganizationId, UserId
from domain.mcp.given_secrets import AccountOwner, GivenSecrets, account_owner
from domain.mcp.server import McpServer

SECRETS_MISSING = "The server requires secrets of the person for whom it is called, who has not given them."


GiveSecrets = Callable[[GivenSecrets | None], GivenSecrets]
"""What there is afterwards, by what there is now. It may raise."""


class PersonSecretStore(Protocol):
    """Secrets that people gave for MCP servers, encrypted at rest. A person who is not active has
    none: nothing is read or stored for them."""

    async def load(self, owner: AccountOwner) -> GivenSecrets | None:
        """What the person gave for the server, whatever its address is now."""
        ...

    async def has(self, owner: AccountOwner) -> bool:
        """Whether the person, active or not, gave something for the server."""
        ...

    async def servers(self, organization_id: OrganizationId, person_id: UserId) -> frozenset[McpServerId]:
        """The servers for which tokens or secrets of the person, active or not, are stored."""
        ...

    async def save(self, owner: AccountOwner, decide: GiveSecrets) -> bool:
        """Store what `decide` says in place of what there is, in one transaction: of two at a time,
        the second one sees what the first one stored. False if the server is not stored, or the
        person is not active."""
        ...

    async def remove(self, owner: AccountOwner) -> bool:
        """Delete what the person gave. False if there is nothing."""
        ...


class PersonFiles(Protocol):
    """Files of started servers on this machine."""

    async def remove(self, server: McpServer) -> None:
        """Remove what processes of the server stored for the person it acts for, if anything."""
        ...


class AccountsWithSecrets:
    """`McpAuthorizer`: an account is what was granted, or for a server with secrets of persons, all
    of those. Disconnecting deletes both, because the server may have been used with the other
    before."""

    def __init__(self, *, grants: McpAuthorizer, person_secrets: PersonSecretStore) -> None:
        self._grants = grants
        self._secrets = person_secrets

    async def begin(self, server: McpServer, key_id: ApiKeyId, *, browser: str | None = None) -> AuthorizationRequest:
        return await self._grants.begin(server, key_id, browser=browser)

    async def complete(self, answer: AuthorizationAnswer) -> AuthorizedServer:
        return await self._grants.complete(answer)

    async def signed_in(self, server: McpServer, sign_in: PersonSignIn) -> bool:
        return await self._grants.signed_in(server, sign_in)

    async def account(self, server: McpServer) -> Account | None:
        if not server.config.person_secrets:
            return await self._grants.account(server)
        owner = account_owner(server)
        given = None if owner is None else await self._secrets.load(owner)
        if given is None or not given.is_complete(server.config):
            return None
        return Account(issuer=None, scope=None, renewed_at=given.given_at)

    async def disconnect(self, server: McpServer) -> bool:
        owner = account_owner(server)
        had_secrets = owner is not None and await self._secrets.remove(owner)
        return await self._grants.disconnect(server) or had_secrets
