"""Assertions of OAuth clients: what they say, and by which algorithm they are signed."""

from datetime import timedelta

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from infrastructure.mcp.faults import TransportFailedError
from infrastructure.mcp.oauth.assertions import client_assertion
from tests.builders import START

pytestmark = pytest.mark.requirement("P4")

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PEM = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
ISSUER = "https://auth.example.org"


def an_assertion(offered: tuple[str, ...] | None = None) -> str:
    return client_assertion(PEM, client_id="me", key_id=None, issuer=ISSUER, offered=offered, now=START)


def test_an_assertion_is_for_one_authorization_server_and_for_a_minute_and_each_is_new() -> None:
    first, second = (
        jwt.decode(
            an_assertion(),
            KEY.public_key(),
            algorithms=["RS256"],
            audience=ISSUER,
            options={"verify_exp": False, "verify_iat": False},
        )
        for _ in range(2)
    )
    assert (first["iss"], first["sub"], first["aud"]) == ("me", "me", ISSUER)
    assert first["exp"] - first["iat"] == timedelta(minutes=1).total_seconds()
    assert first["jti"] != second["jti"]


@pytest.mark.parametrize(
    ("offered", "used"), [(None, "RS256"), (("ES256", "PS256"), "PS256"), (("PS256", "RS256"), "RS256")]
)
def test_an_assertion_is_signed_as_the_authorization_server_takes_it(
    offered: tuple[str, ...] | None, used: str
) -> None:
    assert jwt.get_unverified_header(an_assertion(offered))["alg"] == used


def test_a_server_that_takes_no_signature_of_this_key_is_said() -> None:
    with pytest.raises(TransportFailedError) as failed:
        an_assertion(("ES256",))
    assert "takes no assertions signed with RS256 or PS256" in failed.value.fault.detail
