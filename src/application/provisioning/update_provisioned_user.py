"""UpdateProvisionedUser: a directory changes what it says about a person, or ends and restores
their access."""

from dataclasses import dataclass, replace

from application.audit.entries import audit_entry
from application.provisioning.access import DirectoryAccess
from application.provisioning.ports import ProvisionedUserStore
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ErrorKind, ServiceError, invalid, require_version
from domain.identity.identity_provider import IdentityProvider
from domain.identity.provisioning import DirectoryEntry, ProvisionedUser, directory_principal
from domain.identity.user import User, UserStatus
from domain.ids import UserId
from domain.json_value import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateProvisionedUserCommand:
    """`expected_version` and `expected_active` say what the directory changes; None skips the
    check."""

    provider: IdentityProvider
    user_id: UserId
    entry: DirectoryEntry
    active: bool
    expected_version: int | None = None
    expected_active: bool | None = None


class UpdateProvisionedUser:
    """Rules:
    - A person whom the directory deactivates is refused at once, everywhere. The same again ends
      what is left.
    - A user whom an admin removed stays removed until the directory says that the person is active.
    - The subject of a user changes only before the first access. What the subject before started
      ends.
    - The same description changes nothing.
    - Audited as `user.updated`, with both subjects if another person gets the user.

    Raises: ServiceError user_not_found, user_name_taken, version_conflict, subject_fixed (INVALID).
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
        found: list[User] = []

        def decide(stored: ProvisionedUser) -> tuple[ProvisionedUser, AuditEvent] | None:
            _require_unchanged(stored, command)
            found.append(stored.user)
            comes_back = command.active and stored.user.status is UserStatus.REMOVED
            if stored.entry == command.entry and not comes_back:
                return None
            subjects: dict[str, JsonValue] = {}
            if stored.user.subject != command.entry.subject:
                subjects = {"previous_subject": stored.user.subject, "subject": command.entry.subject}
            audit = audit_entry(
                directory_principal(provider),
                AuditAction.USER_UPDATED,
                stored.user.id,
                ids=self._ids,
                at=now,
                details={"identity_provider": provider.id, **subjects},
            )
            return stored.described(command.entry, now, active=command.active), audit

        changed = await self._provisioned.change(provider, command.user_id, decide)
        user, before = changed.user, found[-1]
        if user.subject != before.subject:
            user = await self._set(provider, user, active=False, subject=before.subject)
        return replace(changed, user=await self._set(provider, user, active=command.active, subject=before.subject))

    async def _set(self, provider: IdentityProvider, user: User, *, active: bool, subject: str) -> User:
        status = UserStatus.ACTIVE if active else UserStatus.DEACTIVATED
        if not active and user.status is UserStatus.REMOVED:
            status = UserStatus.REMOVED
        await self._access.set(provider, user, status, subject=subject)
        return replace(user, status=status)


def _require_unchanged(stored: ProvisionedUser, command: UpdateProvisionedUserCommand) -> None:
    """An admin's deactivation makes no version, so that the status is compared too."""
    require_version("user", stored.version, expected=command.expected_version)
    if command.expected_active not in (None, stored.active):
        raise ServiceError(
            "version_conflict", ErrorKind.PRECONDITION, "The user was activated or deactivated meanwhile."
        )
    if stored.user.subject != command.entry.subject and stored.has_had_access:
        raise invalid(
            "subject_fixed",
            "A person has had access with this externalId (or userName, without one). It cannot change: delete the user, "
            "and create one for the other person.",
        )
