"""CreateCustomRole: name a set of permissions."""

from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.identity.ports import CustomRoleStore
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.custom_role import CustomRole, require_within_own
from domain.identity.permission import Permission
from domain.json_value import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateCustomRoleCommand:
    principal: Principal
    name: str
    permissions: tuple[Permission, ...]
    description: str = ""


class CreateCustomRole:
    """Rules:
    - Requires `roles.manage`, and each permission of the role.
    - Names are those of no built-in role, and used once in the organization.
    - Audited as `role.created`, with the permissions.

    Raises: ServiceError role_insufficient, role_beyond_own, role_invalid, role_exists,
    too_many_roles.
    """

    def __init__(self, *, custom_roles: CustomRoleStore, clock: Clock, ids: IdSource) -> None:
        self._roles = custom_roles
        self._clock = clock
        self._ids = ids

    async def execute(self, command: CreateCustomRoleCommand) -> CustomRole:
        principal, now = command.principal, self._clock.now()
        principal.require(Permission.ROLES_MANAGE)
        principal.require_self()
        role = CustomRole(
            organization_id=principal.organization_id,
            name=command.name,
            description=command.description,
            permissions=tuple(sorted(set(command.permissions))),
            created_at=now,
            changed_at=now,
        )
        require_within_own(principal, role.permissions)
        details: JsonObject = {"permissions": [*role.permissions]}
        audit = audit_entry(principal, AuditAction.ROLE_CREATED, role.name, ids=self._ids, at=now, details=details)
        await self._roles.add(role, audit)
        return role
