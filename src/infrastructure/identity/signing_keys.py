"""Private keys in PEM that sign: agent cards, and assertions of OAuth clients. Below: cryptography
and PyJWT."""

from dataclasses import dataclass, field
from typing import Any, cast

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from domain.json_value import JsonObject, JsonValue
from infrastructure.identity.private_keys import MAX_RSA_BITS, UnusableKeyError, read_private_key

_MIN_RSA_BITS = 2_048
_PUBLIC = ("crv", "e", "kty", "n", "x", "y")


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """A private key, the algorithms that it signs with, the usual one first, and its public JSON
    Web Key."""

    private: Any = field(repr=False)
    algorithms: tuple[str, ...]
    public: JsonObject


def read_signing_key(pem: bytes) -> SigningKey:
    """Raises UnusableKeyError."""
    key = read_private_key(pem)
    algorithms: tuple[str, ...]
    match key:
        case EllipticCurvePrivateKey() if isinstance(key.curve, SECP256R1):
            algorithms, public = ("ES256",), ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
        case Ed25519PrivateKey():
            algorithms, public = ("EdDSA",), OKPAlgorithm.to_jwk(key.public_key(), as_dict=True)
        case RSAPrivateKey() if key.key_size >= _MIN_RSA_BITS:
            algorithms, public = ("RS256", "PS256"), RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
        case _:
            raise UnusableKeyError(f"is no key for P-256, Ed25519, or RSA of {_MIN_RSA_BITS} to {MAX_RSA_BITS} bits")
    members = cast("dict[str, JsonValue]", {name: public[name] for name in _PUBLIC if name in public})
    return SigningKey(private=key, algorithms=algorithms, public=members)


def fault_of_signing_key(pem: str) -> str | None:
    """The port `FaultOfKey`."""
    try:
        read_signing_key(pem.encode())
    except UnusableKeyError as error:
        return error.reason
    return None
