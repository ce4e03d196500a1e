"""AuthenticatePerson: resolve a signed token of an identity provider to its user."""

from dataclasses import dataclass, field

from application.identity.admit_person import AdmitPerson, AdmitPersonCommand
from application.identity.caller_teams import CallerTeams
from application.identity.granted import granted_to
from application.identity.key_limits import KeyLimits
from application.identity.ports import Claims, IdentityProviderDirectory, RoleGrants, TokenVerifier
from application.identity.token_cache import KnownKey, TokenCache
from application.system.ports import Clock
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal, hash_token
from domain.ids import UserId

MAX_TOKEN = 16 * 1024
_DOTS = 2
"""Of a signed token in its compact form (RFC 7515)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticatePersonCommand:
    """With `audience`, the token must be for it, and not only for one that its identity provider
    may name."""

    token: str = field(repr=False)
    audience: str | None = None


class AuthenticatePerson:
    """Rules:
    - A token is checked here, without a request to its identity provider: signature, issuer,
      audience and time.
    - The audiences of all identity providers of an issuer are distinct, so at most one of them
      accepts a token.
    - The rules of the identity provider give the user's organization and role (`AdmitPerson`).
    - A checked token is cached until it expires, or until a user, a group, a custom role or an
      identity provider changes.
    - The service's rate limit and the organization's apply to each user.

    Raises: ServiceError token_invalid, sign_in_refused (UNAUTHENTICATED), rate_limited (LIMIT),
    identity_provider_unavailable.
    """

    def __init__(
        self,
        *,
        identity_providers: IdentityProviderDirectory,
        tokens: TokenVerifier,
        admit_person: AdmitPerson,
        custom_roles: RoleGrants,
        cache: TokenCache,
        limits: KeyLimits,
        caller_teams: CallerTeams,
        clock: Clock,
    ) -> None:
        self._teams = caller_teams
        self._providers = identity_providers
        self._tokens = tokens
        self._admit = admit_person
        self._roles = custom_roles
        self._cache = cache
        self._limits = limits
        self._clock = clock

    async def execute(self, command: AuthenticatePersonCommand) -> Principal:
        if len(command.token) > MAX_TOKEN or command.token.count(".") != _DOTS:
            raise invalid_token()
        token_hash = hash_token(command.token)
        known = self._cache.get(token_hash) or await self._look_up(command.token, token_hash)
        if known.expires_at is None or known.expires_at <= self._clock.now():
            raise invalid_token()
        if command.audience is not None and command.audience not in known.audiences:
            raise invalid_token()
        principal = known.principal
        await self._limits.take_of_user(principal.organization_id, UserId(principal.key_id))
        return principal

    async def _look_up(self, token: str, token_hash: str) -> KnownKey:
        generation = self._cache.generation
        issuer = await self._tokens.issuer_of(token)
        if issuer is None:
            raise invalid_token()
        for provider in await self._providers.of_issuer(issuer):
            try:
                verified = await self._tokens.verify(provider, token)
            except ServiceError as error:
                if error.kind is not ErrorKind.UNAUTHENTICATED:
                    raise
                continue
            user = await self._admit.execute(AdmitPersonCommand(provider=provider, claims=verified.claims))
            principal = user.principal(verified.expires_at, await granted_to(user, self._roles))
            known = KnownKey(
                principal=await self._teams.told(principal),
                expires_at=verified.expires_at,
                rate_limit=None,
                audiences=_audiences(verified.claims),
            )
            self._cache.put(token_hash, known, generation=generation)
            return known
        raise invalid_token()


def _audiences(claims: Claims) -> tuple[str, ...]:
    named = claims.get("aud")
    return tuple(str(each) for each in (named if isinstance(named, list) else [named]))


def invalid_token() -> ServiceError:
    return ServiceError("token_invalid", ErrorKind.UNAUTHENTICATED, "The token is unknown, expired or revoked.")
