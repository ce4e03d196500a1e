"""DeprovisionUser: a directory deletes a person."""

from dataclasses import dataclass

from application.provisioning.access import DirectoryAccess
from application.provisioning.ports import ProvisionedAccess, ProvisionedUserStore
from domain.errors import existing, require_version
from domain.identity.identity_provider import IdentityProvider
from domain.identity.user import UserStatus
from domain.ids import UserId


@dataclass(frozen=True, slots=True, kw_only=True)
class DeprovisionUserCommand:
    """`expected_version` None skips the check."""

    provider: IdentityProvider
    user_id: UserId
    expected_version: int | None = None


class DeprovisionUser:
    """Rules:
    - The person is refused at once, everywhere, and not admitted by a sign-in. What they started
      ends.
    - Name and e-mail address are deleted; runs and audit entries keep the id. Audited as
      `user.removed`.

    Raises: ServiceError user_not_found, version_conflict.
    """

    def __init__(
        self, *, provisioned: ProvisionedUserStore, access: ProvisionedAccess, directory_access: DirectoryAccess
    ) -> None:
        self._provisioned = provisioned
        self._access = access
        self._directory_access = directory_access

    async def execute(self, command: DeprovisionUserCommand) -> None:
        provider = command.provider
        found = existing(await self._provisioned.get(provider, command.user_id), "user", command.user_id)
        require_version("user", found.version, expected=command.expected_version)
        subject = found.user.subject
        await self._directory_access.set(provider, found.user, UserStatus.REMOVED, subject=subject)
        await self._access.remove(provider, command.user_id)
