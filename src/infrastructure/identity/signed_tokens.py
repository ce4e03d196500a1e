"""Signed tokens (JWT) of identity providers, checked by PyJWT."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Protocol

import jwt

from application.identity.authenticate_person import invalid_token
from application.identity.ports import VerifiedToken
from application.system.lru import LruCache
from application.system.ports import Clock
from application.system.shared_work import SharedWork
from domain.errors import ServiceError
from domain.identity.identity_provider import IdentityProvider
from domain.json_value import JsonObject, JsonValue
from domain.rate_limit import CallSchedule, RateLimit
from infrastructure.identity.documents import FAMILIES, FRESH_S, MAX_KNOWN, RETRY_S

SKEW = timedelta(seconds=60)
UNKNOWN_KEYS = RateLimit(calls=6, per_s=60.0)
"""Reads of an issuer's keys for tokens that name unknown ones, however many they are."""
MAX_KEYS = 100
_TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})
"""Logout tokens, DPoP proofs and others are signed with the same keys, and are no credentials."""


class KeySource(Protocol):
    """Reads an issuer's JSON Web Keys."""

    async def keys(self, issuer: str) -> list[JsonObject]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """An issuer's keys. `failure` is why there are none."""

    keys: list[JsonObject]
    valid_until: float
    failure: ServiceError | None = None


class SignedTokens:
    """The `TokenVerifier` port. Keys are cached for an hour; a token with an unknown key id makes
    them read again, within `UNKNOWN_KEYS`."""

    def __init__(self, *, documents: KeySource, clock: Clock) -> None:
        self._documents = documents
        self._clock = clock
        self._known: LruCache[str, _Known] = LruCache(MAX_KNOWN)
        self._schedules: LruCache[str, CallSchedule] = LruCache(MAX_KNOWN)
        self._reading = SharedWork[str, _Known](name="identity-provider-keys")

    async def issuer_of(self, token: str) -> str | None:
        issuer = _unverified(token).get("iss")
        return issuer if isinstance(issuer, str) else None

    async def verify(self, provider: IdentityProvider, token: str, *, nonce: str | None = None) -> VerifiedToken:
        audiences = [provider.client_id] if nonce is not None else list(provider.accepted_audiences)
        if not _names_one_of(audiences, _unverified(token).get("aud")):
            # Of many identity providers of an issuer, only the one that is named costs a check of
            # the signature.
            raise invalid_token()
        header = _header(token)
        key = await self._key(provider.issuer, header)
        try:
            claims = jwt.decode(
                token,
                key,
                algorithms=[header["alg"]],
                audience=audiences,
                issuer=provider.issuer,
                leeway=SKEW,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
            raise invalid_token() from error
        if nonce is not None:
            _check_id_token(provider, claims, nonce)
        return VerifiedToken(claims=claims, expires_at=_moment(claims["exp"]) + SKEW)

    async def _key(self, issuer: str, header: dict[str, str]) -> jwt.PyJWK:
        now = self._clock.monotonic()
        known = self._known.get(issuer)
        if known is None or known.valid_until <= now:
            known = await self._read(issuer)
        found = _matching(known.keys, header)
        if found is None and self._may_read_again(issuer, now):
            known = await self._read(issuer)
            found = _matching(known.keys, header)
        if found is None:
            raise known.failure or invalid_token()
        return found

    def _may_read_again(self, issuer: str, now: float) -> bool:
        schedule = self._schedules.get(issuer) or CallSchedule(limit=UNKNOWN_KEYS)
        if schedule.wait_s(now) > 0:
            return False
        self._schedules.put(issuer, schedule.taken(now))
        return True

    async def _read(self, issuer: str) -> _Known:
        return await self._reading.result(issuer, partial(self._read_now, issuer))

    async def _read_now(self, issuer: str) -> _Known:
        """After a failure, keys from before stay valid."""
        former = self._known.get(issuer)
        try:
            keys, valid_s, failure = (await self._documents.keys(issuer))[:MAX_KEYS], FRESH_S, None
        except ServiceError as error:
            keys = [] if former is None else former.keys
            valid_s, failure = RETRY_S, None if keys else error
        known = _Known(keys=keys, valid_until=self._clock.monotonic() + valid_s, failure=failure)
        self._known.put(issuer, known)
        return known


def _unverified(token: str) -> JsonObject:
    """What a token claims; nothing for what is not a token."""
    try:
        return jwt.decode(token, options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError, RecursionError):
        return {}


def _names_one_of(audiences: list[str], claim: JsonValue) -> bool:
    named = claim if isinstance(claim, list) else [claim]
    return any(each in audiences for each in named)


def _header(token: str) -> dict[str, str]:
    """The header's texts. Raises UNAUTHENTICATED for an algorithm or a type that no credential
    has."""
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, RecursionError) as error:
        raise invalid_token() from error
    allowed = frozenset[str]().union(*FAMILIES.values())
    algorithm, kind = str(header.get("alg")), str(header.get("typ", "JWT"))
    if algorithm not in allowed or kind.lower() not in _TYPES:
        raise invalid_token()
    return {name: value for name, value in header.items() if isinstance(value, str)}


def _matching(keys: list[JsonObject], header: dict[str, str]) -> jwt.PyJWK | None:
    """The key with the token's key id, or the only one of its family for a token without."""
    algorithm, wanted = header["alg"], header.get("kid")
    fitting = [
        key
        for key in keys
        if algorithm in FAMILIES.get(str(key.get("kty")), ())
        and key.get("alg") in (None, algorithm)
        and key.get("use") in (None, "sig")
        and (wanted is None or key.get("kid") == wanted)
    ]
    if len(fitting) != 1:
        return None
    try:
        return jwt.PyJWK.from_dict(fitting[0], algorithm=algorithm)
    except (jwt.PyJWTError, ValueError, TypeError):
        return None


def _check_id_token(provider: IdentityProvider, claims: dict[str, JsonValue], nonce: str) -> None:
    """OpenID Connect Core 1.0, section 3.1.3.7: the token belongs to this sign-in, and this service
    is the authorized party."""
    audience, party = claims.get("aud"), claims.get("azp")
    has_others = isinstance(audience, list) and len(audience) > 1
    if claims.get("nonce") != nonce or (has_others and party is None) or party not in (None, provider.client_id):
        raise invalid_token()


def _moment(seconds: float) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError, TypeError) as error:
        raise invalid_token() from error
