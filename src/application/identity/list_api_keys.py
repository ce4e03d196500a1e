"""ListApiKeys: an organization's keys, without their tokens."""

from dataclasses import dataclass

from application.identity.key_uses import KeyUses
from application.identity.ports import IdentityStore
from application.system.pages import Page, PageRequest
from domain.identity.api_key import ApiKey, Principal
from domain.identity.role import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class ListApiKeysCommand:
    principal: Principal
    page: PageRequest = PageRequest()


class ListApiKeys:
    """Admins see all keys of their organization, also revoked and expired ones, newest first, each
    with its last known use."""

    def __init__(self, *, identities: IdentityStore, uses: KeyUses) -> None:
        self._identities = identities
        self._uses = uses

    async def execute(self, command: ListApiKeysCommand) -> Page[ApiKey]:
        """Raises FORBIDDEN."""
        command.principal.require(Role.ADMIN)
        await self._uses.store()
        return await self._identities.keys(command.principal.organization_id, command.page)
