"""UpdateProvisionedUser: a directory changes what it says about a person, or ends and restores their access."""

from dataclasses import dataclass, replace

from application.audit.entries import audit_entry
from application.provisioning.access import DirectoryAccess
from application.provisioning.ports import ProvisionedUserStore
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import require_version
from domain.identity.identity_provider import IdentityProvider
from domain.identity.provisioning import DirectoryEntry, ProvisionedUser, directory_principal
from domain.identity.user import UserStatus
from domain.ids import UserId


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateProvisionedUserCommand:
    """`expected_version` None skips the check."""

    provider: IdentityProvider
    user_id: UserId
    entry: DirectoryEntry
    active: bool
    expected_version: int | None = None


class UpdateProvisionedUser:
    """Rules:
    - A person whom the directory deactivates is refused at once, everywhere.
    - The same description changes nothing.
    - Audited as `user.updated`.

    Raises: ServiceError user_not_found, user_name_taken, version_conflict.
    """

    def __init__(
        self, *, provisioned: ProvisionedUserStore, directory_access: DirectoryAccess, clock: Clock, ids: IdSource
    ) -> None:
        self._provisioned = provisioned
        self._access = directory_access
        self._clock = clock
        self._ids = ids

    async def execute(self, command: UpdateProvisionedUserCommand) -> ProvisionedUser:
        provider, now = command.provider, self._clock.now()
        former = [""]

        def decide(stored: ProvisionedUser) -> tuple[ProvisionedUser, AuditEvent] | None:
            require_version("user", stored.version, expected=command.expected_version)
            former[0] = stored.user.subject
            if stored.entry == command.entry:
                return None
            audit = audit_entry(
                directory_principal(provider),
                AuditAction.USER_UPDATED,
                stored.user.id,
                ids=self._ids,
                at=now,
                details={"identity_provider": provider.id},
            )
            return stored.described(command.entry, now), audit

        changed = await self._provisioned.change(provider, command.user_id, decide)
        status = UserStatus.ACTIVE if command.active else UserStatus.DEACTIVATED
        await self._access.set(provider, changed.user, status, subject=former[0])
        return replace(changed, user=replace(changed.user, status=status))
