"""Users: people who sign in with an identity provider of their organization or of the
installation."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.identity.role import Role
from domain.ids import ApiKeyId, IdentityProviderId, OrganizationId, UserId


class UserStatus(StrEnum):
    """Only an active user is admitted. The row of a removed one stays, without name and e-mail, so
    that the next sign-in does not create the user again."""

    ACTIVE = "active"
    DEACTIVATED = "deactivated"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What an identity provider says about a person. `issuer` and `subject` identify the person,
    nothing else does."""

    issuer: str
    subject: str
    email: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A person in one organization.

    - `role` comes from the rules of the identity provider, at each sign-in. With `role_fixed` an
      admin chose it, and rules no longer change it. `custom_role` names a role of the organization
      in its place; `role` is `viewer` then.
    - With `may_impersonate`, which an admin gives, the user may act as others (`Impersonations`).
    - `last_sign_in_at` is also when a token is first used here, at most about once an hour.
    - The user is refused while `provider_id` names no identity provider.
    """

    id: UserId
    organization_id: OrganizationId
    provider_id: IdentityProviderId
    issuer: str
    subject: str
    email: str | None
    name: str | None
    role: Role
    role_fixed: bool = False
    status: UserStatus = UserStatus.ACTIVE
    created_at: datetime
    last_sign_in_at: datetime | None = None
    custom_role: str | None = None
    may_impersonate: bool = False

    @property
    def actor(self) -> ApiKeyId:
        """The id under which runs, calls, approvals and audit entries name the user."""
        return ApiKeyId(self.id)

    def seen(
        self, profile: Profile, provider_id: IdentityProviderId, role: Role, custom_role: str | None = None
    ) -> "User":
        """The user as the identity provider describes them now."""
        seen = replace(self, provider_id=provider_id, email=profile.email, name=profile.name)
        return seen if self.role_fixed else replace(seen, role=role, custom_role=custom_role)

    def removed(self) -> "User":
        return replace(self, status=UserStatus.REMOVED, email=None, name=None, may_impersonate=False)

    def readmitted(self) -> "User":
        """The user as one who comes: a removed one without the role from before."""
        if self.status is not UserStatus.REMOVED:
            return self
        return replace(self, role=Role.VIEWER, custom_role=None, role_fixed=False)

    def principal(self, expires_at: datetime, granted: frozenset[Permission] = frozenset()) -> Principal:
        """The user as a caller, until their token or session expires, with the permissions of the
        custom role. Users never have platform rights."""
        return Principal(
            organization_id=self.organization_id,
            key_id=self.actor,
            role=self.role,
            user_until=expires_at,
            custom_role=self.custom_role,
            granted=granted,
        )
