"""Agent cards for caches."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from domain.json_value import JsonObject
from infrastructure.identity.card_signatures import CardSignatures
from interfaces.http.a2a.cards import card_response

pytestmark = pytest.mark.requirement("X5")

CARD: JsonObject = {"name": "guide", "version": "1"}


def replica(folder: Path, key: EllipticCurvePrivateKey) -> CardSignatures:
    path = folder / "key.pem"
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return CardSignatures(path)


def tag(card: JsonObject) -> str:
    return card_response(card, {}, is_public=True).headers["etag"]


async def test_a_card_that_another_replica_signed_is_the_same_to_caches_but_not_with_another_key(
    tmp_path: Path,
) -> None:
    key = generate_private_key(SECP256R1())
    one, again = [await replica(tmp_path, key).signed(CARD, "https://agents.example.com") for _ in range(2)]
    other = await replica(tmp_path, generate_private_key(SECP256R1())).signed(CARD, "https://agents.example.com")

    assert one != again
    assert tag(one) == tag(again)
    assert len({tag(CARD), tag({**CARD, "version": "2"}), tag(one), tag(other)}) == 4
    assert card_response(again, {"if-none-match": tag(one)}, is_public=True).status_code == 304
