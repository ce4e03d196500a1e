"""BeginImpersonation: act as another user, for support."""

from dataclasses import dataclass, field
from datetime import timedelta

from application.audit.entries import audit_entry
from application.identity.impersonations import Impersonations, refused
from application.identity.ports import ImpersonationStore
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import Violation, invalid
from domain.identity.api_key import TOKEN_PREFIX, Principal, hash_token
from domain.identity.impersonation import (
    DEFAULT_MINUTES,
    IMPERSONATION_PREFIX,
    MAX_MINUTES,
    MAX_REASON,
    Impersonation,
)
from domain.ids import ImpersonationId, UserId
from domain.json_value import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginImpersonationCommand:
    principal: Principal
    user_id: UserId
    reason: str
    minutes: int = DEFAULT_MINUTES


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunImpersonation:
    """The token is shown only once."""

    impersonation: Impersonation
    token: str = field(repr=False)


class BeginImpersonation:
    """Rules:
    - `Impersonations` says who may act as whom. An impersonation begins no other one.
    - The caller also has the user's permissions in this request: a token may give less than the
      stored role.
    - A reason is required; the user reads it. At most an hour.
    - Only a hash of the token is stored.
    - Audited as `impersonation.begun`, with the user, the reason and the end.

    Raises: ServiceError impersonation_refused, impersonation_invalid, user_not_found.
    """

    def __init__(
        self, *, allowed: Impersonations, impersonations: ImpersonationStore, clock: Clock, ids: IdSource
    ) -> None:
        self._allowed = allowed
        self._impersonations = impersonations
        self._clock = clock
        self._ids = ids

    async def execute(self, command: BeginImpersonationCommand) -> BegunImpersonation:
        principal = command.principal
        principal.require_self()
        reason = "".join(each for each in command.reason if each.isprintable()).strip()
        _check(reason, command.minutes)
        user = await self._allowed.require_may_begin(principal.organization_id, principal.key_id, command.user_id)
        if not user.permissions <= principal.permissions:
            raise refused("The user has a permission that you lack now.")
        now = self._clock.now()
        token = IMPERSONATION_PREFIX + self._ids.new_token().removeprefix(TOKEN_PREFIX)
        begun = Impersonation(
            id=ImpersonationId(self._ids.new("imp")),
            organization_id=principal.organization_id,
            actor=principal.key_id,
            user_id=command.user_id,
            reason=reason,
            token_hash=hash_token(token),
            created_at=now,
            expires_at=now + timedelta(minutes=command.minutes),
        )
        details: JsonObject = {"as": begun.user_id, "reason": reason, "minutes": command.minutes}
        audit = audit_entry(
            principal, AuditAction.IMPERSONATION_BEGUN, begun.id, ids=self._ids, at=now, details=details
        )
        await self._impersonations.add(begun, audit)
        return BegunImpersonation(impersonation=begun, token=token)


def _check(reason: str, minutes: int) -> None:
    wrong = []
    if not 0 < len(reason) <= MAX_REASON:
        wrong.append(Violation(path="reason", message=f"must have 1 to {MAX_REASON} characters"))
    if not 0 < minutes <= MAX_MINUTES:
        wrong.append(Violation(path="minutes", message=f"must be 1 to {MAX_MINUTES}"))
    if wrong:
        raise invalid("impersonation_invalid", "The impersonation is not valid.", *wrong)
