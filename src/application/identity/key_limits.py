"""Request rate limits per API key and user."""

import math
from collections.abc import Awaitable, Sequence

from application.identity.ports import OrganizationStore
from application.system.rates import Bucket, Rates, TooSoon
from domain.errors import ErrorKind, ServiceError
from domain.ids import ApiKeyId, OrganizationId, UserId
from domain.rate_limit import RateLimit


class KeyLimits:
    """Limits that all apply: `every`, the operator's limit per key, user and session; the key's
    own; and the one that the organization has for the user. A refused request is not counted.

    To be awaited unless None: most requests are counted without a question to other processes.
    """

    def __init__(self, *, every: RateLimit | None, rates: Rates, organizations: OrganizationStore) -> None:
        self._every = every
        self._rates = rates
        self._organizations = organizations

    def take(self, key_id: ApiKeyId, own: RateLimit | None) -> Awaitable[None] | None:
        """Count a request. Raises LIMIT `rate_limited` (extra `retry_after_s`, whole seconds)."""
        buckets = [(key_id, limit) for limit in dict.fromkeys((self._every, own)) if limit is not None]
        return self._take(buckets) if buckets else None

    def take_of_session(self, session_id: ApiKeyId, key_id: ApiKeyId, own: RateLimit | None) -> Awaitable[None] | None:
        """Count a request of a gateway session. The operator's limit applies to the session as if
        it were a key; the key's own limit is shared with the key. Raises as `take`."""
        buckets = [(session_id, self._every)] if self._every is not None else []
        if own is not None:
            buckets.append((key_id, own))
        return self._take(buckets) if buckets else None

    async def take_of_users_key(
        self,
        organization_id: OrganizationId,
        user_id: UserId,
        key_id: ApiKeyId,
        own: RateLimit | None,
        *,
        session_id: ApiKeyId | None = None,
    ) -> None:
        """Count a request with a key that the user made, and for the user if the organization
        counts keys for users. Raises as `take`."""
        organization = await self._organizations.get(organization_id)
        buckets: list[Bucket] = [] if self._every is None else [(session_id or key_id, self._every)]
        if own is not None and (session_id is not None or own != self._every):
            buckets.append((key_id, own))
        if organization is not None and organization.keys_count_for_users:
            of_user = organization.limits_of(user_id).rate_limit
            buckets += [] if of_user is None else [(user_id, of_user)]
        if buckets and (counted := self._take(buckets)) is not None:
            await counted

    async def take_of_user(
        self, organization_id: OrganizationId, user_id: UserId, *, session_id: ApiKeyId | None = None
    ) -> None:
        """Count a request of a user, who may send it in a gateway session. All that a user sends
        shares the organization's limit for them. Raises as `take`."""
        organization = await self._organizations.get(organization_id)
        own = None if organization is None else organization.limits_of(user_id).rate_limit
        user = ApiKeyId(user_id)
        counted = self.take(user, own) if session_id is None else self.take_of_session(session_id, user, own)
        if counted is not None:
            await counted

    def _take(self, buckets: Sequence[Bucket]) -> Awaitable[None] | None:
        try:
            turn = self._rates.turn(buckets)
        except TooSoon as refused:
            raise _rate_limited(refused) from None
        return None if isinstance(turn, float) else _counted(turn)


async def _counted(turn: Awaitable[float]) -> None:
    try:
        await turn
    except TooSoon as refused:
        raise _rate_limited(refused) from None


def _rate_limited(refused: TooSoon) -> ServiceError:
    seconds = math.ceil(refused.wait_s)
    return ServiceError(
        "rate_limited",
        ErrorKind.LIMIT,
        f"This caller has sent too many requests. Try again in {seconds} s.",
        extra={"retry_after_s": str(seconds)},
    )
