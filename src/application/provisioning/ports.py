"""Ports of the provisioning slice."""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from domain.audit.event import AuditEvent
from domain.identity.identity_provider import IdentityProvider
from domain.identity.provisioning import Group, ProvisionedUser
from domain.identity.user import User
from domain.ids import GroupId, IdentityProviderId, OrganizationId, UserId

ProvisionedChange = Callable[[ProvisionedUser], tuple[ProvisionedUser, AuditEvent] | None]
GroupChange = Callable[[Group], tuple[Group, AuditEvent] | None]
"""Decide over what is stored, with its row locked; None for no change."""


class ScimTokens(Protocol):
    """One token per identity provider, by its hash."""

    async def set_token(self, provider: IdentityProvider, token_hash: str, at: datetime, audit: AuditEvent) -> None:
        """Store the token in the place of the one before."""

    async def revoke_token(self, provider: IdentityProvider, audit: AuditEvent) -> bool:
        """False if there is none."""

    async def provider_of(self, token_hash: str) -> IdentityProviderId | None: ...


class ProvisionedUserStore(Protocol):
    """Users whom the directory of an identity provider manages."""

    async def add(self, new: ProvisionedUser, audit: AuditEvent) -> ProvisionedUser:
        """Store it, with the user that the person has already, if any: that one keeps its id and
        status, and its role unless it was removed. Raises CONFLICT `user_name_taken` if the
        directory has such a user name, or manages the person already."""

    async def get(self, provider: IdentityProvider, user_id: UserId) -> ProvisionedUser | None: ...

    async def named(self, provider: IdentityProvider, user_name: str) -> ProvisionedUser | None:
        """By user name, whatever its case."""

    async def all(self, provider: IdentityProvider) -> tuple[ProvisionedUser, ...]:
        """In the order of their creation."""

    async def change(self, provider: IdentityProvider, user_id: UserId, decide: ProvisionedChange) -> ProvisionedUser:
        """Raises NOT_FOUND `user_not_found`, CONFLICT as `add`, and what `decide` raises."""


class ProvisionedAccess(Protocol):
    """Access of provisioned people."""

    async def remove(self, provider: IdentityProvider, user_id: UserId) -> None:
        """Manage the user no more, and take them out of their groups."""

    async def elsewhere(self, provider: IdentityProvider, issuer: str, subject: str) -> tuple[User, ...]:
        """The person's users in other organizations who signed in with this identity provider."""


class GroupStore(Protocol):
    """Groups that directories manage."""

    async def add_group(self, group: Group, audit: AuditEvent) -> Group:
        """Members who are no users of the organization are left out. Raises CONFLICT
        `group_name_taken`, also for the name of another group, of whatever kind, that owns
        something."""

    async def group(self, provider: IdentityProvider, group_id: GroupId) -> Group | None: ...

    async def groups(self, organization_id: OrganizationId) -> tuple[Group, ...]:
        """All of an organization, by name."""

    async def change_group(self, provider: IdentityProvider, group_id: GroupId, decide: GroupChange) -> Group:
        """Raises NOT_FOUND `group_not_found`, and as `add_group`."""

    async def delete_group(self, provider: IdentityProvider, group_id: GroupId, audit: AuditEvent) -> bool:
        """False if there is none."""
