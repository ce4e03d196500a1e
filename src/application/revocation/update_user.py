"""UpdateUser: change the role of a user, or end and restore their access."""

from dataclasses import dataclass, replace

from application.audit.entries import audit_entry
from application.identity.assignable_roles import AssignableRoles
from application.identity.ports import Memberships, UserStore
from application.identity.token_cache import TokenCache
from application.revocation.stop_work_of_key import StopWorkOfKey
from application.revocation.stopped_work import StoppedWork, UpdatedUser
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import conflict
from domain.identity.api_key import Principal
from domain.identity.custom_role import permissions_held, require_within_own
from domain.identity.permission import Permission
from domain.identity.role import Role
from domain.identity.user import User, UserStatus
from domain.ids import ApiKeyId, UserId
from domain.json_value import JsonObject

NOTHING_STOPPED = StoppedWork(runs=0, workflow_runs=0, gateway_sessions=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateUserCommand:
    """None changes nothing. A role that an admin sets stays at later sign-ins; `custom_role` is in
    place of `role`."""

    principal: Principal
    user_id: UserId
    role: Role | None = None
    may_impersonate: bool | None = None
    status: UserStatus | None = None
    custom_role: str | None = None


class UpdateUser:
    """Rules:
    - Requires `users.manage`. No caller changes themselves, nor with a key of theirs: no admin
      locks themselves out by mistake.
    - No caller gives a role that permits more than their own, nor changes a user who may do more.
    - A deactivated or removed user is refused at once, by API, gateway, streams and console, and
      what the user started ends (`StopWorkOfKey`). If that fails, repeating the change ends the
      rest.
    - The name and the e-mail address of a removed user are deleted, and the user leaves the groups
      of the organization. Runs and audit entries keep the id.
    - The role admin lets a user act as others (`may_impersonate`), or no longer.
    - Audited as `user.updated` or `user.removed`.

    Raises: ServiceError role_insufficient, role_beyond_own, role_invalid, user_not_found,
    user_is_caller, impersonation_refused.
    """

    def __init__(
        self,
        *,
        users: UserStore,
        assignable: AssignableRoles,
        memberships: Memberships,
        cache: TokenCache,
        work: StopWorkOfKey,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._users = users
        self._assignable = assignable
        self._memberships = memberships
        self._cache = cache
        self._work = work
        self._clock = clock
        self._ids = ids

    async def execute(self, command: UpdateUserCommand) -> UpdatedUser:
        principal = command.principal
        principal.require(Permission.USERS_MANAGE)
        principal.require_self()
        if command.may_impersonate is not None:
            principal.require(Role.ADMIN)
        if command.user_id == principal.acts_for:
            raise conflict("user_is_caller", "Users do not change themselves; another admin can.")

        if command.role is not None or command.custom_role is not None:
            await self._assignable.require(principal, command.role or Role.VIEWER, command.custom_role)
        roles = await self._assignable.all(principal.organization_id)

        def decide(user: User) -> tuple[User, AuditEvent] | None:
            require_within_own(principal, permissions_held(roles, user.role, user.custom_role))
            changed = _changed(user, command)
            return None if changed == user else (changed, self._entry(principal, changed))

        try:
            user = await self._users.change(principal.organization_id, command.user_id, decide)
        finally:
            self._cache.forget(ApiKeyId(command.user_id))
        if command.status in (None, UserStatus.ACTIVE):
            return UpdatedUser(user=user, stopped=NOTHING_STOPPED)
        if command.status is UserStatus.REMOVED:
            await self._memberships.leave_all(user.organization_id, user.id)
        return UpdatedUser(user=user, stopped=await self._work.execute(principal, user.actor))

    def _entry(self, principal: Principal, user: User) -> AuditEvent:
        action = AuditAction.USER_REMOVED if user.status is UserStatus.REMOVED else AuditAction.USER_UPDATED
        details: JsonObject = {"role": user.custom_role or user.role.value, "status": user.status.value}
        if user.may_impersonate:
            details = {**details, "may_impersonate": True}
        return audit_entry(principal, action, user.id, ids=self._ids, at=self._clock.now(), details=details)


def _changed(user: User, command: UpdateUserCommand) -> User:
    if command.role is not None or command.custom_role is not None:
        role = command.role or Role.VIEWER
        user = replace(user, role=role, custom_role=command.custom_role, role_fixed=True)
    if command.may_impersonate is not None:
        user = replace(user, may_impersonate=command.may_impersonate)
    if command.status is UserStatus.REMOVED:
        return user.removed()
    return user if command.status is None else replace(user, status=command.status)
