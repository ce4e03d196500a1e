"""ListSecrets: list an organization's secrets without their values."""

from dataclasses import dataclass

from application.secrets.ports import SecretStore
from application.system.pages import Page, PageRequest
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.secrets.secret import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSecretsCommand:
    principal: Principal
    page: PageRequest = PageRequest()


class ListSecrets:
    """Admins see names and dates, newest first. Values are never shown."""

    def __init__(self, *, secrets: SecretStore) -> None:
        self._secrets = secrets

    async def execute(self, command: ListSecretsCommand) -> Page[Secret]:
        """Raises FORBIDDEN."""
        command.principal.require(Role.ADMIN)
        return await self._secrets.page(command.principal.organization_id, command.page)
