"""UpdateCustomRole: change what a custom role permits."""

from dataclasses import dataclass, replace
from datetime import datetime

from application.audit.entries import audit_entry
from application.identity.ports import CustomRoleStore
from application.identity.token_cache import TokenCache
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import require_version
from domain.identity.api_key import Principal
from domain.identity.custom_role import CustomRole, require_within_own
from domain.identity.permission import Permission
from domain.json_value import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateCustomRoleCommand:
    """None changes nothing. `expected_version` None skips the check."""

    principal: Principal
    name: str
    permissions: tuple[Permission, ...] | None = None
    description: str | None = None
    expected_version: int | None = None


class UpdateCustomRole:
    """Rules:
    - Requires `roles.manage`, and each permission that the role has before or after.
    - Applies at once to all who have the role, in every process.
    - A change of nothing makes no version and no audit entry. Audited as `role.updated`, with the
      permissions that were added and removed.

    Raises: ServiceError role_insufficient, role_beyond_own, role_invalid, role_not_found,
    version_conflict.
    """

    def __init__(self, *, custom_roles: CustomRoleStore, cache: TokenCache, clock: Clock, ids: IdSource) -> None:
        self._roles = custom_roles
        self._cache = cache
        self._clock = clock
        self._ids = ids

    async def execute(self, command: UpdateCustomRoleCommand) -> CustomRole:
        principal, now = command.principal, self._clock.now()
        principal.require(Permission.ROLES_MANAGE)
        principal.require_self()

        def decide(stored: CustomRole) -> tuple[CustomRole, AuditEvent] | None:
            require_within_own(principal, stored.permissions)
            require_version("role", stored.version, expected=command.expected_version)
            changed = _changed(stored, command)
            require_within_own(principal, changed.permissions)
            if changed == stored:
                return None
            changed = replace(changed, version=stored.version + 1, changed_at=now)
            return changed, self._entry(principal, stored, changed, now)

        try:
            return await self._roles.change(principal.organization_id, command.name, decide)
        finally:
            self._cache.forget_all()

    def _entry(self, principal: Principal, before: CustomRole, after: CustomRole, now: datetime) -> AuditEvent:
        was, permits = set(before.permissions), set(after.permissions)
        details: JsonObject = {"added": [*sorted(permits - was)], "removed": [*sorted(was - permits)]}
        return audit_entry(principal, AuditAction.ROLE_UPDATED, after.name, ids=self._ids, at=now, details=details)


def _changed(stored: CustomRole, command: UpdateCustomRoleCommand) -> CustomRole:
    permissions = stored.permissions if command.permissions is None else tuple(sorted(set(command.permissions)))
    description = stored.description if command.description is None else command.description
    return replace(stored, permissions=permissions, description=description)
