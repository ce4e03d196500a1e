"""Signed tokens: which are taken for a person's, and which are refused however they are made."""

import base64
import hashlib
import hmac
import json
import time
from datetime import timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from domain.errors import ErrorKind, ServiceError
from domain.json_value import JsonObject
from infrastructure.identity.documents import RETRY_S
from infrastructure.identity.signed_tokens import UNKNOWN_KEYS, SignedTokens
from tests.doubles.surroundings import FixedClock
from tests.people_builders import ISSUER, a_provider
from tests.refusals import refused

PROVIDER = a_provider(audiences=("api",))
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
SIGNING: dict[str, Any] = {
    "RS256": RSA_KEY,
    "PS256": RSA_KEY,
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}


def public(algorithm: str, kid: str) -> JsonObject:
    key = json.loads(jwt.get_algorithm_by_name(algorithm).to_jwk(SIGNING[algorithm].public_key()))
    return {**{name: value for name, value in key.items() if name != "key_ops"}, "kid": kid, "use": "sig"}


def claims(**changes: object) -> dict[str, object]:
    now = int(time.time())
    made = {"iss": ISSUER, "sub": "ann", "aud": "dragoman", "iat": now, "exp": now + 300, **changes}
    return {name: value for name, value in made.items() if value is not None}


def signed(algorithm: str = "RS256", kid: str | None = "one", typ: str | None = "JWT", **changes: object) -> str:
    headers = {"typ": typ} if kid is None else {"kid": kid, "typ": typ}
    return jwt.encode(claims(**changes), SIGNING[algorithm], algorithm=algorithm, headers=headers)


def encoded(part: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


class Issuer:
    """Its keys, and how often they were read."""

    def __init__(self) -> None:
        self.published: list[JsonObject] = [public("RS256", "one")]
        self.reads = 0
        self.away = False

    async def keys(self, _: str) -> list[JsonObject]:
        self.reads += 1
        if self.away:
            raise ServiceError("identity_provider_unavailable", ErrorKind.UNAVAILABLE, "Away.")
        return self.published


@pytest.fixture
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def tokens(issuer: Issuer, clock: FixedClock) -> SignedTokens:
    return SignedTokens(documents=issuer, clock=clock)


@pytest.mark.requirement("P1")
@pytest.mark.parametrize("algorithm", list(SIGNING))
@pytest.mark.parametrize("typ", ["JWT", "at+jwt"])
async def test_a_token_of_the_issuer_for_this_service_is_a_persons(
    tokens: SignedTokens, issuer: Issuer, algorithm: str, typ: str
) -> None:
    issuer.published = [public(algorithm, "one")]
    for audience in ("dragoman", "api", ["api", "others"]):
        token = signed(algorithm, typ=typ, aud=audience)
        assert await tokens.issuer_of(token) == ISSUER
        assert (await tokens.verify(PROVIDER, token)).claims["sub"] == "ann"
    assert issuer.reads == 1


@pytest.mark.requirement("P1")
@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://evil.example"},
        {"iss": f"{ISSUER}/"},
        {"aud": "another-service"},
        {"aud": ["another-service"]},
        {"aud": None},
        {"exp": timedelta(seconds=-90)},
        {"exp": None},
        {"nbf": timedelta(seconds=600)},
        {"iat": timedelta(seconds=600)},
        {"sub": None},
        {"exp": "soon"},
    ],
)
async def test_a_token_for_others_or_for_another_time_is_refused(tokens: SignedTokens, changes: dict[str, Any]) -> None:
    changed: dict[str, Any] = {
        name: _from_now(value) if isinstance(value, timedelta) else value for name, value in changes.items()
    }
    with refused("token_invalid"):
        await tokens.verify(PROVIDER, signed(**changed))


def _from_now(after: timedelta) -> int:
    return int(time.time() + after.total_seconds())


async def test_a_token_for_another_client_of_the_issuer_costs_no_check_of_its_signature(
    tokens: SignedTokens, issuer: Issuer
) -> None:
    for audience in ("another-service", ["another-service", 7], None, 7):
        with refused("token_invalid"):
            await tokens.verify(PROVIDER, signed(aud=audience))
    assert issuer.reads == 0


@pytest.mark.requirement("P1")
async def test_clocks_may_differ_by_a_minute(tokens: SignedTokens) -> None:
    now = int(time.time())
    await tokens.verify(PROVIDER, signed(exp=now - 30))
    await tokens.verify(PROVIDER, signed(nbf=now + 30, iat=now + 30))


@pytest.mark.requirement("P1")
async def test_a_token_without_a_signature_is_refused(tokens: SignedTokens) -> None:
    for algorithm in ("none", "None", "NONE", ""):
        token = f"{encoded({'alg': algorithm, 'typ': 'JWT', 'kid': 'one'})}.{encoded(claims())}."
        with refused("token_invalid"):
            await tokens.verify(PROVIDER, token)


@pytest.mark.requirement("P1")
async def test_a_token_signed_with_the_public_key_as_a_secret_is_refused(tokens: SignedTokens, issuer: Issuer) -> None:
    pem = RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    body = f"{encoded({'alg': 'HS256', 'typ': 'JWT', 'kid': 'one'})}.{encoded(claims())}"
    for secret in (pem, json.dumps(issuer.published[0]).encode(), b""):
        signature = base64.urlsafe_b64encode(hmac.new(secret, body.encode(), hashlib.sha256).digest()).rstrip(b"=")
        with refused("token_invalid"):
            await tokens.verify(PROVIDER, f"{body}.{signature.decode()}")


