"""ProvisionUser: a directory adds a person."""

from dataclasses import dataclass, replace

from application.audit.entries import audit_entry
from application.provisioning.access import DirectoryAccess
from application.provisioning.ports import ProvisionedUserStore
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.identity.identity_provider import IdentityProvider
from domain.identity.provisioning import DirectoryEntry, ProvisionedUser, directory_principal
from domain.identity.role import Role
from domain.identity.user import User, UserStatus
from domain.ids import UserId


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionUserCommand:
    provider: IdentityProvider
    entry: DirectoryEntry
    active: bool = True


class ProvisionUser:
    """Rules:
    - The person has one user in the organization of the identity provider: the one from a sign-in
      before, or a new one.
    - A new user is a viewer until they sign in; then rules give the role. A person whom no rule
      admits is refused.
    - The directory's word counts: a user who was deactivated or removed is admitted again if the
      directory says so.
    - Audited as `user.provisioned`.

    Raises: ServiceError user_name_taken (CONFLICT).
    """

    def __init__(
        self, *, provisioned: ProvisionedUserStore, directory_access: DirectoryAccess, clock: Clock, ids: IdSource
    ) -> None:
        self._provisioned = provisioned
        self._access = directory_access
        self._clock = clock
        self._ids = ids

    async def execute(self, command: ProvisionUserCommand) -> ProvisionedUser:
        provider, entry, now = command.provider, command.entry, self._clock.now()
        status = UserStatus.ACTIVE if command.active else UserStatus.DEACTIVATED
        user = User(
            id=UserId(self._ids.new("usr")),
            organization_id=provider.organization_id,
            provider_id=provider.id,
            issuer=provider.issuer,
            subject=entry.subject,
            email=entry.email,
            name=entry.name,
            role=Role.VIEWER,
            status=status,
            created_at=now,
        )
        new = ProvisionedUser(user=user, provider_id=provider.id, entry=entry, created_at=now, changed_at=now)
        audit = audit_entry(
            directory_principal(provider),
            AuditAction.USER_PROVISIONED,
            user.id,
            ids=self._ids,
            at=now,
            details={"identity_provider": provider.id, "status": status.value},
        )
        stored = await self._provisioned.add(new, audit)
        await self._access.set(provider, stored.user, status, subject=entry.subject)
        return replace(stored, user=replace(stored.user, status=status))
