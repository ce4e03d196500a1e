"""ListSecrets: which secrets an organization has, without their values."""

from dataclasses import dataclass

from application.secrets.ports import SecretStore
from application.system.pages import Page, PageRequest
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.secrets.secret import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSecretsCommand:
    """Which page."""

    principal: Principal
    page: PageRequest = PageRequest()


class ListSecrets:
    """Admins see names and dates, newest first. Nobody sees values."""

    def __init__(self, *, secrets: SecretStore) -> None:
        self._secrets = secrets

    async def execute(self, command: ListSecretsCommand) -> Page[Secret]:
        """One page. Raises FORBIDDEN."""
        command.principal.require(Role.ADMIN)
        return await self._secrets.page(command.principal.organization_id, command.page)
