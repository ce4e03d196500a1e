"""Secrets that people gave for MCP servers, in memory."""

from application.mcp.account_secrets import GiveSecrets
from domain.identity.user import UserStatus
from domain.ids import McpServerId, OrganizationId, UserId
from domain.mcp.given_secrets import AccountOwner, GivenSecrets
from tests.doubles.oauth import InMemoryOAuthStore
from tests.doubles.state import InMemoryState


class InMemoryPersonSecretStore:
    """The `PersonSecretStore` port, over shared in-memory tables, and the grants of `oauth`."""

    def __init__(self, state: InMemoryState, oauth: InMemoryOAuthStore | None = None) -> None:
        self._state = state
        self._oauth = oauth
        self.given: dict[AccountOwner, GivenSecrets] = {}

    async def load(self, owner: AccountOwner) -> GivenSecrets | None:
        return self.given.get(owner) if self._is_active(owner) else None

    async def has(self, owner: AccountOwner) -> bool:
        return owner in self.given

    async def servers(self, organization_id: OrganizationId, person_id: UserId) -> frozenset[McpServerId]:
        granted = () if self._oauth is None else (owner for owner, _ in self._oauth.grants)
        return frozenset(
            owner.server_id
            for owner in (*self.given, *granted)
            if (owner.organization_id, owner.person_id) == (organization_id, person_id)
        )

    async def save(self, owner: AccountOwner, decide: GiveSecrets) -> bool:
        server = self._state.servers.get(owner.server_id)
        if server is None or server.organization_id != owner.organization_id or not self._is_active(owner):
            return False
        self.given[owner] = decide(self.given.get(owner))
        return True

    async def remove(self, owner: AccountOwner) -> bool:
        return self.given.pop(owner, None) is not None

    def _is_active(self, owner: AccountOwner) -> bool:
        user = self._state.users.get(owner.person_id)
        return user is not None and user.status is UserStatus.ACTIVE
