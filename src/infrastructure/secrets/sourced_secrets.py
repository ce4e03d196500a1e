"""The store of secrets for those who use them: references lead to stored secrets, to Vault or to
files."""

from datetime import UTC, datetime

from application.secrets.ports import SecretStore, SecretUser
from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.ids import OrganizationId
from domain.secrets.secret import Secret, external_reference
from infrastructure.secrets.external_secrets import ExternalSecrets

_UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)
"""When a secret elsewhere was created is not known."""


class SourcedSecrets:
    """The `SecretStore` port. Secrets elsewhere are read, never listed or changed."""

    def __init__(self, stored: SecretStore, *, external_secrets: ExternalSecrets) -> None:
        self._stored = stored
        self._external = external_secrets

    async def put(self, secret: Secret, value: str, audit: AuditEvent) -> bool:
        return await self._stored.put(secret, value, audit)

    async def get(self, organization_id: OrganizationId, name: str) -> Secret | None:
        if external_reference(name) is None:
            return await self._stored.get(organization_id, name)
        if await self.value(organization_id, name) is None:
            return None
        return Secret(organization_id=organization_id, name=name, created_at=_UNKNOWN, updated_at=_UNKNOWN)

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[Secret]:
        return await self._stored.page(organization_id, request)

    async def delete(self, organization_id: OrganizationId, name: str, audit: AuditEvent) -> bool:
        return await self._stored.delete(organization_id, name, audit)

    async def users(self, organization_id: OrganizationId, name: str) -> tuple[SecretUser, ...]:
        return await self._stored.users(organization_id, name)

    async def value(self, organization_id: OrganizationId, name: str) -> str | None:
        """Raises UNAVAILABLE `secret_unavailable`, for a secret elsewhere."""
        reference = external_reference(name)
        if reference is None:
            return await self._stored.value(organization_id, name)
        return await self._external.value(organization_id, name, reference)
