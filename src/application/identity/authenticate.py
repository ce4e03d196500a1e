"""Authenticate: resolve a bearer token to its principal."""

from dataclasses import dataclass, field, replace

from application.identity.authenticate_person import AuthenticatePerson, AuthenticatePersonCommand
from application.identity.caller_teams import CallerTeams
from application.identity.granted import granted_to
from application.identity.impersonations import Impersonations
from application.identity.key_limits import KeyLimits
from application.identity.key_uses import KeyUses
from application.identity.ports import IdentityStore, RoleGrants
from application.identity.token_cache import KnownKey, TokenCache, known_key
from application.system.ports import Clock
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import TOKEN_PREFIX, Principal, hash_token
from domain.identity.impersonation import IMPERSONATION_PREFIX


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticateCommand:
    """With `audience`, a token of a person must be for it. With `impersonation`, tokens of
    impersonations are accepted."""

    token: str = field(repr=False)
    audience: str | None = None
    impersonation: bool = False


class Authenticate:
    """Rules:
    - A known token that is neither revoked nor expired authenticates its key's organization and
      role.
    - Unknown, malformed, revoked and expired tokens get the same error.
    - A key is refused as soon as its revocation is stored, and has what its custom role permits
      now, and the teams of `CallerTeams`.
    - The key's rate limit and the service's limit both apply, and that of the user who made the key
      if the organization counts keys for users.
    - The time of use is recorded.
    - A token of an impersonation is refused, except where the caller accepts them
      (`Impersonations`).
    - A token without the prefix of keys is a person's (`AuthenticatePerson`).

    Raises: ServiceError token_invalid (UNAUTHENTICATED), rate_limited (LIMIT).
    """

    def __init__(
        self,
        *,
        identities: IdentityStore,
        custom_roles: RoleGrants,
        cache: TokenCache,
        limits: KeyLimits,
        uses: KeyUses,
        people: AuthenticatePerson,
        impersonations: Impersonations,
        caller_teams: CallerTeams,
        clock: Clock,
    ) -> None:
        self._identities = identities
        self._roles = custom_roles
        self._cache = cache
        self._limits = limits
        self._uses = uses
        self._people = people
        self._as_others = impersonations
        self._teams = caller_teams
        self._clock = clock

    async def execute(self, command: AuthenticateCommand) -> Principal:
        if command.impersonation and command.token.startswith(IMPERSONATION_PREFIX):
            principal, _ = await self._as_others.of_token(command.token)
            return principal
        if not command.token.startswith(TOKEN_PREFIX):
            return await self._people.execute(AuthenticatePersonCommand(token=command.token, audience=command.audience))
        token_hash = hash_token(command.token)
        key = self._cache.get(token_hash) or await self._look_up(token_hash)
        now = self._clock.now()
        if key.expires_at is not None and key.expires_at <= now:
            raise _unauthenticated()
        principal = key.principal
        if principal.key_of is not None:
            await self._limits.take_of_users_key(
                principal.organization_id, principal.key_of, principal.key_id, key.rate_limit
            )
        elif (counted := self._limits.take(principal.key_id, key.rate_limit)) is not None:
            await counted
        self._uses.note(principal.key_id, now)
        return principal

    async def _look_up(self, token_hash: str) -> KnownKey:
        generation = self._cache.generation
        key = await self._identities.key_by_hash(token_hash)
        if key is None or key.revoked_at is not None:
            raise _unauthenticated()
        known = known_key(key, await granted_to(key, self._roles))
        known = replace(known, principal=await self._teams.told(known.principal))
        self._cache.put(token_hash, known, generation=generation)
        return known


def _unauthenticated() -> ServiceError:
    return ServiceError("token_invalid", ErrorKind.UNAUTHENTICATED, "The API key is unknown, expired or revoked.")
