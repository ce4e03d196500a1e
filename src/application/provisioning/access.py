"""The access of provisioned people, in every organization into which their identity provider lets
them."""

from application.provisioning.ports import ProvisionedAccess
from application.revocation.update_user import UpdateUser, UpdateUserCommand
from domain.identity.identity_provider import IdentityProvider
from domain.identity.provisioning import directory_principal
from domain.identity.user import User, UserStatus


class DirectoryAccess:
    """Rules:
    - A person whom the directory deactivates or deletes is refused at once, and what they started
      ends (`UpdateUser`).
    - For an identity provider of the installation, this holds in all organizations. The
      organization of the identity provider is the last, so that a person who has lost access there
      has lost it everywhere.
    - Each repetition ends what is left, so that a directory that tries again after a failure
      completes it.
    - A person is admitted again in the organization of the identity provider only: elsewhere an
      admin may have ended their access. A user whom an admin removed elsewhere stays removed.

    Raises: what UpdateUser raises.
    """

    def __init__(self, *, update_user: UpdateUser, access: ProvisionedAccess) -> None:
        self._update = update_user
        self._access = access

    async def set(self, provider: IdentityProvider, user: User, status: UserStatus, *, subject: str) -> None:
        """`subject` is the person at the issuer."""
        if status is UserStatus.ACTIVE:
            if user.status is not UserStatus.ACTIVE:
                await self._set(provider, user, status)
            return
        for each in await self._access.elsewhere(provider, user.issuer, subject):
            await self._set(provider, each, each.status if each.status is UserStatus.REMOVED else status)
        await self._set(provider, user, status)

    async def _set(self, provider: IdentityProvider, user: User, status: UserStatus) -> None:
        principal = directory_principal(provider, user.organization_id)
        await self._update.execute(UpdateUserCommand(principal=principal, user_id=user.id, status=status))
