"""Signatures of agent cards: accepted by the protocol's own library, and its by ours."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256K1, SECP256R1
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as ec_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as rsa_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from infrastructure.identity.canonical_cards import canonical_forms
from infrastructure.identity.card_signatures import CardSignatures, is_trusted_card
from tests.refusals import refused

pytestmark = pytest.mark.requirement("X5")

jwt = pytest.importorskip("jwt")
signing = pytest.importorskip("a2a.utils.signing")
types = pytest.importorskip("a2a.types")
json_format = pytest.importorskip("google.protobuf.json_format")

KEYS_URL = "https://agents.example.com/a2a/v1/guide/.well-known/jwks.json"
CARD: dict[str, Any] = {
    "name": "Führer durch Lissabon ✓",
    "description": "Says where.\n\u0007",
    "version": "3",
    "supportedInterfaces": [{"url": "https://a.example.com", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
    "capabilities": {"streaming": True, "pushNotifications": False},
    "securityRequirements": [{"schemes": {"key": {"list": ["runner"]}}}],
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [{"id": "s", "name": "s", "description": "s", "tags": ["a"]}],
}
KEYS: dict[str, Callable[[], Any]] = {
    "ES256": lambda: ec_key(SECP256R1()),
    "EdDSA": Ed25519PrivateKey.generate,
    "RS256": lambda: rsa_key(public_exponent=65537, key_size=2048),
}


def stored(folder: Path, key: Any) -> Path:
    path = folder / "key.pem"
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return path


async def trusted(folder: Path, signer: CardSignatures) -> Path:
    path = folder / "keys.json"
    path.write_text(json.dumps(await signer.keys()))
    return path


@pytest.mark.parametrize("algorithm", KEYS)
async def test_a_signed_card_is_accepted_by_the_library_of_the_protocol(tmp_path: Path, algorithm: str) -> None:
    signer = CardSignatures(stored(tmp_path, KEYS[algorithm]()))
    signed: dict[str, Any] = await signer.signed(CARD, KEYS_URL)
    keys: Any = await signer.keys()
    [public] = keys["keys"]
    asked: list[object] = []

    def key(kid: str, jku: str) -> Any:
        asked.append((kid, jku))
        return jwt.PyJWK.from_dict(public)

    verify = signing.create_signature_verifier(key, [algorithm])
    verify(json_format.ParseDict(signed, types.AgentCard()))
    assert asked == [(public["kid"], KEYS_URL)]
    with pytest.raises(signing.InvalidSignaturesError):
        verify(json_format.ParseDict({**signed, "description": "Other."}, types.AgentCard()))
    assert await signer.signed(CARD, KEYS_URL) == signed


@pytest.mark.parametrize("algorithm", KEYS)
async def test_cards_are_trusted_that_a_known_key_has_signed_as_they_are(tmp_path: Path, algorithm: str) -> None:
    signer = CardSignatures(stored(tmp_path, KEYS[algorithm]()))
    other = CardSignatures(stored(tmp_path, KEYS["ES256"]()))
    keys = await trusted(tmp_path, signer)
    signed, foreign = await signer.signed(CARD, KEYS_URL), await other.signed(CARD, KEYS_URL)
    assert is_trusted_card(signed, keys)
    signatures: Any = [*foreign["signatures"], *signed["signatures"], {"protected": "%", "signature": 5}]  # type: ignore[misc]
    assert is_trusted_card({**CARD, "signatures": signatures}, keys)
    for wrong in (CARD, foreign, {**signed, "name": "Other"}, {**signed, "more": 1}, {**CARD, "signatures": [5, {}]}):
        assert not is_trusted_card(wrong, keys)
    assert not is_trusted_card(signed, tmp_path / "nothing.json")


def test_a_card_that_the_library_of_the_protocol_signed_is_trusted(tmp_path: Path) -> None:
    key = KEYS["ES256"]()
    public = jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({"keys": [{**public, "kid": "one", "alg": "ES256"}]}))
    given = {**CARD, "description": "", "provider": {"organization": "", "url": "https://a.example.com"}}
    header = {"alg": "ES256", "kid": "one", "typ": "JOSE", "jku": None}
    card = signing.create_agent_card_signer(key, header)(json_format.ParseDict(given, types.AgentCard()))
    served = json_format.MessageToDict(card)
    assert is_trusted_card(served, keys)
    assert is_trusted_card({**served, "description": "", "skills": [*served["skills"]], "iconUrl": ""}, keys)
    assert not is_trusted_card({**served, "iconUrl": "https://evil.example.com"}, keys)


@pytest.mark.requirement("C6")
def test_who_can_check_a_card_cannot_sign_one(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    secret = {
        "kty": "oct",
        "kid": "one",
        "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldC1zZWNyZXQ",
        "alg": "HS256",
    }
    keys.write_text(json.dumps({"keys": [secret]}))
    payload = next(canonical_forms(CARD))
    for algorithm, key in (("HS256", jwt.PyJWK.from_dict(secret).key), ("none", None)):
        protected, _, signature = jwt.api_jws.encode(payload, key, algorithm=algorithm, headers={"kid": "one"}).split(
            "."
        )
        card = {**CARD, "signatures": [{"protected": protected, "signature": signature}]}
        assert not is_trusted_card(card, keys)


def test_a_key_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no key")
    for path in (tmp_path / "missing", tmp_path / "text", stored(tmp_path, ec_key(SECP256K1()))):
        with refused("card_key_unusable"):
            CardSignatures(path)
