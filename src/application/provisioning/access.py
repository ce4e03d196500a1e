"""The access of provisioned people, in every organization into which their identity provider lets them."""

from application.provisioning.ports import ProvisionedAccess
from application.revocation.update_user import UpdateUser, UpdateUserCommand
from domain.identity.identity_provider import IdentityProvider
from domain.identity.provisioning import directory_principal
from domain.identity.user import User, UserStatus


class DirectoryAccess:
    """Rules:
    - A person whom the directory deactivates or deletes is refused at once, and what they started ends (`UpdateUser`).
    - For an identity provider of the installation, this holds in all organizations.

    Raises: what UpdateUser raises.
    """

    def __init__(self, *, update_user: UpdateUser, access: ProvisionedAccess) -> None:
        self._update = update_user
        self._access = access

    async def set(self, provider: IdentityProvider, user: User, status: UserStatus, *, subject: str) -> None:
        """`subject` is the person at the issuer."""
        elsewhere = await self._access.elsewhere(provider, user.issuer, subject)
        for each in (user, *elsewhere):
            # Ended again where it failed before.
            if each.status is not status or status is not UserStatus.ACTIVE:
                principal = directory_principal(provider, each.organization_id)
                await self._update.execute(UpdateUserCommand(principal=principal, user_id=each.id, status=status))
