"""API keys: opaque bearer tokens, stored as a hash only, and the principals that they
authenticate."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from domain.errors import ErrorKind, ServiceError, not_found
from domain.identity.permission import Permission
from domain.identity.role import Role
from domain.ids import ApiKeyId, ConsoleSessionId, ImpersonationId, OrganizationId, UserId
from domain.rate_limit import RateLimit
from domain.teams import Teams, sees

TOKEN_PREFIX = "dgm_"
_OF_USERS = "usr_"


class Owned(Protocol):
    """What a team may own."""

    @property
    def team(self) -> str | None: ...


OwnedT = TypeVar("OwnedT", bound=Owned)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key without its token.

    - `platform` keys also manage organizations.
    - From `expires_at` on the key is invalid, like a revoked one.
    - `rate_limit` bounds its requests, in addition to the service's limit for every key.
    - `last_used_at` lags by up to a minute.
    - `person_id` is the user who created the key, directly or with another key of theirs.
    - `custom_role` names a role of the organization in place of `role`, which is `viewer` then.
    """

    id: ApiKeyId
    organization_id: OrganizationId
    name: str
    role: Role
    platform: bool
    token_hash: str
    created_at: datetime
    expires_at: datetime | None = None
    rate_limit: RateLimit | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    person_id: UserId | None = None
    custom_role: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The authenticated caller: a key or a user of one organization, with a role.

    - `key_id` is the id of the key or of the user. Runs, calls, approvals and audit entries name
      it.
    - `user_until` is when the token or the session of a user expires; None for keys.
    - `key_of` is the user who created the key (`ApiKey.person_id`).
    - `session_id` is the session of the console in which the request came; None for requests with a
      token.
    - `custom_role` names a role of the organization in place of `role`, which is `viewer` then, and
      `granted` are its permissions.
    - `teams` are the groups whose agents, servers, workflows and threads the caller sees, beside
      those of the organization.
    - `impersonation_id` is set while a user or a key acts as another user. `key_id` then names
      both, and is no user's or key's id.
    """

    organization_id: OrganizationId
    key_id: ApiKeyId
    role: Role
    platform: bool = False
    user_until: datetime | None = None
    key_of: UserId | None = None
    session_id: ConsoleSessionId | None = None
    impersonation_id: ImpersonationId | None = None
    custom_role: str | None = None
    granted: frozenset[Permission] = frozenset()
    teams: Teams = frozenset()

    @property
    def visible_teams(self) -> Teams:
        """As `teams`; None for who manages the organization."""
        return None if self.may(Permission.ORGANIZATION_MANAGE) else self.teams

    def sees(self, team: str | None) -> bool:
        """Whether the caller sees what this team owns."""
        return team is None or sees(self.visible_teams, team)

    def found(self, value: OwnedT | None, what: str, identifier: str) -> OwnedT:
        """The value. Raises NOT_FOUND for None, and the same for what a team owns that the caller
        does not see."""
        if value is None or not self.sees(value.team):
            raise not_found(what, identifier)
        return value

    @property
    def permissions(self) -> frozenset[Permission]:
        return self.role.permissions if self.custom_role is None else self.granted

    @property
    def reads_as(self) -> Role:
        """The built-in role whose details of failures the caller is shown."""
        return Role.OPERATOR if self.may(Permission.RUNS_CONTROL) else self.role

    @property
    def acts_for(self) -> UserId | None:
        """The user, or who created the key; None for a key that no user created."""
        return self.person_id or self.key_of

    @property
    def person_id(self) -> UserId | None:
        """The user; None for a key."""
        return person_of(self.key_id)

    def require_person(self) -> UserId:
        """The user. Raises FORBIDDEN for a key, and for who acts as another user."""
        if (person_id := self.person_id) is None:
            detail = "An API key has no accounts. Sign in as a person: in the console, or with `dragoman login`."
            if self.impersonation_id is not None:
                detail = "Who acts as another user uses none of their accounts: end the impersonation."
            raise ServiceError("person_required", ErrorKind.FORBIDDEN, detail)
        return person_id

    def require_self(self) -> None:
        """Raise FORBIDDEN for who acts as another user."""
        if self.impersonation_id is not None:
            detail = "This is not done in the name of another person: end the impersonation."
            raise ServiceError("impersonation_refused", ErrorKind.FORBIDDEN, detail)

    def may(self, needed: Role | Permission) -> bool:
        """Whether the caller has the permission, or all permissions of the built-in role."""
        if isinstance(needed, Permission):
            return needed in self.permissions
        return self.role.includes(needed) or needed.permissions <= self.granted

    def require(self, needed: Role | Permission) -> None:
        """Raise FORBIDDEN unless the caller `may`."""
        if self.may(needed):
            return
        if isinstance(needed, Role):
            lacking = f"the role {needed}"
        elif self.custom_role is None:
            lacking = f"the role {next(role for role in Role if needed in role.permissions)}"
        else:
            lacking = f"the permission {needed}"
        detail = f"This needs {lacking}; the caller has {self.custom_role or self.role}."
        raise ServiceError("role_insufficient", ErrorKind.FORBIDDEN, detail)

    def require_platform(self) -> None:
        """Raise FORBIDDEN unless the key is a platform key."""
        if not self.platform:
            raise ServiceError(
                "platform_key_required",
                ErrorKind.FORBIDDEN,
                "This affects more than one organization and needs a platform key, such as the key of the first start.",
            )


def person_of(actor: str | None) -> UserId | None:
    """The user that a run, a session or an entry names as its actor; None for keys, schedules and
    the system."""
    return UserId(actor) if actor is not None and actor.startswith(_OF_USERS) else None


def hash_token(token: str) -> str:
    """The SHA-256 of a token in hex. Tokens carry 256 random bits, so a plain hash cannot be
    reversed by guessing."""
    return hashlib.sha256(token.encode()).hexdigest()
