"""Signatures of agent cards (A2A 1.0, section 8.4): JWS by PyJWT over the canonical form of a
card."""

import base64
import hashlib
import json
import logging
from collections.abc import Mapping
from pathlib import Path

import jwt

from application.system.lru import LruCache
from domain.errors import ErrorKind, ServiceError
from domain.json_value import JsonObject, canonical_digest, canonical_json
from infrastructure.identity.canonical_cards import canonical_forms
from infrastructure.identity.private_keys import UnusableKeyError
from infrastructure.identity.signing_keys import SigningKey, read_signing_key

logger = logging.getLogger(__name__)

ALGORITHMS = ("ES256", "EdDSA", "RS256", "ES384", "ES512", "PS256", "RS384", "RS512")
"""Of trusted keys. No symmetric one: who could check a card could sign it."""
_MAX_SIGNATURES = 10
_MAX_CARDS = 1_000


class CardSignatures:
    """The `CardSigner` port with a key of a PEM file: P-256, Ed25519 or RSA. A process signs a card
    once. Signatures by ES256 are random, so those of two processes differ."""

    def __init__(self, key_file: Path) -> None:
        self._key, self._public = _loaded(key_file)
        self._signed: LruCache[str, JsonObject] = LruCache(_MAX_CARDS)

    async def signed(self, card: JsonObject, keys_url: str) -> JsonObject:
        digest = canonical_digest([card, keys_url])
        found = self._signed.get(digest)
        if found is None:
            header = {"typ": "JOSE", "kid": self._public["kid"], "jku": keys_url}
            payload = next(canonical_forms(card))
            token = jwt.api_jws.encode(payload, self._key.private, algorithm=self._key.algorithms[0], headers=header)
            protected, _, signature = token.split(".")
            found = {**card, "signatures": [{"protected": protected, "signature": signature}]}
            self._signed.put(digest, found)
        return found

    async def keys(self) -> JsonObject:
        return {"keys": [self._public]}


def is_trusted_card(card: JsonObject, keys_file: Path) -> bool:
    """Whether one of the JSON Web Keys of a file has signed the card. The file is read each time,
    so keys may be exchanged; with one that cannot be read no card is trusted."""
    try:
        found = json.loads(keys_file.read_text(encoding="utf-8"))["keys"]
        keys = {str(key["kid"]): jwt.PyJWK.from_dict(key) for key in found}
    except (OSError, ValueError, KeyError, TypeError, jwt.PyJWTError):
        logger.exception("trusted keys of agent cards cannot be read: %s", keys_file)
        return False
    signatures = card.get("signatures")
    given = signatures[:_MAX_SIGNATURES] if isinstance(signatures, list) else []
    try:
        forms = [base64.urlsafe_b64encode(form).rstrip(b"=").decode() for form in canonical_forms(card)]
    except ValueError:
        return False
    return any(_has_signed(keys, each, form) for each in given if isinstance(each, dict) for form in forms)


def _has_signed(keys: Mapping[str, jwt.PyJWK], signature: JsonObject, payload: str) -> bool:
    token = f"{signature.get('protected')}.{payload}.{signature.get('signature')}"
    try:
        key = keys.get(str(jwt.get_unverified_header(token).get("kid")))
        if key is None or key.algorithm_name not in ALGORITHMS:
            return False
        jwt.api_jws.decode(token, key, algorithms=[key.algorithm_name])
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        return False
    return True


def _loaded(key_file: Path) -> tuple[SigningKey, JsonObject]:
    """The key, and the public JSON Web Key, whose id is its thumbprint (RFC 7638)."""
    try:
        key = read_signing_key(key_file.read_bytes())
    except OSError as error:
        raise _unusable(f"{key_file} cannot be read.") from error
    except UnusableKeyError as error:
        raise _unusable(f"{key_file} {error.reason}.") from error
    thumbprint = hashlib.sha256(canonical_json(key.public).encode()).digest()
    kid = base64.urlsafe_b64encode(thumbprint).rstrip(b"=").decode()
    return key, {**key.public, "kid": kid, "alg": key.algorithms[0], "use": "sig"}


def _unusable(sentence: str) -> ServiceError:
    logger.error("key of agent cards is unusable: %s", sentence)
    return ServiceError(
        "card_key_unusable", ErrorKind.INTERNAL, "The service's key for agent cards is unusable; the log says why."
    )
