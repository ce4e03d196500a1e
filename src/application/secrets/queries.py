"""Reading the names of secrets."""

from application.secrets.ports import SecretStore
from application.system.pages import FIRST_PAGE, Page, PageRequest
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.secrets.secret import Secret


class ListSecrets:
    """Admins see names and dates, newest first. Values are never shown."""

    def __init__(self, *, secrets: SecretStore) -> None:
        self._secrets = secrets

    async def execute(self, principal: Principal, page: PageRequest = FIRST_PAGE) -> Page[Secret]:
        """Raises FORBIDDEN."""
        principal.require(Permission.SECRETS_MANAGE)
        return await self._secrets.page(principal.organization_id, page)
