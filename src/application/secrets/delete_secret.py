"""DeleteSecret: forget a secret that nothing uses."""

from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.secrets.ports import SecretStore
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.role import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteSecretCommand:
    """Which secret."""

    principal: Principal
    name: str


class DeleteSecret:
    """Admins delete secrets of their organization. One that is referred to stays, and the refusal says by what. Audited
    `secret.deleted`."""

    def __init__(self, *, secrets: SecretStore, clock: Clock, ids: IdSource) -> None:
        self._secrets = secrets
        self._clock = clock
        self._ids = ids

    async def execute(self, command: DeleteSecretCommand) -> None:
        """Delete. Raises FORBIDDEN, NOT_FOUND, CONFLICT `secret_in_use`."""
        principal = command.principal
        principal.require(Role.ADMIN)
        audit = audit_entry(principal, AuditAction.SECRET_DELETED, command.name, ids=self._ids, at=self._clock.now())
        if not await self._secrets.delete(principal.organization_id, command.name, audit):
            raise not_found("secret", command.name)