@pytest.mark.requirement("P1")
async def test_a_symmetric_key_among_the_issuers_keys_verifies_nothing(tokens: SignedTokens, issuer: Issuer) -> None:
    secret = "s" * 64
    issuer.published = [{"kty": "oct", "k": encoded(secret), "kid": "one", "alg": "HS256"}]
    with refused("token_invalid"):
        await tokens.verify(PROVIDER, jwt.encode(claims(), secret, algorithm="HS256", headers={"kid": "one"}))


@pytest.mark.requirement("P1")
async def test_a_key_that_the_token_brings_along_is_not_used(tokens: SignedTokens) -> None:
    theirs = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    own = json.loads(jwt.get_algorithm_by_name("RS256").to_jwk(theirs.public_key()))
    headers = {"kid": "one", "jwk": own, "jku": "https://evil.example/keys", "x5u": "https://evil.example"}
    with refused("token_invalid"):
        await tokens.verify(PROVIDER, jwt.encode(claims(), theirs, algorithm="RS256", headers=headers))


@pytest.mark.requirement("P1")
@pytest.mark.parametrize("typ", ["logout+jwt", "dpop+jwt", "secevent+jwt"])
async def test_what_the_issuer_signs_for_other_purposes_is_no_credential(tokens: SignedTokens, typ: str) -> None:
    with refused("token_invalid"):
        await tokens.verify(PROVIDER, signed(typ=typ))


@pytest.mark.requirement("P1")
@pytest.mark.parametrize("use", [{"use": "enc"}, {"alg": "RS512"}])
async def test_a_key_for_another_use_verifies_nothing(tokens: SignedTokens, issuer: Issuer, use: JsonObject) -> None:
    issuer.published = [{**public("RS256", "one"), **use}]
    with refused("token_invalid"):
        await tokens.verify(PROVIDER, signed())


@pytest.mark.requirement("P1")
@pytest.mark.parametrize(
    "token", ["a.b.c", "..", "eyJ.eyJ.x", f"{encoded([])}.{encoded({})}.", f"{encoded({'alg': {}})}.e30."]
)
async def test_what_is_no_token_is_refused(tokens: SignedTokens, token: str) -> None:
    assert await tokens.issuer_of(token) is None
    with refused("token_invalid"):
        await tokens.verify(PROVIDER, token)


@pytest.mark.requirement("P1")
async def test_a_new_key_of_the_issuer_is_read_when_a_token_names_it(tokens: SignedTokens, issuer: Issuer) -> None:
    await tokens.verify(PROVIDER, signed())
    issuer.published = [public("ES256", "two")]
    await tokens.verify(PROVIDER, signed("ES256", "two"))
    with refused("token_invalid"):
        await tokens.verify(PROVIDER, signed())


@pytest.mark.requirement("P1")
async def test_a_flood_of_unknown_key_ids_asks_the_issuer_a_few_times(
    tokens: SignedTokens, issuer: Issuer, clock: FixedClock
) -> None:
    for number in range(100):
        with refused("token_invalid"):
            await tokens.verify(PROVIDER, signed(kid=f"unknown-{number}"))
    assert issuer.reads == 1 + UNKNOWN_KEYS.calls
    await tokens.verify(PROVIDER, signed())
    clock.advance(UNKNOWN_KEYS.per_s)
    issuer.published = [public("ES256", "two")]
    await tokens.verify(PROVIDER, signed("ES256", "two"))


@pytest.mark.requirement("P1")
async def test_a_token_without_a_key_id_needs_a_single_key_of_its_kind(tokens: SignedTokens, issuer: Issuer) -> None:
    await tokens.verify(PROVIDER, signed(kid=None))
    issuer.published = [public("RS256", "one"), public("RS256", "two")]
    fresh = SignedTokens(documents=issuer, clock=FixedClock())
    with refused("token_invalid"):
        await fresh.verify(PROVIDER, signed(kid=None))


@pytest.mark.requirement("P1")
async def test_keys_stay_valid_while_the_issuer_is_away_and_others_wait_a_little(
    tokens: SignedTokens, issuer: Issuer, clock: FixedClock
) -> None:
    await tokens.verify(PROVIDER, signed())
    issuer.away = True
    clock.advance(7200)
    await tokens.verify(PROVIDER, signed())

    never = Issuer()
    never.away = True
    fresh = SignedTokens(documents=never, clock=clock)
    for _ in range(50):
        with refused("identity_provider_unavailable"):
            await fresh.verify(PROVIDER, signed())
    assert never.reads <= 1 + UNKNOWN_KEYS.calls
    never.away = False
    clock.advance(RETRY_S)
    await fresh.verify(PROVIDER, signed())


@pytest.mark.requirement("P1")
@pytest.mark.parametrize(
    ("changes", "right"),
    [
        ({"nonce": "n"}, True),
        ({"nonce": "n", "azp": "dragoman"}, True),
        ({"nonce": "n", "aud": ["dragoman", "x"], "azp": "dragoman"}, True),
        ({"nonce": "other"}, False),
        ({}, False),
        ({"nonce": "n", "azp": "another-client"}, False),
        ({"nonce": "n", "aud": ["dragoman", "x"]}, False),
        ({"nonce": "n", "aud": "api"}, False),
    ],
)
async def test_an_id_token_belongs_to_its_sign_in_and_to_this_client(
    tokens: SignedTokens, changes: dict[str, Any], right: bool
) -> None:
    if right:
        await tokens.verify(PROVIDER, signed(**changes), nonce="n")
        return
    with refused("token_invalid"):
        await tokens.verify(PROVIDER, signed(**changes), nonce="n")
