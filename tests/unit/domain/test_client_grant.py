"""What a grant asks of who redeems its code."""

import pytest

from domain.gateway.client_grant import is_challenge
from domain.ids import GatewaySessionId
from tests.builders import after
from tests.gateway_builders import CHALLENGE, VERIFIER, a_client_grant

pytestmark = pytest.mark.requirement("P5")

GRANT = a_client_grant(GatewaySessionId("gws_1"))


def test_only_the_verifier_of_the_challenge_proves_who_began() -> None:
    assert GRANT.is_proven_by(VERIFIER)
    for other in ("", "w" * 43, CHALLENGE, VERIFIER[:-1], VERIFIER + "é"):
        assert not GRANT.is_proven_by(other), other


def test_a_challenge_is_a_digest() -> None:
    assert is_challenge(CHALLENGE)
    for other in ("", "plain", CHALLENGE + "=", "é" * 43):
        assert not is_challenge(other), other


def test_a_renewal_keeps_the_moment_of_the_first() -> None:
    first = GRANT.renewed(family_hash="f", refresh_hash="1", at=after(1))
    second = first.renewed(family_hash="f", refresh_hash="2", at=after(2))
    assert (second.redeemed_at, second.refresh_hash) == (after(1), "2")
