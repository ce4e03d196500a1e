"""What a company's directory says by SCIM: the people who may sign in, and their groups."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime

from domain.errors import invalid
from domain.identity.api_key import Principal
from domain.identity.identity_provider import IdentityProvider
from domain.identity.role import Role
from domain.identity.user import User, UserStatus
from domain.ids import ApiKeyId, GroupId, IdentityProviderId, OrganizationId, UserId
from domain.json_value import JsonObject

MAX_MEMBERS = 5_000
"""Of a group: each change reads and writes all of them."""
SCIM_PREFIX = "dgs_"
GROUPS_CLAIM = "scim_groups"
"""The name under which rules find the groups that SCIM says. No token can claim it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryEntry:
    """A person as the directory describes them. `attributes` is what else is stored for it: name,
    display name and e-mail addresses, as it sent them."""

    user_name: str
    external_id: str | None = None
    attributes: JsonObject = field(default_factory=dict)
    name: str | None = None
    email: str | None = None

    @property
    def subject(self) -> str:
        """The person at the issuer: the directory's id for them, or their user name without one."""
        return self.external_id or self.user_name


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionedUser:
    """A user whom a directory manages."""

    user: User
    provider_id: IdentityProviderId
    entry: DirectoryEntry
    version: int = 1
    created_at: datetime
    changed_at: datetime

    @property
    def active(self) -> bool:
        return self.user.status is UserStatus.ACTIVE

    @property
    def has_had_access(self) -> bool:
        """Whether the person has signed in or used a token, or an admin or a rule gave them a
        role."""
        user = self.user
        has_role = user.role is not Role.VIEWER or user.custom_role is not None
        return user.last_sign_in_at is not None or user.role_fixed or has_role

    def of(self, found: User) -> "ProvisionedUser":
        """This person, who has the user `found` already."""
        return replace(self, user=_described(found.readmitted(), self.entry))

    def described(self, entry: DirectoryEntry, at: datetime, *, active: bool) -> "ProvisionedUser":
        """The user as the directory describes them now. A removed one gets a name again only when
        admitted."""
        user = replace(self.user, subject=entry.subject)
        if active or user.status is not UserStatus.REMOVED:
            user = _described(user.readmitted(), entry)
        return replace(self, user=user, entry=entry, version=self.version + 1, changed_at=at)


def _described(user: User, entry: DirectoryEntry) -> User:
    return replace(user, subject=entry.subject, name=entry.name, email=entry.email)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group of users of one organization, which the directory of an identity provider manages."""

    id: GroupId
    organization_id: OrganizationId
    provider_id: IdentityProviderId
    name: str
    external_id: str | None = None
    members: tuple[UserId, ...] = ()
    version: int = 1
    created_at: datetime
    changed_at: datetime


def require_few_members(members: Collection[UserId]) -> None:
    """Raises INVALID `too_many_members`."""
    if len(members) > MAX_MEMBERS:
        raise invalid(
            "too_many_members",
            f"A group has at most {MAX_MEMBERS:,} members, not {len(members):,}. Provision several smaller groups.",
        )


def directory_principal(provider: IdentityProvider, organization_id: OrganizationId | None = None) -> Principal:
    """The directory of an identity provider as a caller. Audit entries name the identity
    provider."""
    return Principal(
        organization_id=organization_id or provider.organization_id, key_id=ApiKeyId(provider.id), role=Role.ADMIN
    )
