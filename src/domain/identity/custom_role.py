"""Custom roles: names for sets of permissions, which an organization chooses."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from domain.errors import ErrorKind, ServiceError, Violation, conflict, invalid
from domain.identity.api_key import Principal
from domain.identity.permission import NEEDED_FOR, Permission
from domain.identity.role import Role
from domain.ids import OrganizationId

MAX_ROLES = 100
"""Per organization."""
MAX_DESCRIPTION = 500

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomRole:
    """A role of one organization. Its holders have the built-in role `viewer` and these
    permissions.

    - The name stays, because keys, users and rules of identity providers name it.
    - It has what its permissions need (`NEEDED_FOR`).
    """

    organization_id: OrganizationId
    name: str
    description: str = ""
    permissions: tuple[Permission, ...]
    version: int = 1
    created_at: datetime
    changed_at: datetime

    def __post_init__(self) -> None:
        wrong = []
        if not _NAME.fullmatch(self.name):
            wrong.append(Violation(path="name", message="must match [a-z0-9][a-z0-9_-]{0,63}"))
        if self.name in list(Role):
            wrong.append(Violation(path="name", message="is the name of a built-in role"))
        if len(self.description) > MAX_DESCRIPTION:
            wrong.append(Violation(path="description", message=f"must be at most {MAX_DESCRIPTION} characters"))
        wrong += [
            Violation(path="permissions", message=f"{permission} needs {', '.join(lacking)}")
            for permission in self.permissions
            if (lacking := sorted(NEEDED_FOR.get(permission, frozenset()).difference(self.permissions)))
        ]
        if wrong:
            raise invalid("role_invalid", "The role is not valid.", *wrong)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleHolders:
    """Who has a role: ids of API keys that are not revoked, of users that are not removed, and
    names of identity providers whose rules give it."""

    api_keys: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    identity_providers: tuple[str, ...] = ()

    def require_none(self, name: str) -> None:
        """Raises CONFLICT `role_in_use`, which names some of them."""
        held = [*self.api_keys, *self.users, *(f"the identity provider {each}" for each in self.identity_providers)]
        if held:
            shown = ", ".join(held[:_SHOWN]) + (", …" if len(held) > _SHOWN else "")
            raise conflict("role_in_use", f"The role {name!r} is in use by {len(held)}: {shown}.")


_SHOWN = 10


def permissions_held(roles: Iterable[CustomRole], role: Role, custom_role: str | None) -> frozenset[Permission]:
    """What a key or a user with this role may do. A name without a role gives nothing."""
    if custom_role is None:
        return role.permissions
    return frozenset(next((each.permissions for each in roles if each.name == custom_role), ()))


def require_within_own(principal: Principal, permissions: Iterable[Permission]) -> None:
    """No caller gives, takes or ends what they do not have. Raises FORBIDDEN `role_beyond_own`."""
    beyond = sorted(set(permissions) - principal.permissions)
    if beyond:
        raise ServiceError(
            "role_beyond_own",
            ErrorKind.FORBIDDEN,
            f"This concerns permissions that you do not have: {', '.join(beyond)}.",
        )
