"""DeleteCustomRole: delete a role that is not in use."""

from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.identity.ports import CustomRoleStore
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.permission import Permission


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteCustomRoleCommand:
    principal: Principal
    name: str


class DeleteCustomRole:
    """Rules:
    - Requires `roles.manage`.
    - A role that keys, users or rules of identity providers have is refused; the error names them.
      Revoked and expired keys and removed users do not hold it.
    - Who is given the role at the same moment may only read.
    - Audited as `role.deleted`.

    Raises: ServiceError role_insufficient, role_not_found, role_in_use, impersonation_refused.
    """

    def __init__(self, *, custom_roles: CustomRoleStore, clock: Clock, ids: IdSource) -> None:
        self._roles = custom_roles
        self._clock = clock
        self._ids = ids

    async def execute(self, command: DeleteCustomRoleCommand) -> None:
        principal, name = command.principal, command.name
        principal.require(Permission.ROLES_MANAGE)
        principal.require_self()
        audit = audit_entry(principal, AuditAction.ROLE_DELETED, name, ids=self._ids, at=self._clock.now())
        if not await self._roles.delete(principal.organization_id, name, audit):
            raise not_found("role", name)
