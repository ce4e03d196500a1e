"""DeleteSecret: delete an unused secret."""

from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.secrets.ports import SecretStore
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.permission import Permission


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteSecretCommand:
    principal: Principal
    name: str


class DeleteSecret:
    """Rules:
    - Admins delete secrets of their organization.
    - A secret in use stays; the error names its users.
    - Audited as `secret.deleted`.

    Raises: ServiceError role_insufficient, secret_not_found, secret_in_use.
    """

    def __init__(self, *, secrets: SecretStore, clock: Clock, ids: IdSource) -> None:
        self._secrets = secrets
        self._clock = clock
        self._ids = ids

    async def execute(self, command: DeleteSecretCommand) -> None:
        principal = command.principal
        principal.require(Permission.SECRETS_MANAGE)
        audit = audit_entry(principal, AuditAction.SECRET_DELETED, command.name, ids=self._ids, at=self._clock.now())
        if not await self._secrets.delete(principal.organization_id, command.name, audit):
            raise not_found("secret", command.name)
