"""Impersonations: for a limited time a user or a platform key acts as another user of the
organization."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.ids import ApiKeyId, ImpersonationId, OrganizationId, UserId

IMPERSONATION_PREFIX = "dgi_"
DEFAULT_MINUTES = 15
MAX_MINUTES = 60
MAX_REASON = 500
SHOWN_FOR = timedelta(days=30)
"""How long users see who acted as them."""
_ACTOR = "impersonation:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Impersonation:
    """`actor` acts as `user_id` until `expires_at`, for a `reason` that this user reads."""

    id: ImpersonationId
    organization_id: OrganizationId
    actor: ApiKeyId
    user_id: UserId
    reason: str
    token_hash: str
    created_at: datetime
    expires_at: datetime
    ended_at: datetime | None = None

    def is_open(self, at: datetime) -> bool:
        return self.ended_at is None and self.expires_at > at

    @property
    def acting(self) -> ApiKeyId:
        """The id that runs and audit entries name. It names both, and is no id of a user or a key:
        what belongs to the user alone is not found by it."""
        return ApiKeyId(f"{_ACTOR}{self.actor}:{self.user_id}")


def who_acts(actor: ApiKeyId) -> ApiKeyId:
    """The user or key behind an id that a run names: `actor` of an impersonation."""
    return ApiKeyId(actor.removeprefix(_ACTOR).partition(":")[0]) if actor.startswith(_ACTOR) else actor


def as_others(actor: ApiKeyId) -> str:
    """What the ids under which `actor` acts as others begin with."""
    return f"{_ACTOR}{actor}:"


def acting_as(actor: ApiKeyId) -> UserId | None:
    """The user as whom `actor` of an impersonation acts; None for other ids."""
    return UserId(actor.rpartition(":")[2]) if actor.startswith(_ACTOR) else None
